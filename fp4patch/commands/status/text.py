"""Results of ``status``, as text and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fp4patch.commands.words import printable
from fp4patch.core.schema import SCHEMA
from fp4patch.core.state import State

if TYPE_CHECKING:
    from fp4patch.commands.status.result import TreeStatus

COLOUR = {
    State.APPLIED: "green",
    State.PRISTINE: "",
    State.UPSTREAMED: "cyan",
    State.NOT_NEEDED: "cyan",
    State.OUTDATED: "yellow",
    State.REVERSED: "yellow",
    State.DRIFTED: "red",
    State.FOREIGN: "red",
}


def document(trees: Sequence[TreeStatus]) -> dict[str, Any]:
    """Return the JSON document, as docs/json.md describes it."""
    rows = [
        {
            "tree": str(tree.root),
            "target": tree.target,
            "version": tree.version,
            "variant": tree.variant,
            "state": tree.state.value,
            "files": [{"path": f.path, "state": f.state.value, "patches": list(f.patches)} for f in tree.files],
            "patches": [{"patch": p.patch, "state": p.state.value, "because": p.because} for p in tree.patches],
            "notes": list(tree.notes),
            "remainders": [asdict(remainder) for remainder in tree.remainders],
        }
        for tree in trees
    ]
    return {"schema": SCHEMA} | (rows[0] if len(rows) == 1 else {}) | {"trees": rows}


def text(trees: Sequence[TreeStatus]) -> RenderableType:
    """Return a heading per tree, then its patches and its files with their states."""
    parts: list[RenderableType] = []
    for tree in trees:
        what = " ".join(part for part in (tree.target, tree.version) if part)
        heading = printable(what + (f", {tree.variant}" if tree.variant else ""))
        parts.append(
            Text.assemble(
                (printable(str(tree.root)), "bold"),
                f": {heading}: ",
                (tree.state.value, COLOUR[tree.state]),
            )
        )
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")  # the column that can be long is last: at 80 columns only that one is cut
        rows = [(" patch", patch.state, patch.patch, patch.because) for patch in tree.patches]
        rows += [(" file", file.state, file.path, ", ".join(file.patches)) for file in tree.files]
        for kind, state, name, more in rows:
            line = "  ".join(filter(None, (name, more)))
            table.add_row(kind, Text(state.value, style=COLOUR[state]), Text(printable(line)))
        parts.append(table)
        parts += [Text(f"  {remainder}") for remainder in tree.remainders]
        parts += [Text(f"  {printable(note)}") for note in tree.notes]
    return Group(*parts)
