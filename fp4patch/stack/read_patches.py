"""The patches of a stack, each as one change."""

from pathlib import Path

from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import read
from fp4patch.stack.compose import composed
from fp4patch.stack.plan import Patch


def patches_of(stack: Path) -> list[Patch]:
    """Return the patches of a directory in their order, or that of one file."""
    if stack.is_dir():
        series = stack / "series"
        if series.is_file():
            rows = [line.split("#")[0].split() for line in series.read_text().splitlines()]
            files = [stack / row[0] for row in rows if row]
        else:
            files = sorted(path for path in stack.iterdir() if path.suffix in (".patch", ".diff"))
    else:
        files = [stack]
    if not files:
        raise UsageError(f"{stack} has no patch", help="put files NAME.patch or NAME.diff there")
    found = []
    for file in files:
        try:
            commit = composed(read(file.read_bytes()).commits)
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}") from error
        except LexError as error:
            raise Refused(f"{file}: {error}") from error
        found.append(Patch(file.stem, commit.subject, commit.link, commit))
    return found
