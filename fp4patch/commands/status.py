"""Options of ``status``, and its result as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fp4patch.commands.options import TREES, json_option
from fp4patch.console import emit, show, waiting

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fp4patch.tree.status import TreeStatus


@click.command()
@TREES
@json_option("fp4patch.tree.status:OneTree", "fp4patch.tree.status:SeveralTrees")
def status(trees: tuple[Path, ...], as_json: bool) -> None:
    """Report the state of each file and patch of a TREE.

    The states are pristine, applied, outdated, upstreamed, not-needed, reversed, drifted and foreign.
    """
    from fp4patch.tree import status as verb

    found = verb.status(trees, on_wait=waiting)
    emit(verb.document(found)) if as_json else show(text(found))


def text(trees: Sequence[TreeStatus]) -> RenderableType:
    """Return a heading per tree, then its patches and its files with their states."""
    from rich.console import Group
    from rich.text import Text

    from fp4patch import console
    from fp4patch.console import STATES, folded, printable, whole
    from fp4patch.core.wording import joined

    parts: list[RenderableType] = []
    for tree in trees:
        heading = printable(joined(joined(tree.target, tree.version), tree.variant, by=", "))
        parts.append(
            Text.assemble((printable(str(tree.root)), "bold"), f": {heading}: ", (tree.state.value, STATES[tree.state]))
        )
        rows = [(" patch", patch.state, patch.patch, patch.because) for patch in tree.patches]
        rows += [(" file", file.state, file.path, ", ".join(file.patches)) for file in tree.files]
        parts.append(
            console.table(
                [whole(style="dim"), whole(), folded()],
                [
                    (kind, Text(state.value, STATES[state]), joined(name, more, by="  "))
                    for kind, state, name, more in rows
                ],
            )
        )
        parts += [Text(f"  {printable(str(line))}") for line in (*tree.remainders, *tree.notes)]
    return Group(*parts)
