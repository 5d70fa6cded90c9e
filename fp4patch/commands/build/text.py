"""Results of a build, as text and as JSON documents; a dry run as a shell script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from fp4patch.images.image import Built, DryRun


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
