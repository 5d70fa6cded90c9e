"""The generated part of a page: the text between two marks, which the page must have."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end -->\n"


def write(page: Path, script: str, text: str) -> None:
    """Put the text behind the mark ``made by tools.regenerate SCRIPT``; nothing else of the page changes."""
    begin = f"<!-- made by tools.regenerate {script} -->\n"
    head, opened, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, tail = rest.partition(END)
    if not (opened and closed):
        raise SystemExit(f"{page.name} has lost its mark {(begin if not opened else END).strip()}")
    page.write_text(f"{head}{begin}\n{text}\n{END}{tail}", encoding="utf-8")
