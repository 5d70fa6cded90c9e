"""Results of ``status``, as text."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.commands import terminal
from fp4patch.commands.terminal import STATES, folded, whole
from fp4patch.commands.words import printable
from fp4patch.core.wording import joined
from fp4patch.tree.status_report import TreeStatus


def text(trees: Sequence[TreeStatus]) -> RenderableType:
    """Return a heading per tree, then its patches and its files with their states."""
    parts: list[RenderableType] = []
    for tree in trees:
        heading = printable(joined(joined(tree.target, tree.version), tree.variant, by=", "))
        parts.append(
            Text.assemble((printable(str(tree.root)), "bold"), f": {heading}: ", (tree.state.value, STATES[tree.state]))
        )
        rows = [(" patch", patch.state, patch.patch, patch.because) for patch in tree.patches]
        rows += [(" file", file.state, file.path, ", ".join(file.patches)) for file in tree.files]
        parts.append(
            terminal.table(
                [whole(style="dim"), whole(), folded()],
                [
                    (kind, Text(state.value, STATES[state]), joined(name, more, by="  "))
                    for kind, state, name, more in rows
                ],
            )
        )
        parts += [Text(f"  {printable(str(line))}") for line in (*tree.remainders, *tree.notes)]
    return Group(*parts)
