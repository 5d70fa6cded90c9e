"""Results of an inspection, as text and as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4patch.commands.words import printable
from fp4patch.core.schema import SCHEMA
from fp4patch.core.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.images.image import Inspection

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red"}


def inspection_document(found: Inspection) -> dict[str, Any]:
    """Return the JSON document, as docs/json.md describes it."""
    return {
        "schema": SCHEMA,
        "verdict": found.verdict.value,
        "subject": found.subject,
        "image": found.image,
        "architecture": found.architecture,
        "labels": dict(found.labels),
        "pins": dict(found.pins),
        "receipt": found.receipt,
        "findings": [{"subject": f.subject, "verdict": f.verdict.value, "detail": f.detail} for f in found.findings],
        "notes": list(found.notes),
    }


def inspection_text(found: Inspection) -> RenderableType:
    """Return the labels, then each statement with the result of checking it, then the verdict."""
    parts: list[RenderableType] = [Text(" ".join(p for p in (found.subject, found.image) if p), style="bold")]
    if found.labels:
        parts.append(_rows([(name, value, "") for name, value in sorted(found.labels.items())]))
    parts += [Text(), _rows([(f.subject, f.verdict.value, f.detail) for f in found.findings])]
    parts += [Text(f"note: {printable(note)}") for note in found.notes]
    failed = sum(finding.verdict.failed for finding in found.findings)
    said = f"{failed} of {len(found.findings)} statements do not hold" if failed else "all statements agree"
    parts += [Text(), Text.assemble((found.verdict.value.upper(), STYLES[found.verdict]), f"  {said}")]
    return Group(*parts)


def _rows(rows: Sequence[tuple[str, str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value, detail in rows:
        style = {verdict.value: style for verdict, style in STYLES.items()}.get(value, "")
        table.add_row(Text(f" {printable(name)}"), Text(printable(value), style=style), Text(printable(detail)))
    return table
