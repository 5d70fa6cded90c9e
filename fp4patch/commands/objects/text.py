"""Results of ``objects``, as a table."""

from collections.abc import Sequence

from rich.console import Group, RenderableType

from fp4patch.commands import terminal
from fp4patch.commands.objects.result import ObjectFile
from fp4patch.commands.terminal import folded, whole


def table(found: Sequence[ObjectFile]) -> RenderableType:
    """Return a line for each object file: the source, its architectures, and the patched files that it includes."""
    columns = [whole("source"), folded("architectures"), folded("converts"), folded("sees")]
    rows = [(one.source, " ".join(map(str, one.architectures)), _converts(one), " ".join(one.sees)) for one in found]
    return Group(terminal.table(columns, rows), f"{len(found)} object files see a patch or convert to E2M1")


def _converts(one: ObjectFile) -> str:
    return "" if not one.converts else "yes" if one.itself else "a header"
