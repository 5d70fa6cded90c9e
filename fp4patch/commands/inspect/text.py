"""Results of an inspection, as text."""

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.console import STYLES, folded, printable, table, whole
from fp4patch.core.wording import joined
from fp4patch.images.image import Inspection

COLUMNS = [whole(style="dim"), folded(), folded()]


def inspection_text(found: Inspection) -> RenderableType:
    """Return the labels, then each statement with the result of checking it, then the verdict."""
    parts: list[RenderableType] = [Text(joined(found.subject, found.image), style="bold")]
    if found.labels:
        parts.append(table(COLUMNS[:2], [(f" {name}", value) for name, value in sorted(found.labels.items())]))
    rows = [(f" {f.subject}", Text(f.verdict.value, STYLES[f.verdict]), f.detail) for f in found.findings]
    parts += [Text(), table(COLUMNS, rows)]
    parts += [Text(f"note: {printable(note)}") for note in found.notes]
    failed = sum(finding.verdict.failed for finding in found.findings)
    said = f"{failed} of {len(found.findings)} statements do not hold" if failed else "all statements agree"
    parts += [Text(), Text.assemble((found.verdict.value.upper(), STYLES[found.verdict]), f"  {said}")]
    return Group(*parts)
