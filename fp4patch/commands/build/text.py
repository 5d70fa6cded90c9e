"""Results of a build as text; a dry run as a shell script."""

from rich.console import RenderableType
from rich.text import Text

from fp4patch.images.image import Built, DryRun


def dry_run_script(planned: DryRun) -> str:
    """Return a script for a POSIX shell: the context's files and the notes as comments, then the command."""
    how = "" if planned.written else f"; --context {planned.context} writes it"
    lines = [f"# build context {planned.context}{how}"]
    lines += [f"#   {name}  {size:,} bytes" for name, size in planned.files.items()]
    lines += [f"# note: {note}" for note in planned.notes]
    return "\n".join([*lines, planned.shell]) + "\n"


def built_text(built: Built) -> RenderableType:
    """Return the result of a build, and the command that checks it."""
    took = f"{sum(built.seconds.values()):.0f} s"
    if built.output:
        return Text(f"wrote {built.output} in {took}\n  `fp4patch doctor {built.output}` checks the proof")
    name = built.tags[0] if built.tags else built.image
    return Text(f"built {name} ({built.image}) in {took}\n  `fp4patch doctor {name}` checks its labels and its proof")
