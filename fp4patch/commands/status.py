"""``fp4patch status``: the state of each file and patch of trees."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.commands.apply import remaining
from fp4patch.commands.options import TREES, json_option
from fp4patch.console import STATES, Hanging, emit, folded, printable, show, table, whole
from fp4patch.core.wording import joined
from fp4patch.tree import status as trees_
from fp4patch.tree.status import StatusReport, TreeStatus


@click.command(epilog="Example: fp4patch status vllm")
@TREES
@json_option("fp4patch.tree.status:StatusReport")
def status(trees: tuple[Path, ...], as_json: bool) -> None:
    """Report the state of each file and patch of a TREE.

    The states are pristine, applied, outdated, upstreamed, not-needed, reversed, drifted and foreign.
    """
    states = trees_.status(trees)
    emit(StatusReport(states)) if as_json else show(text(states))


def text(trees: Sequence[TreeStatus]) -> RenderableType:
    """Return a heading per tree, then its patches and its files with their states."""
    parts: list[RenderableType] = []
    for tree in trees:
        heading = printable(joined(joined(tree.target, tree.version), tree.variant, by=", "))
        state = (tree.state.value, STATES[tree.state])
        parts.append(Text.assemble((printable(str(tree.root)), "bold"), f": {heading}: ", state))
        rows = [(" patch", patch.state, patch.patch, patch.because) for patch in tree.patches]
        rows += [(" file", file.state, file.path, ", ".join(file.patches)) for file in tree.files]
        cells = [
            (kind, Text(state.value, STATES[state]), joined(name, more, by="  ")) for kind, state, name, more in rows
        ]
        parts.append(table([whole(style="dim"), whole(), folded()], cells))
        parts += remaining(tree.remainders, each=False)
        parts += [Hanging("  note: ", printable(note)) for note in tree.notes]
    return Group(*parts)
