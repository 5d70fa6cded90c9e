"""``fp4patch apply``: bring trees to the state of a variant. What it prints is what ``revert`` prints too."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.commands.options import TREES, WITH, json_option, variant_option
from fp4patch.console import Verbatim, emit, printable, problems, show, telling, waiting
from fp4patch.core.errors import EXIT_REFUSED, UsageError
from fp4patch.core.wording import counted, joined
from fp4patch.tree import apply as trees_
from fp4patch.tree.apply import Applied, ApplyState, NoVariantError, TreeResult


@click.command()
@TREES
@variant_option(required=False)
@WITH
@click.option("--dry-run", is_flag=True, help="Print the changes that apply would make, and make none.")
@click.option("--check", is_flag=True, help="Like --dry-run, and exit 1 if anything would change.")
@click.option("--diff", is_flag=True, help="Also print a unified diff, and why edits have nothing to do.")
@click.option("--target-version", metavar="V", help="Upstream version, if the tree states none or a wrong one.")
@json_option("fp4patch.tree.apply:Applied")
def apply(
    trees: tuple[Path, ...],
    variant: str | None,
    outside: tuple[Path, ...],
    dry_run: bool,
    check: bool,
    diff: bool,
    target_version: str | None,
    as_json: bool,
) -> None:
    """Apply a variant's patches to all TREEs, or to none.

    Without --variant, apply updates the variant that the trees already have, and recommends one for pristine trees.
    """
    try:
        write = not (dry_run or check)
        applied = trees_.apply(trees, variant, write=write, version=target_version, outside=outside, on_wait=waiting)
    except NoVariantError as error:
        raise UsageError(error.message, help=_recommended(error)) from error
    report(applied, diff=diff, as_json=as_json)
    if check and applied.changed:
        raise click.exceptions.Exit(EXIT_REFUSED)


def _recommended(error: NoVariantError) -> str:
    """Return the variant that doctor recommends for the tree, then all variants for such trees."""
    from fp4patch.doctor.recommend import recommend, toolkit  # noqa: PLC0415 - it looks for a compiler

    advice = recommend(error.tree, toolkit())
    if advice is None:
        return error.help
    named = f"--variant {advice.variant}" if advice.variant else "none at all"
    return f"recommended: {named}, since {advice.because}\n  {error.help}"


def report(applied: Applied, *, diff: bool, as_json: bool) -> None:
    """Print a result, and exit if it is a refusal."""
    done = f"the {applied.verb} itself was done, and `fp4patch status` shows the states of the trees"
    with telling(done if applied.written else "no tree was changed"):
        emit(applied.with_diffs() if diff else applied) if as_json else show(text(applied, diff=diff))
    if applied.problems and not as_json:
        show(refusal(applied), err=True)
    if applied.refused:
        raise click.exceptions.Exit(EXIT_REFUSED)


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
        notes = (*_nothing_to_do(tree, each=diff), *_remaining(tree, each=diff), *tree.notes)
        lines += [_line(f"  {note}") for note in notes]
    if applied.cost and not applied.refused:
        lines.append(Text(f"cost: {applied.cost}"))
    return Group(*lines)


def refusal(applied: Applied) -> RenderableType:
    """Return every problem of every tree, each tree by its name. Equal problems of several edits appear once."""
    parts: list[RenderableType] = []
    for tree in (tree for tree in applied.trees if tree.problems):
        parts += [_line(f"{tree.root}:"), problems(tuple(dict.fromkeys(tree.problems)))]
    return Group(*parts)


def _line(content: str) -> Text:
    """Return a text as one line, whatever characters it contains."""
    return Text(printable(content))


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
            by_state = ", ".join(f"{number} {state}" for state, number in states.items())
            yield f"{patch}: {len(edits)} of its edits have nothing to do here ({by_state}); --diff shows the reasons"


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
