"""Results of ``objects``, as a table and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table

from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from fp4patch.commands.objects.result import ObjectFile


def document(found: Sequence[ObjectFile]) -> dict[str, Any]:
    """Return the JSON document, as docs/json.md describes it."""
    rows = [
        {
            "name": one.name,
            "source": one.source,
            "architectures": [str(arch) for arch in one.architectures],
            "converts": one.converts,
            "itself": one.itself,
            "sees": list(one.sees),
        }
        for one in found
    ]
    return {"schema": SCHEMA, "objects": rows}


def table(found: Sequence[ObjectFile]) -> RenderableType:
    """Return a line for each object file: the source, its architectures, and the patched files that it includes."""
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("source", "architectures", "converts", "sees"):
        rows.add_column(title, no_wrap=title == "source", overflow="fold")
    for one in found:
        archs = " ".join(str(arch) for arch in one.architectures)
        rows.add_row(
            one.source, archs, "" if not one.converts else "yes" if one.itself else "a header", " ".join(one.sees)
        )
    return Group(rows, f"{len(found)} object files see a patch or convert to E2M1")
