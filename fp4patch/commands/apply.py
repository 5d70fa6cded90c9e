"""``fp4patch apply`` and ``fp4patch revert``: bring trees to the state of a variant, or of none."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import click
from rich.console import Group, RenderableType

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.catalog.outside import OutsidePatch
from fp4patch.commands.options import FOLDER, TREES, WITH, json_option, variant_option
from fp4patch.console import Hanging, emit, printable, problems, show, verbatim
from fp4patch.core.errors import EXIT_REFUSED, UsageError
from fp4patch.core.results import State
from fp4patch.core.wording import counted, joined
from fp4patch.edits.patch_text import git_diff
from fp4patch.stack.read import named
from fp4patch.tree import apply as trees_
from fp4patch.tree.apply import Applied, ApplyState, NoVariantError, TreeResult
from fp4patch.tree.receipt import Remainder


@click.command(epilog="Example: fp4patch apply --variant native vllm")
@TREES
@variant_option(required=False)
@WITH
@click.option("--merge", "merges", is_flag=True, help="Merge patches of --with that do not fit exactly, and show it.")
@click.option(
    "--clone",
    "clones",
    metavar="DIR",
    multiple=True,
    type=FOLDER,
    help="For --merge: a clone with the files that the patches were made for. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Print the changes that apply would make, and make none.")
@click.option("--check", is_flag=True, help="Like --dry-run, and exit 1 if anything would change.")
@click.option("--diff", is_flag=True, help="Also print a unified diff, and why edits have nothing to do.")
@click.option("--target-version", metavar="V", help="Upstream version, if the tree states none or a wrong one.")
@json_option("fp4patch.tree.apply:Applied")
def apply(
    trees: tuple[Path, ...],
    variant: str | None,
    outside: tuple[Path, ...],
    merges: bool,
    clones: tuple[Path, ...],
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
        patches: Sequence[OutsidePatch] = named(outside, load().targets)
        if merges:
            patches, said = merged_onto(trees, patches, clones, target_version)
            show(said, err=as_json)
        applied = trees_.apply(trees, variant, write=write, version=target_version, outside=patches)
    except NoVariantError as error:
        applied = _without_variant(trees, error)
    report(applied, diff=diff, as_json=as_json)
    if check and applied.changed:
        raise click.exceptions.Exit(EXIT_REFUSED)


@click.command(epilog="Example: fp4patch revert vllm")
@TREES
@json_option("fp4patch.tree.apply:Applied")
def revert(trees: tuple[Path, ...], as_json: bool) -> None:
    """Restore the pristine bytes of all TREEs, or of none.

    The receipts are removed too.
    """
    report(trees_.revert(trees), diff=False, as_json=as_json)


def merged_onto(
    trees: tuple[Path, ...], patches: Sequence[OutsidePatch], clones: tuple[Path, ...], version: str | None
) -> tuple[list[OutsidePatch], RenderableType]:
    """Return the patches as they apply to the trees, and the merges in words and as diffs. Refused: a conflict."""
    from fp4patch.stack.merge import merge_onto  # noqa: PLC0415 - only a merge needs git

    known = identify_all(trees, load(), version)
    if len({tree.target.name for tree in known}) < len(known):
        raise UsageError("two trees of one kind need two merges", help="name one of them at a time with --merge")
    made, lines = list[OutsidePatch](), list[RenderableType]()
    for merged in merge_onto(known, patches, clones).values():
        made += merged.patches
        for patch in merged.patches:
            if patch.name in merged.merged:
                lines.append(_line("", f"{patch.name} is merged onto this release; its diff here is"))
                lines.append(verbatim(git_diff(patch.commit.changes)))
        lines += [_line("", f"{name}: a merge changes nothing, the release has it") for name in merged.retired]
    return made, Group(*lines)


def _without_variant(trees: tuple[Path, ...], error: NoVariantError) -> Applied:
    """Return the result for a tree that needs no variant. UsageError recommends the one that another tree needs."""
    from fp4patch.doctor.compilers import toolkit  # noqa: PLC0415 - it looks for a compiler
    from fp4patch.doctor.tree_answers import recommend  # noqa: PLC0415

    tree = identify_all(trees, load())[0]
    advice = recommend(tree, toolkit())
    if advice and not advice.variant and len(trees) == 1:
        version = str(tree.version or "")
        result = TreeResult(tree.root, tree.target.name, version, "", ApplyState.UNCHANGED, notes=(advice.because,))
        return Applied("apply", False, (result,))
    recommended = ""
    if advice and advice.variant:
        recommended = f"--variant {advice.variant} is recommended, since {advice.because}; "
    raise UsageError(error.message, help=f"{recommended}{error.help}") from error


def report(applied: Applied, *, diff: bool, as_json: bool) -> None:
    """Print a result, and exit if it is a refusal."""
    emit(applied) if as_json else show(text(applied, diff=diff))
    if applied.refused:
        if not as_json:
            show(refusal(applied), err=True)
        raise click.exceptions.Exit(EXIT_REFUSED)


def text(applied: Applied, *, diff: bool) -> RenderableType:
    """Return what changed in each tree by each patch, what it leaves, and the next command; ``diff``: the changes."""
    lines: list[RenderableType] = []
    for tree in applied.trees:
        lines.append(_line("", f"{tree.root}: {_sentence(tree, applied)}"))
        changed = [] if applied.refused else [file for file in tree.files if file.changed]
        for patch in tree.patches if changed else ():
            if files := [file for file in changed if patch.patch in (name.partition(" ")[0] for name in file.patches)]:
                known = load().patches.get(patch.patch)
                title = known.title if known else "a diff that you named with --with"
                lines.append(_line("  ", f"{patch.patch}: {title}"))
                lines += [_line("    ", file.path) for file in files]
        if restored := [file.path for file in changed if not file.patches]:
            lines += [_line("  ", "pristine bytes again:"), *(_line("    ", path) for path in restored)]
        lines += [verbatim(file.diff) for file in changed if diff]
        if changed or _is_idle(tree) or (diff and not applied.refused):
            lines += _left(tree, each=diff)
        lines += [_line("  note: ", note) for note in tree.notes]
    variant = load().variants.get(applied.trees[0].variant)
    if variant and variant.cost and applied.verb == "apply" and not applied.refused:
        lines.append(_line("cost: ", variant.cost))
    if applied.written and applied.state is ApplyState.APPLIED:
        roots = shlex.join(str(tree.root) for tree in applied.trees)
        lines.append(_line("next: ", f"`fp4patch verify {roots}` compiles and checks the code"))
    return Group(*lines)


def refusal(applied: Applied) -> RenderableType:
    """Return every problem of every tree, each tree by its name. Equal problems of several edits appear once."""
    parts: list[RenderableType] = []
    for tree in (tree for tree in applied.trees if tree.problems):
        parts += [_line("", f"{tree.root}:"), problems(tuple(dict.fromkeys(tree.problems)))]
        if tree.edits:
            parts += [_line("", "the edits since fp4patch wrote the files, as a diff to keep:")]
            parts += [verbatim(tree.edits)]
    return Group(*parts)


def _line(prefix: str, content: str) -> RenderableType:
    """Return a text as one line, which wraps on a terminal, whatever characters it contains."""
    return Hanging(printable(prefix), printable(content))


def _sentence(tree: TreeResult, applied: Applied) -> str:
    changed = sum(file.changed for file in tree.files)
    what = joined(tree.target, tree.version)
    would = "" if applied.write else "would be "
    restored = f", {counted(changed, 'file')}" if changed else ""
    match tree.state:
        case ApplyState.APPLIED:
            files = f", {counted(changed, 'file')} changed" if applied.write else f", {changed} to change"
            return f"{tree.variant} {would}applied to {what}{files}"
        case ApplyState.REVERTED if applied.verb == "apply":
            return f"{tree.variant} changes nothing in {what}{f'{restored} {would}pristine again' if restored else ''}"
        case ApplyState.REVERTED:
            already = "had its pristine bytes already, and its receipt is gone"
            return f"{what} {f'reverted to its pristine bytes{restored}' if changed else already}"
        case ApplyState.UNCHANGED if applied.verb == "revert":
            return f"nothing to revert, {what} has no receipt of fp4patch"
        case ApplyState.UNCHANGED:
            state = f"is in the state of {tree.variant}" if tree.variant else "needs no variant"
            idle = f"no patch of {tree.variant} changes {what}"
            return f"nothing to do, {idle if _is_idle(tree) else f'{what} {state}'}"
        case ApplyState.REFUSED:
            return f"refused, {what} is untouched"


def _is_idle(tree: TreeResult) -> bool:
    """Return whether nothing is to do since no patch of the variant changes the release, and not since it has been."""
    patched = any(file.patches for file in tree.files)
    return bool(tree.state is ApplyState.UNCHANGED and tree.patches and not patched)


def _left(tree: TreeResult, *, each: bool) -> Iterator[RenderableType]:
    """Yield the patches that have nothing to do, and the places that the others leave, by their reasons."""
    retired = [patch for patch in tree.patches if patch.state in (State.UPSTREAMED, State.NOT_NEEDED)]
    if retired:
        yield _line("  ", "nothing to do, which is as it should be:")
    for patch in retired:
        yield _line(f"    {patch.patch}: ", patch.because)
    yield from remaining(tree.remainders, each=each)


def remaining(remainders: Sequence[Remainder], *, each: bool) -> Iterator[RenderableType]:
    """Yield the places that a variant leaves, by their reasons."""
    if remainders:
        hint = "" if each else " (`fp4patch apply --diff` names each place)"
        yield _line("  ", f"left as they are{hint}:")
    by = attrgetter("patch", "because")
    for (_, because), group in groupby(sorted(remainders, key=by), by):
        places = list(group)
        yield _line(f"    {counted(len(places), 'place')}: ", because)
        for place in places if each else ():
            yield _line("      ", f"{place.file}:{place.line}: {place.found}")
