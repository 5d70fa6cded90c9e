"""Results of ``apply`` and ``revert``, as text."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch import console
from fp4patch.commands.apply_run import Applied, ApplyState, TreeResult
from fp4patch.console import Verbatim, printable
from fp4patch.core.wording import counted, joined


def text(applied: Applied, *, diff: bool) -> RenderableType:
    """Return one line per tree, one per file that changes, then the notes; with ``diff`` the changes themselves.

    If several edits of a patch have nothing to do, they are counted; with ``diff`` each is listed with its reason.
    """
    lines: list[RenderableType] = []
    for tree in applied.trees:
        lines.append(_line(f"{tree.root}: {_sentence(tree, applied)}"))
        for file in () if applied.refused else tree.files:
            if file.changed:
                by = ", ".join(file.patches) if tree.state is ApplyState.APPLIED and file.patches else "pristine bytes"
                lines.append(_line(f"  {file.path}  ({by})"))
                lines += [Verbatim(file.unified())] if diff else []
        lines += [
            _line(f"  {note}") for note in (*_nothing_to_do(tree, each=diff), *_remaining(tree, each=diff), *tree.notes)
        ]
    if applied.cost and not applied.refused:
        lines.append(Text(f"cost: {applied.cost}"))
    return Group(*lines)


def _line(text: str) -> Text:
    """Return a text as one line, whatever characters it contains."""
    return Text(printable(text))


def _sentence(tree: TreeResult, applied: Applied) -> str:
    changed = sum(file.changed for file in tree.files)
    what = joined(tree.target, tree.version)
    would = "" if applied.write else "would be "
    match tree.state:
        case ApplyState.APPLIED:
            files = f", {counted(changed, 'file')} changed" if applied.write else f", {changed} to change"
            return f"{tree.variant} {would}applied to {what}{files}"
        case ApplyState.REVERTED:
            return f"{what} {would}reverted to its pristine bytes, {counted(changed, 'file')}"
        case ApplyState.UNCHANGED if applied.verb == "revert":
            return f"nothing to revert, {what} has no receipt of fp4patch"
        case ApplyState.UNCHANGED:
            return f"nothing to do, {what} is in the state of {tree.variant}"
        case ApplyState.REFUSED:
            return f"refused, {what} is untouched"


def _nothing_to_do(tree: TreeResult, *, each: bool) -> Iterator[str]:
    for patch, group in groupby(sorted(tree.retired, key=attrgetter("patch")), attrgetter("patch")):
        edits = list(group)
        if each or len(edits) == 1:
            yield from map(str, edits)
        else:
            states = Counter(edit.state.value for edit in edits)
            found = ", ".join(f"{number} {state}" for state, number in states.items())
            yield f"{patch}: {len(edits)} of its edits have nothing to do here ({found}); --diff shows the reasons"


def _remaining(tree: TreeResult, *, each: bool) -> Iterator[str]:
    """Return the places that remain unchanged: a line for each patch and reason with its files, or for each place."""
    if each:
        yield from map(str, tree.remainders)
        return
    by = attrgetter("patch", "because")
    for (patch, because), group in groupby(sorted(tree.remainders, key=by), by):
        places = list(group)
        named = list(dict.fromkeys(place.file for place in places))
        more = f" and {len(named) - 4} more files (--diff names each)" if len(named) > 4 else ""
        files = ", ".join(named[:4]) + more
        yield f"{patch}: {counted(len(places), 'place')} left as they are in {files}: {because}"


def refusal(applied: Applied) -> RenderableType:
    """Return every problem of every tree, each tree by its name. Equal problems of several edits appear once."""
    parts: list[RenderableType] = []
    for tree in (tree for tree in applied.trees if tree.problems):
        parts += [_line(f"{tree.root}:"), console.problems(tuple(dict.fromkeys(tree.problems)))]
    return Group(*parts)
