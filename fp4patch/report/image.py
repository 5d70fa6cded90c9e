"""Results of a build and of an inspection, as text and as JSON documents; a dry run as a shell script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4patch.model.schema import SCHEMA
from fp4patch.model.verdict import Verdict
from fp4patch.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.model.image import Built, DryRun, Inspection

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red"}


def dry_run_script(planned: DryRun) -> str:
    """Return a script for a POSIX shell: the context's files and the notes as comments, then each command."""
    how = "" if planned.written else f"; --context {planned.context} writes it"
    lines = [f"# build context {planned.context}{how}"]
    lines += [f"#   {name}  {size:,} bytes" for name, size in planned.files.items()]
    lines += [f"# note: {note}" for note in planned.notes]
    return "\n".join([*lines, *planned.shell]) + "\n"


def dry_run_document(planned: DryRun) -> dict[str, Any]:
    """Return the JSON document, as docs/json.md describes it."""
    return {
        "schema": SCHEMA,
        "commands": [list(words) for words in planned.commands],
        "shell": list(planned.shell),
        "context": planned.context,
        "written": planned.written,
        "files": planned.files,
        "notes": list(planned.notes),
    }


def built_document(built: Built) -> dict[str, Any]:
    """Return the JSON document, as docs/json.md describes it."""
    return {
        "schema": SCHEMA,
        "image": built.image,
        "digest": built.digest,
        "tags": list(built.tags),
        "labels": dict(built.labels),
        "output": built.output,
        "seconds": dict(built.seconds),
        "command": list(built.command),
        "notes": list(built.notes),
    }


def built_text(built: Built) -> RenderableType:
    """Return the result of a build, and the command that inspects it."""
    took = f"{sum(built.seconds.values()):.0f} s"
    if built.output:
        return Text(f"wrote {built.output} in {took}\n  `fp4patch inspect {built.output}` checks the proof")
    name = built.tags[0] if built.tags else built.image
    return Text(f"built {name} ({built.image}) in {took}\n  `fp4patch inspect {name}` checks its labels and its proof")


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
