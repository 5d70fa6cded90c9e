"""``fp4patch apply`` and ``revert``: bring trees to the state of a variant, or of none; all of them, or nothing.

A file's desired bytes are the fold of its edits over its pristine bytes. So applying twice is a comparison, another
variant is another fold, and reverting is the empty one.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, claimed_version, contained, identify_all, is_at
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.plan import Plan
from fp4patch.catalog.variant import Variant
from fp4patch.commands.apply.result import Applied, ApplyState, FileResult, Retired, TreeResult
from fp4patch.core.errors import UsageError
from fp4patch.core.outcome import NothingToDo, Rewritten
from fp4patch.core.state import State
from fp4patch.doctor.recommend import recommend, toolkit
from fp4patch.tree.folding import FoldedFile, FoldedTree, fold_tree, plan_for
from fp4patch.tree.installed import bypasses
from fp4patch.tree.locked import Desired, Locked, LockedTree, Staged
from fp4patch.tree.lost import lost, lost_file
from fp4patch.tree.transaction import OnWait


def apply(
    trees: Sequence[Path], variant: str | None, *, write: bool, said_version: str | None, on_wait: OnWait
) -> Applied:
    """Bring each tree to the variant's state. ``variant`` None: the one that is applied already, brought up to date.

    Problems are values in what is returned, and then nothing was written. UsageError: no such variant, or none for
    that kind of tree. Refused: not a tree.
    """
    catalog = load()
    chosen = catalog.variant(variant) if variant else None
    identified = identify_all(trees, catalog, said_version)
    with Locked(identified, on_wait, writes=write) as locked:
        results = [
            _apply_tree(tree, plan_for(tree, chosen or _applied_variant(tree, locked, catalog), catalog))
            for tree in locked
        ]
        cost = catalog.variants[results[0].variant].cost
        applied = Applied("apply", write, _all_or_nothing(results), cost)
        if write and applied.changed:
            locked.commit()
    return applied


def revert(trees: Sequence[Path], *, on_wait: OnWait) -> Applied:
    """Give each tree its pristine bytes back and remove every trace. A tree without a receipt is left as it is."""
    catalog = load()
    named = (Path(os.path.realpath(path)) for path in trees)
    with Locked([root for path in named for root in _with_contained(path, catalog)], on_wait) as locked:
        reverted = Applied("revert", True, _all_or_nothing([_revert_tree(tree, catalog) for tree in locked]))
        if reverted.changed:
            locked.commit()
    return reverted


def _revert_tree(tree: LockedTree, catalog: Catalog) -> TreeResult:
    receipt = tree.receipt
    if receipt is None:
        known = tree.known  # revert of a directory that is not a tree is a mistake and is reported
        kept = tuple(problem for path in lost(tree) if (problem := lost_file(tree, path)))
        state = ApplyState.REFUSED if kept else ApplyState.UNCHANGED
        version = str(known.version or "")
        return TreeResult(tree.root, known.target.name, version, "", state, (), kept, notes=(*_recovered(tree),))
    staged = tree.stage(Desired())
    files = tuple(
        FileResult(path, State.PRISTINE, (), file.before or b"", file.after or b"")
        for path, file in staged.files.items()
    )
    state = ApplyState.REFUSED if staged.problems else ApplyState.REVERTED
    target = catalog.targets.get(receipt.target)
    compiled = bypasses(tree.root, target, claimed_version(tree.root, target)) if target else ()
    notes = (*_recovered(tree), *_modes(staged), *compiled)
    return TreeResult(
        tree.root, receipt.target, receipt.version, receipt.variant, state, files, staged.problems, (), notes
    )


def _apply_tree(tree: LockedTree, wanted: Plan) -> TreeResult:
    folds = fold_tree(tree, wanted)
    staged = tree.stage(folds.desired(wanted))
    files = tuple(
        FileResult(path, _state_after(done), done.patches, file.before or b"", file.after or b"")
        for path, done in folds.files.items()
        if (file := staged.files.get(path))
    )
    problems = folds.problems + staged.problems
    if problems:
        state = ApplyState.REFUSED
    elif not staged.changed:
        state = ApplyState.UNCHANGED
    else:
        state = ApplyState.APPLIED if staged.receipt else ApplyState.REVERTED
    known = tree.known
    notes = (*_recovered(tree), *_modes(staged), *_notes(folds), *bypasses(tree.root, known.target, known.version))
    return TreeResult(
        tree.root,
        known.target.name,
        str(known.version or ""),
        wanted.variant,
        state,
        files,
        problems,
        tuple(dict.fromkeys(_retired(folds))),
        notes,
        folds.remainders,
    )


def _with_contained(root: Path, catalog: Catalog) -> Iterator[Path]:
    """Yield a directory, and the trees in it that an apply changes with it."""
    yield root
    for target in catalog.targets.values():
        if is_at(root, target):
            yield from (inside.root for inside in contained(root, target, catalog))


def _recovered(tree: LockedTree) -> Iterator[str]:
    """Yield notes on an interrupted command that was finished or rolled back, here or in a tree that was not named."""
    for found in tree.recovered:
        place = f" in {found.root}" if found.root != tree.root else ""
        yield f"an interrupted command was {found.outcome}{place}"


def _modes(staged: Staged) -> Iterator[str]:
    """Yield notes on files whose mode, changed since fp4patch first wrote them, is lost."""
    for path, file in staged.files.items():
        if file.mode_before is not None and file.mode_before != file.mode:
            lost_mode = f"mode {file.mode_before:04o} becomes {file.mode:04o} again"
            yield f"{path}: {lost_mode}, as it was before fp4patch wrote the file"


def _state_after(done: FoldedFile) -> State:
    retired = {outcome.state for _, outcome in done.outcomes if isinstance(outcome, NothingToDo)}
    order = (State.UPSTREAMED, State.NOT_NEEDED)
    return State.APPLIED if done.patches else next((state for state in order if state in retired), State.PRISTINE)


def _retired(folds: FoldedTree) -> Iterator[Retired]:
    for _, patch, outcome in folds.outcomes():
        if isinstance(outcome, NothingToDo):
            yield Retired(patch, outcome.state, outcome.since, outcome.because)


def _holds(outer: Identified, inner: Identified) -> bool:
    """Return whether a tree contains another that is patched with it."""
    named = any(part.target == inner.target.name for part in outer.target.contains)
    return named and inner.root != outer.root and inner.root.is_relative_to(outer.root)


def _notes(folds: FoldedTree) -> Iterator[str]:
    for path, patch, outcome in folds.outcomes():
        if isinstance(outcome, Rewritten):
            yield from (f"{patch}: {path}: {note}" for note in outcome.notes)


def _all_or_nothing(results: Sequence[TreeResult]) -> tuple[TreeResult, ...]:
    """Return one tree that refuses refuses them all."""
    if not any(result.problems for result in results):
        return tuple(results)
    return tuple(replace(result, state=ApplyState.REFUSED) for result in results)


def _applied_variant(tree: LockedTree, locked: Locked, catalog: Catalog) -> Variant:
    """Return the variant of its receipt, else that of the tree around it or inside: one may have no receipt."""
    kin = [other for other in locked if _holds(tree.known, other.known) or _holds(other.known, tree.known)]
    own, others = ({one.receipt.variant for one in trees if one.receipt} for trees in ([tree], kin))
    target = tree.known.target.name
    names_one = own or (others if len(others) == 1 else set[str]())
    if not names_one:
        names = ", ".join(v.name for v in catalog.variants.values() if target in v.targets)
        advice = recommend(tree.known, toolkit())
        named = f"--variant {advice.variant}" if advice and advice.variant else "none at all"
        why = f"recommended: {named}, since {advice.because}\n  " if advice else ""
        raise UsageError(
            f"no variant is applied to {tree.root} yet, and none was named", help=f"{why}variants: {names}"
        )
    (name,) = names_one
    if name not in catalog.variants:
        raise UsageError(
            f"{name} is applied to {tree.root}, a variant that this fp4patch ({__version__}) does not have",
            help=f"name one with --variant ({', '.join(catalog.variants)}), or `fp4patch revert` the tree",
        )
    return catalog.variants[name]
