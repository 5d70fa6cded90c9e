"""The generated part of a page: the text between two marks, which the page must have."""

from pathlib import Path

END = "<!-- end -->\n"


def write(page: Path, script: str, text: str) -> None:
    """Put the text behind the mark of a script; nothing else of the page changes."""
    page.write_text(placed(page.read_text(encoding="utf-8"), script, text), encoding="utf-8")


def placed(page: str, script: str, text: str) -> str:
    """Return the page with the text behind the mark ``made by tools.regenerate SCRIPT``."""
    begin = f"<!-- made by tools.regenerate {script} -->\n"
    head, opened, rest = page.partition(begin)
    _, closed, tail = rest.partition(END)
    if not (opened and closed):
        raise SystemExit(f"the page has lost its mark {(begin if not opened else END).strip()}")
    return f"{head}{begin}\n{text}\n{END}{tail}"
