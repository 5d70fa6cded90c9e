"""``fp4patch apply`` and ``revert``: bring trees to the state of a variant, or of none; all of them, or nothing.

A file's desired bytes are the fold of its edits over its pristine bytes. So applying twice is a comparison, another
variant is another fold, and reverting is the empty one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, claimed_version, contained, identify, identify_all, is_at, place
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.plan import Plan
from fp4patch.catalog.variant import Variant
from fp4patch.commands.apply.result import Applied, ApplyState, FileResult, Retired, TreeResult
from fp4patch.commands.recommend import recommend, toolkit
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.outcome import NothingToDo, Rewritten
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree.folding import FoldedFile, FoldedTree, file_state, fold_tree, plan_for, recovered
from fp4patch.tree.installed import bypasses
from fp4patch.tree.journal import sha256
from fp4patch.tree.locked import changing, reading
from fp4patch.tree.lost import lost, lost_file
from fp4patch.tree.receipt import Receipt, ReceiptFile
from fp4patch.tree.transaction import OnWait, Transaction


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
    opened = changing if write else reading
    with opened([tree.root for tree in identified], on_wait) as tx:
        results, receipts = [], {}
        for tree in identified:
            wanted = plan_for(tx, chosen or _applied_variant(tx, tree, identified, catalog), tree, catalog)
            result, receipts[tree.root] = _apply_tree(tx, wanted)
            results.append(result)
        cost = catalog.variants[results[0].variant].cost
        applied = Applied("apply", write, _all_or_nothing(results), cost)
        if write and applied.changed:
            tx.commit(receipts)
    return applied


def revert(trees: Sequence[Path], *, on_wait: OnWait) -> Applied:
    """Give each tree its pristine bytes back and remove every trace. A tree without a receipt is left as it is."""
    catalog = load()
    named = (Path(os.path.realpath(path)) for path in trees)
    roots = list({place(root): root for path in named for root in _with_contained(path, catalog)}.values())
    with changing(roots, on_wait) as tx:
        results = []
        for root in roots:
            receipt = tx.receipt(root)
            if receipt is None:
                known = identify(root, catalog)  # reverting what is no tree at all is a mistake, and said
                kept = tuple(problem for path in lost(tx, known) if (problem := lost_file(tx, known, path)))
                state = ApplyState.REFUSED if kept else ApplyState.UNCHANGED
                version = str(known.version or "")
                results.append(
                    TreeResult(root, known.target.name, version, "", state, (), kept, notes=recovered(tx, root))
                )
                continue
            files, problems = _stage(tx, root, {path: FoldedFile(_pristine(tx, root, path)) for path in receipt.files})
            state = ApplyState.REFUSED if problems else ApplyState.REVERTED
            notes = recovered(tx, root) + _modes(tx, root, files) + _bypasses(root, receipt.target, catalog)
            results.append(
                TreeResult(root, receipt.target, receipt.version, receipt.variant, state, files, problems, (), notes)
            )
        reverted = Applied("revert", True, _all_or_nothing(results))
        if reverted.changed:
            tx.commit(dict.fromkeys(roots))
    return reverted


def _apply_tree(tx: Transaction, wanted: Plan) -> tuple[TreeResult, Receipt | None]:
    tree, receipt = wanted.tree, tx.receipt(wanted.tree.root)
    folds = fold_tree(tx, wanted)
    files, refused = _stage(tx, tree.root, {path: done for path, done in folds.files.items() if not done.problems})
    problems = folds.problems + refused
    version = str(tree.version or "")
    new = None if problems else _receipt(tx, wanted, folds)
    if problems:
        state = ApplyState.REFUSED
    elif not any(file.changed for file in files) and _same(receipt, new):
        state = ApplyState.UNCHANGED
    else:
        state = ApplyState.APPLIED if new else ApplyState.REVERTED
    return TreeResult(
        tree.root,
        tree.target.name,
        version,
        wanted.variant,
        state,
        files,
        problems,
        tuple(dict.fromkeys(_retired(folds))),
        (
            *recovered(tx, tree.root),
            *_modes(tx, tree.root, files),
            *_notes(folds),
            *bypasses(tree.root, tree.target, tree.version),
        ),
        folds.remainders,
    ), new


def _with_contained(root: Path, catalog: Catalog) -> Iterator[Path]:
    """Yield a directory and the trees in it that an apply changes with it; of a directory that is no tree any more,
    itself."""
    yield root
    for target in catalog.targets.values():
        if is_at(root, target):
            yield from (inside.root for inside in contained(root, target, catalog))


def _bypasses(root: Path, name: str, catalog: Catalog) -> tuple[str, ...]:
    target = catalog.targets.get(name)
    return tuple(bypasses(root, target, claimed_version(root, target))) if target else ()


def _stage(
    tx: Transaction, root: Path, folds: dict[str, FoldedFile]
) -> tuple[tuple[FileResult, ...], tuple[Problem, ...]]:
    """Stage what differs; a file that is neither pristine nor what we wrote is foreign, and a problem."""
    files, problems = [], []
    for path, done in folds.items():
        try:
            current = tx.current(root, path)
            if done.desired is not None and current != done.desired:
                if current is not None and file_state(tx, root, path, done.desired) is State.FOREIGN:
                    problems.append(_foreign(path))
                    continue
                if problem := tx.writable_problem(root, path):
                    problems.append(problem)
                    continue
                tx.stage(root, path, done.desired)
        except Refused as refused:
            problems += refused.problems
            continue
        state = State.APPLIED if done.patches else _retired_state(done) or State.PRISTINE
        files.append(FileResult(path, state, done.patches, current or b"", done.desired or b""))
    return tuple(files), tuple(problems)


def _modes(tx: Transaction, root: Path, files: Sequence[FileResult]) -> tuple[str, ...]:
    """Notes on files whose mode, changed since fp4patch first wrote them, is lost."""
    changes = ((file.path, tx.mode_now(root, file.path), tx.mode(root, file.path)) for file in files if file.changed)
    return tuple(
        f"{path}: mode {now:04o} becomes {then:04o} again, as it was before fp4patch wrote the file"
        for path, now, then in changes
        if now is not None and now != then
    )


def _pristine(tx: Transaction, root: Path, path: str) -> bytes:
    pristine = tx.pristine(root, path)
    assert pristine is not None  # the receipt knows the file, so its pristine bytes were kept
    return pristine


def _foreign(path: str) -> Problem:
    return Problem(
        expected="the pristine bytes, or what fp4patch wrote",
        found="a file that somebody edited since",
        help=f"take the edit away (in a checkout: `git checkout -- {shlex.quote(path)}`) and run this again; if the "
        "whole tree was replaced by another release, delete its .fp4patch folder",
        file=path,
        state=State.FOREIGN,
    )


def _receipt(tx: Transaction, wanted: Plan, folds: FoldedTree) -> Receipt | None:
    """Return the new receipt of the tree; None if no file differs from its pristine bytes."""
    files = {}
    for path, done in folds.files.items():
        pristine = tx.pristine(wanted.tree.root, path)
        if done.patches and pristine is not None and done.desired is not None and pristine != done.desired:
            files[path] = ReceiptFile(
                sha256(pristine), sha256(done.desired), tx.mode(wanted.tree.root, path), done.patches
            )
    if not files:
        return None
    return Receipt(
        fp4patch=__version__,
        target=wanted.tree.target.name,
        version=str(wanted.tree.version or ""),
        variant=wanted.variant,
        applied_at=datetime.now(UTC).isoformat(timespec="seconds"),
        patches=tuple(f"{patch.id} {patch.version}" for patch in wanted.patches),
        files=files,
        remainders=folds.remainders,
    )


def _same(old: Receipt | None, new: Receipt | None) -> bool:
    """Return whether two receipts record the same state, independent of their time and fp4patch version."""
    if old is None or new is None:
        return old is new
    return replace(new, applied_at=old.applied_at, fp4patch=old.fp4patch) == old


def _retired_state(done: FoldedFile) -> State | None:
    states = {outcome.state for _, outcome in done.outcomes if isinstance(outcome, NothingToDo)}
    return next((state for state in (State.UPSTREAMED, State.NOT_NEEDED) if state in states), None)


def _retired(folds: FoldedTree) -> Iterator[Retired]:
    for _, patch, outcome in folds.outcomes():
        if isinstance(outcome, NothingToDo):
            yield Retired(patch.id, outcome.state, outcome.since, outcome.because)


def _holds(outer: Identified, inner: Identified) -> bool:
    """Return whether a tree contains another that is patched with it."""
    named = any(part.target == inner.target.name for part in outer.target.contains)
    return named and inner.root != outer.root and inner.root.is_relative_to(outer.root)


def _notes(folds: FoldedTree) -> Iterator[str]:
    """Return the special cases that edits met."""
    for path, patch, outcome in folds.outcomes():
        if isinstance(outcome, Rewritten):
            yield from (f"{patch.id}: {path}: {note}" for note in outcome.notes)


def _all_or_nothing(results: Sequence[TreeResult]) -> tuple[TreeResult, ...]:
    """Return one tree that refuses refuses them all."""
    if not any(result.problems for result in results):
        return tuple(results)
    return tuple(replace(result, state=ApplyState.REFUSED) for result in results)


def _applied_variant(tx: Transaction, tree: Identified, identified: Sequence[Identified], catalog: Catalog) -> Variant:
    """Return the one that its receipt names, else that of the tree around it or inside: nothing to do leaves no
    receipt."""
    kin = [other for other in identified if _holds(tree, other) or _holds(other, tree)]
    own, others = ({r.variant for one in trees if (r := tx.receipt(one.root))} for trees in ([tree], kin))
    names_one = own or (others if len(others) == 1 else set[str]())
    if not names_one:
        names = ", ".join(v.name for v in catalog.variants.values() if tree.target.name in v.targets)
        advice = recommend(tree, toolkit())
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
