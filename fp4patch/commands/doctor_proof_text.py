"""Labels and proof of an image as text: each statement, and whether it holds."""

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.console import STYLES, folded, printable, table, whole
from fp4patch.core.wording import joined
from fp4patch.images.image import ProofReport

COLUMNS = [whole(style="dim"), folded(), folded()]


def proof_text(proof: ProofReport) -> RenderableType:
    """Return the labels, then each statement with the result of checking it, then the verdict."""
    parts: list[RenderableType] = [Text(joined("proof of", proof.subject, proof.image), style="bold")]
    if proof.labels:
        parts.append(table(COLUMNS[:2], [(f" {name}", value) for name, value in sorted(proof.labels.items())]))
    rows = [(f" {row.subject}", Text(row.verdict.value, STYLES[row.verdict]), row.detail) for row in proof.statements]
    parts += [table(COLUMNS, rows)] if rows else []
    parts += [Text(f"note: {printable(note)}") for note in proof.notes]
    failed = sum(row.verdict.failed for row in proof.statements)
    if proof.statements:
        summary = f"{failed} of {len(rows)} statements do not hold" if failed else "all statements agree"
        parts.append(Text.assemble((proof.verdict.value.upper(), STYLES[proof.verdict]), f"  {summary}"))
    return Group(*parts)
