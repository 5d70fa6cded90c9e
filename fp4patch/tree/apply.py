"""Bring trees to the state of a variant, or of none: all of them, or nothing.

A file's desired bytes are the fold of its edits over its pristine bytes. So applying twice is a comparison, another
variant is another fold, and reverting is the empty one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, claimed_version, contained, identify_all, is_at
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.outside import OutsidePatch
from fp4patch.catalog.outside import read as read_outside
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import patches_of
from fp4patch.catalog.variant import Variant
from fp4patch.core.document import HIDDEN, Document, Report, key, shown
from fp4patch.core.errors import UsageError
from fp4patch.core.results import Problem, Rewritten, State
from fp4patch.tree.candidate_files import basis
from fp4patch.tree.files import sha256
from fp4patch.tree.fold import FoldedTree, fold_tree, plan_for, plan_patches
from fp4patch.tree.installed import bypasses
from fp4patch.tree.locked import LockedTree, LockedTrees, locked
from fp4patch.tree.lost_receipt import without_receipt
from fp4patch.tree.receipt import KeptDiff, Receipt
from fp4patch.tree.result import PatchStatus, Remainder
from fp4patch.tree.status import is_as_recorded, patch_states, release_notes
from fp4patch.tree.unified_diff import unified
from fp4patch.tree.write import Staged, stage
from fp4patch.tree.write import write as write_all


class NoVariantError(UsageError):
    """No variant was named for a tree to which none is applied."""

    def __init__(self, tree: Identified, variants: Iterable[str]) -> None:
        message = f"no variant is applied to {tree.root} yet, and none was named"
        super().__init__(message, help=f"variants: {', '.join(variants)}")
        self.tree = tree


class ApplyState(StrEnum):
    """Result of apply or revert on one tree; of a dry run, the result that a real run would have."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REVERTED = "reverted"
    REFUSED = "refused"


@dataclass(frozen=True)
class FileResult(Document):
    """One file of a tree."""

    path: str
    """Path relative to the tree."""
    state: State
    """State at the end of the command, or of a real run."""
    patches: tuple[str, ...]
    """Patches with their versions: ``cutlass/e2m1-guard 1``."""
    before: bytes = field(metadata=HIDDEN)
    after: bytes = field(metadata=HIDDEN)
    diff: str = ""
    """With ``--diff``: a unified diff, as ``git apply`` accepts it."""

    @property
    def changed(self) -> bool:
        """True if the file's bytes change."""
        return self.before != self.after

    @property
    @shown()
    def before_sha256(self) -> str:
        """Hash of the bytes before; equal to that after if the file does not change."""
        return hashlib.sha256(self.before).hexdigest()

    @property
    @shown()
    def after_sha256(self) -> str:
        """Hash of the bytes after."""
        return hashlib.sha256(self.after).hexdigest()

    def unified(self) -> str:
        """Return the changes as a unified diff."""
        return unified(self.path, self.before, self.after)


@dataclass(frozen=True)
class TreeResult(Document):
    """Result of a command on one tree; of a dry run, the result that a real run would have."""

    root: Path = field(metadata=key("tree"))
    target: str
    version: str
    variant: str
    state: ApplyState
    files: tuple[FileResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Every reason to refuse."""
    patches: tuple[PatchStatus, ...] = ()
    """The variant's patches, each with what it came to."""
    notes: tuple[str, ...] = ()
    """Special cases that an edit met; an interrupted command that was completed first; compiled code that is used."""
    remainders: tuple[Remainder, ...] = ()
    """Places that contain what the patches search for and that remain unchanged."""
    edits: str = ""
    """Edits by others since fp4patch wrote the files, which are a reason to refuse, as a unified diff."""


@dataclass(frozen=True)
class Applied(Report):
    """Result of a command on all of its trees."""

    verb: Literal["apply", "revert"] = field(metadata=key("command"))
    write: bool = field(metadata=HIDDEN)
    """True if files may be written: not by ``--dry-run``."""
    trees: tuple[TreeResult, ...] = ()
    cost: str = ""
    """Cost of the variant on a target that has the instruction."""

    @property
    @shown()
    def written(self) -> bool:
        """True if files changed: not by ``--dry-run``, not if there was nothing to do."""
        return self.write and self.changed

    @property
    @shown()
    def target(self) -> str | None:
        """Target of the tree; null if there are several trees."""
        return self.trees[0].target if len(self.trees) == 1 else None

    @property
    @shown()
    def version(self) -> str | None:
        """Version of the tree; null if there are several trees."""
        return self.trees[0].version if len(self.trees) == 1 else None

    @property
    @shown()
    def variant(self) -> str:
        """Variant of the trees."""
        return self.trees[0].variant

    @property
    @shown()
    def files(self) -> tuple[FileResult, ...]:
        """Files of all trees; ``trees`` has those of each."""
        return tuple(file for tree in self.trees for file in tree.files)

    @property
    @shown()
    def problems(self) -> tuple[Problem, ...]:
        """Problems of all trees; ``trees`` has those of each."""
        return tuple(problem for tree in self.trees for problem in tree.problems)

    @property
    def refused(self) -> bool:
        """True if any tree has a problem: one problem refuses the whole command."""
        return self.state is ApplyState.REFUSED

    @property
    def changed(self) -> bool:
        """True if a tree changes, or would change in a real run."""
        return self.state in (ApplyState.APPLIED, ApplyState.REVERTED)

    @property
    @shown()
    def state(self) -> ApplyState:
        """Result for all trees together; one refusal refuses all."""
        states = {tree.state for tree in self.trees}
        order = (ApplyState.REFUSED, ApplyState.APPLIED, ApplyState.REVERTED)
        return next((state for state in order if state in states), ApplyState.UNCHANGED)

    def with_diffs(self) -> Applied:
        """Return the same with a diff in each file."""
        trees = (replace(t, files=tuple(replace(f, diff=f.unified()) for f in t.files)) for t in self.trees)
        return replace(self, trees=tuple(trees))


def apply(
    trees: Sequence[Path],
    variant: str | None,
    *,
    write: bool = True,
    version: str | None = None,
    outside: Sequence[Path] = (),
) -> Applied:
    """Bring each tree to the variant's state. ``variant`` None: the one that is applied already, brought up to date.

    ``outside`` are directories of patches that are applied too; without them and a variant, those that the tree keeps.
    ``version`` is that of the trees if they state none or a wrong one. Problems are values in what is returned, and
    then nothing was written. UsageError: no such variant, or none for that kind of tree. Refused: not a tree.
    """
    catalog = load()
    name = catalog.variant(variant).name if variant else None
    named = [read_outside(folder, catalog.targets) for folder in outside]
    identified = identify_all(trees, catalog, version)
    if strays := [p.id for p in named if p.target not in {tree.target.name for tree in identified}]:
        raise UsageError(f"{strays[0]} is for none of these trees", help="name the tree that it changes, too")
    with locked(identified) as every:
        staged, results = [], []
        for tree in every:
            keeps = tree.outside if not (named or name) else ()
            whole = catalog.including([*(p for p in named if p.target == tree.known.target.name), *keeps])
            chosen = whole.variant(name or _applied_variant(tree, every, catalog).name)
            patches, options = patches_of(chosen, tree.known, whole)
            record = _record(tree, chosen.name, patches)
            notes = tuple(release_notes(tree, every))
            if is_as_recorded(tree, record):
                staged.append(Staged(tree, {}, (), None, tree.receipt))
                results.append(_unchanged_tree(tree, notes))
                continue
            folds = fold_tree(tree, plan_patches(tree, chosen.name, patches, options))
            done = {path: State.APPLIED for path, file in folds.files.items() if file.patches}
            states, found = patch_states(patches, folds, done), basis(tree, done) if done else ""
            record = replace(record, states=states, remainders=folds.remainders, basis=found)
            diffs = (patch.diff for patch in patches if isinstance(patch, OutsidePatch))
            staged.append(stage(tree, folds.desired, record, folds.undecided, diffs))
            results.append(_applied_tree(staged[-1], folds, record, notes, catalog))
        cost = catalog.variants[results[0].variant].cost
        applied = Applied("apply", write, _all_or_nothing(results), cost)
        if write and not applied.refused:
            write_all(staged)
    return applied


def revert(trees: Sequence[Path]) -> Applied:
    """Give each tree its pristine bytes back and remove every trace. A tree without a receipt is left as it is."""
    catalog = load()
    named = (Path(os.path.realpath(path)) for path in trees)
    with locked([root for path in named for root in _with_contained(path, catalog)]) as every:
        staged = [stage(tree, {}) for tree in every]
        reverted = Applied("revert", True, _all_or_nothing([_reverted_tree(change, catalog) for change in staged]))
        if not reverted.refused:
            write_all(staged)
    return reverted


def _record(tree: LockedTree, variant: str, patches: Sequence[Patch]) -> Receipt:
    """Return what a receipt says before anything is folded."""
    return Receipt(
        fp4patch=__version__,
        target=tree.known.target.name,
        version=str(tree.known.version or ""),
        variant=variant,
        patches=tuple(f"{patch.id} {patch.version}" for patch in patches),
        files={},
        diffs=tuple(KeptDiff(p.id, p.link, sha256(p.diff)) for p in patches if isinstance(p, OutsidePatch)),
    )


def _reverted_tree(staged: Staged, catalog: Catalog) -> TreeResult:
    tree, receipt = staged.tree, staged.tree.receipt
    if receipt is None:
        known = tree.known  # revert of a directory that is not a tree is a mistake and is reported
        kept = tuple(without_receipt(tree).values())
        state = ApplyState.REFUSED if kept else ApplyState.UNCHANGED
        return TreeResult(tree.root, known.target.name, str(known.version or ""), "", state, problems=kept)
    files = tuple(
        FileResult(path, State.PRISTINE, (), file.before or b"", file.after or b"")
        for path, file in staged.files.items()
    )
    state = ApplyState.REFUSED if staged.problems else ApplyState.REVERTED
    target = catalog.targets.get(receipt.target)
    compiled = tuple(bypasses(tree.root, target, claimed_version(tree.root, target))) if target else ()
    edits = _edits(staged, catalog)
    named = (tree.root, receipt.target, receipt.version, receipt.variant)
    return TreeResult(*named, state, files, staged.problems, notes=compiled, edits=edits)


def _unchanged_tree(tree: LockedTree, notes: tuple[str, ...]) -> TreeResult:
    """Return the result for a tree in which nothing changed since the receipt."""
    assert tree.receipt
    current = {path: tree.current(path) or b"" for path in tree.receipt.files}
    files = tuple(
        FileResult(path, State.APPLIED, file.patches, current[path], current[path])
        for path, file in tree.receipt.files.items()
    )
    return _result(tree, tree.receipt, ApplyState.UNCHANGED, files, (), notes)


def _applied_tree(
    staged: Staged, folds: FoldedTree, record: Receipt, notes: tuple[str, ...], catalog: Catalog
) -> TreeResult:
    files = tuple(
        FileResult(
            path,
            State.APPLIED if done.patches else State.PRISTINE,
            done.patches,
            file.before or b"",
            file.after or b"",
        )
        for path, done in folds.files.items()
        if (file := staged.files.get(path)) and (done.patches or file.changed)
    )
    problems = folds.problems + staged.problems
    if problems:
        state = ApplyState.REFUSED
    elif not staged.changed:
        state = ApplyState.UNCHANGED
    else:
        state = ApplyState.APPLIED if staged.ends else ApplyState.REVERTED
    result = _result(staged.tree, record, state, files, problems, (*_notes(staged.tree, folds), *notes))
    return replace(result, edits=_edits(staged, catalog))


def _result(
    tree: LockedTree,
    record: Receipt,
    state: ApplyState,
    files: tuple[FileResult, ...],
    problems: tuple[Problem, ...],
    notes: tuple[str, ...],
) -> TreeResult:
    known = tree.known
    notes = (*notes, *bypasses(known.root, known.target, known.version))
    named = (tree.root, record.target, record.version, record.variant)
    return TreeResult(*named, state, files, problems, record.states, notes, record.remainders)


def _edits(staged: Staged, catalog: Catalog) -> str:
    """Return what others changed in the files that a tree is refused for, since fp4patch wrote them, as a diff."""
    tree, receipt = staged.tree, staged.tree.receipt
    foreign = {problem.file for problem in staged.problems if problem.state is State.FOREIGN} & tree.on_record.keys()
    catalog = catalog.including(tree.outside)
    if receipt is None or not foreign or receipt.variant not in catalog.variants:
        return ""
    folds, diffs = fold_tree(tree, plan_for(tree, catalog.variants[receipt.variant], catalog)), ""
    for path in sorted(foreign):
        written = folds.files[path].desired
        if sha256(written) == receipt.files[path].written_sha256:
            diffs += unified(path, written or b"", tree.current(path) or b"")
    return diffs


def _with_contained(root: Path, catalog: Catalog) -> Iterator[Path]:
    """Yield a directory, and the trees in it that an apply changes with it."""
    yield root
    for target in catalog.targets.values():
        if is_at(root, target):
            yield from (inside.root for inside in contained(root, target, catalog))


def _notes(tree: LockedTree, folds: FoldedTree) -> Iterator[str]:
    if tree.interrupted:
        yield "a command was interrupted here before"
    for path, patch, outcome in folds.outcomes():
        if isinstance(outcome, Rewritten):
            yield from (f"{patch}: {path}: {note}" for note in outcome.notes)


def _all_or_nothing(results: Sequence[TreeResult]) -> tuple[TreeResult, ...]:
    """Return one tree that refuses refuses them all."""
    if not any(result.problems for result in results):
        return tuple(results)
    return tuple(replace(result, state=ApplyState.REFUSED) for result in results)


def _applied_variant(tree: LockedTree, every: LockedTrees, catalog: Catalog) -> Variant:
    """Return the variant of its receipt, else the only one that the other trees have."""
    target = tree.known.target.name
    applied = {other.receipt.variant for other in ([tree] if tree.receipt else every) if other.receipt}
    if len(applied) != 1:
        raise NoVariantError(tree.known, (v.name for v in catalog.variants.values() if target in v.targets))
    (name,) = applied
    if name not in catalog.variants:
        raise UsageError(
            f"{name} is applied to {tree.root}, a variant that this fp4patch ({__version__}) does not have",
            help=f"name one with --variant ({', '.join(catalog.variants)}), or `fp4patch revert` the tree",
        )
    return catalog.variants[name]
