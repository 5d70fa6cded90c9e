"""Bring trees to the state of a variant, or of none: all of them, or nothing.

A file's desired bytes are the fold of its edits over its pristine bytes. So applying twice is a comparison, another
variant is another fold, and reverting is the empty one.
"""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from fp4patch import __version__
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import ALONE, Catalog, load
from fp4patch.catalog.outside import OutsidePatch, located
from fp4patch.core.document import HIDDEN, Document, Report, key, shown
from fp4patch.core.errors import UsageError
from fp4patch.core.results import Problem, Rewritten, State
from fp4patch.core.wording import counted
from fp4patch.tree.evaluate import bypasses, evaluate, origin_notes, patch_states, record_of, release_notes
from fp4patch.tree.files import sha256, unified
from fp4patch.tree.fold import FoldedTree, fold_tree
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.locking import locked
from fp4patch.tree.receipt import PatchStatus, Receipt, Remainder
from fp4patch.tree.stamp import find_stamp
from fp4patch.tree.write import FileResult, Staged, stage
from fp4patch.tree.write import write as write_all


class NoVariantError(UsageError):
    """No variant was named for a tree to which none is applied."""


class ApplyState(StrEnum):
    """Result of apply or revert on one tree; of a dry run, the result that a real run would have."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REVERTED = "reverted"
    REFUSED = "refused"


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
    trees: tuple[TreeResult, ...]

    @property
    @shown()
    def written(self) -> bool:
        """True if files changed: not by ``--dry-run``, not if there was nothing to do."""
        return self.write and self.changed

    @property
    @shown()
    def state(self) -> ApplyState:
        """Result for all trees together; one refusal refuses all."""
        states = {tree.state for tree in self.trees}
        order = (ApplyState.REFUSED, ApplyState.APPLIED, ApplyState.REVERTED)
        return next((state for state in order if state in states), ApplyState.UNCHANGED)

    @property
    def refused(self) -> bool:
        """True if any tree has a problem: one problem refuses the whole command."""
        return self.state is ApplyState.REFUSED

    @property
    def changed(self) -> bool:
        """True if a tree changes, or would change in a real run."""
        return self.state in (ApplyState.APPLIED, ApplyState.REVERTED)


def apply(
    trees: Sequence[Path],
    variant: str | None,
    *,
    write: bool = True,
    version: str | None = None,
    outside: Sequence[OutsidePatch] = (),
) -> Applied:
    """Bring each tree to the variant's state. ``variant`` None: the one that is applied already, brought up to date.

    ``outside`` are patches that are applied too, those without a target to the only kind of tree; without them and a
    variant, those that the tree keeps. ``version`` is that of the trees if they state none or a wrong one. Problems are
    values in what is returned, and then nothing was written. UsageError: no such variant, or none for that kind of
    tree. Refused: not a tree.
    """
    catalog = load()
    identified = identify_all(trees, catalog, version)
    kinds = {tree.target.name for tree in identified}
    own = {tree.target.name for tree in identified if tree.root in {Path(os.path.realpath(tree)) for tree in trees}}
    if len(own) > 1 and (vague := next((p.origin.stack for p in outside if not p.target), "")):
        raise UsageError(f"which of these trees is the stack {vague} for?", help="say it in stack.toml: target = NAME")
    named = [replace(patch, target=patch.target or next(iter(own))) for patch in outside]
    if strays := [p.id for p in named if p.target not in kinds]:
        raise UsageError(f"{strays[0]} is for none of these trees", help="name the tree that it changes, too")
    with locked(identified) as every:
        staged, results = [], []
        for tree in every:
            keeps = tree.outside if not (named or variant) else ()
            mine = [patch for patch in named if patch.target == tree.known.target.name]
            layout = tree.known.target.layout_at(tree.root)
            placed = located(mine, layout, lambda path, tree=tree: tree.read(path) is not None)  # type: ignore[misc]
            whole = catalog.including([*placed, *keeps])
            chosen = whole.variant(variant or _applied_variant(tree, every, whole, alone=bool(named)))
            folds, record = evaluate(tree, chosen, whole)
            done = {path: State.APPLIED for path, file in folds.files.items() if file.patches}
            record = replace(record, states=record.states or patch_states(folds, done), remainders=folds.remainders)
            staged.append(_staged(tree, folds, record))
            results.append(_result(staged[-1], record, folds, *release_notes(tree, every)))
        applied = Applied("apply", write, _all_or_nothing(results))
        if write and not applied.refused:
            write_all(staged)
    return applied


def revert(trees: Sequence[Path]) -> Applied:
    """Give each tree its pristine bytes back and remove every trace. A tree without a receipt is left as it is."""
    with locked(identify_all(trees, load())) as every:
        staged, results = [], []
        for tree in every:
            folds = fold_tree(tree, "", (), {})
            record = replace(tree.receipt or record_of(tree, "", ()), states=(), remainders=())
            staged.append(_staged(tree, folds, record))
            results.append(_result(staged[-1], record, folds))
        reverted = Applied("revert", True, _all_or_nothing(results))
        if not reverted.refused:
            write_all(staged)
    return reverted


def _staged(tree: LockedTree, folds: FoldedTree, record: Receipt) -> Staged:
    """Return what gives a tree its desired state. A tree with commits of an export is the business of git."""
    staged = stage(tree, folds, record)
    commits = tree.recovered.commits if tree.recovered else ()
    if not commits:
        return staged
    changed = any(file.changed for file in staged.files.values())
    problem = Problem(
        expected=f"the files of {record.variant}, or those without any patch",
        found=f"{counted(len(commits), 'commit')} of `fp4patch export`, {commits[-1]} to {commits[0]}",
        help=f"`git -C {shlex.quote(str(tree.root))} revert --no-edit {' '.join(commits)}` takes them back; "
        "then run this again",
        state=State.OUTDATED,
    )
    return replace(staged, problems=(*staged.problems, *([problem] if changed else [])), begins=None, ends=None)


def _result(staged: Staged, record: Receipt, folds: FoldedTree, *notes: str) -> TreeResult:
    known = staged.tree.known
    if staged.problems:
        state = ApplyState.REFUSED
    elif not staged.changed:
        state = ApplyState.UNCHANGED
    else:
        state = ApplyState.APPLIED if staged.ends else ApplyState.REVERTED
    interrupted = ("a command was interrupted here before",) if staged.tree.interrupted else ()
    outcomes = ((path, by, outcome) for path, by, outcome in folds.outcomes() if isinstance(outcome, Rewritten))
    back = (f"{by}: {path}:{o.lines[0]}: {o.reversal}; it is back" for path, by, o in outcomes if o.reversal)
    return TreeResult(
        root=known.root,
        target=record.target,
        version=str(known.version or "") or record.version,
        variant=record.variant,
        state=state,
        files=tuple(file for file in staged.files.values() if file.patches or file.changed),
        problems=staged.problems,
        patches=record.states,
        notes=(*interrupted, *origin_notes(staged.tree), *back, *notes, *bypasses(known.root, known.target)),
        remainders=record.remainders,
        edits=_edits(staged),
    )


def _edits(staged: Staged) -> str:
    """Return what others changed in the files that a tree is refused for, since fp4patch wrote them, as a diff."""
    tree, receipt = staged.tree, staged.tree.receipt
    foreign = {problem.file for problem in staged.problems if problem.state is State.FOREIGN} & tree.on_record.keys()
    if tree.origins and tree.origins.change_of_release:  # a file of another release is no edit of what was written
        foreign = {path for path in foreign if find_stamp(tree.current(path) or b"")}
    catalog = load().including(tree.outside)
    if receipt is None or not foreign or receipt.variant not in catalog.variants:
        return ""
    (folds, _), diffs = evaluate(tree, catalog.variants[receipt.variant], catalog), ""
    for path in sorted(foreign):
        written = folds.files[path].desired
        if sha256(written) == receipt.files[path].written_sha256:
            diffs += unified(path, written or b"", tree.current(path) or b"")
    return diffs


def _all_or_nothing(results: Sequence[TreeResult]) -> tuple[TreeResult, ...]:
    """Return the results, of which one that refuses refuses them all."""
    if any(result.problems for result in results):
        return tuple(replace(result, state=ApplyState.REFUSED) for result in results)
    return tuple(results)


def _applied_variant(tree: LockedTree, every: Sequence[LockedTree], catalog: Catalog, *, alone: bool) -> str:
    """Return the variant of its receipt, else the only one that the other trees have. ``alone``: else none is needed,
    since patches are named."""
    target = tree.known.target.name
    applied = {other.receipt.variant for other in ([tree] if tree.receipt else every) if other.receipt}
    if len(applied) != 1 and alone:
        return ALONE
    if len(applied) != 1:
        variants = [variant.name for variant in load().variants.values() if target in variant.targets]
        message = f"no variant is applied to {tree.root} yet, and none was named"
        raise NoVariantError(message, help=f"variants: {', '.join(variants)}")
    (name,) = applied
    if name not in catalog.variants:
        raise UsageError(
            f"{name} is applied to {tree.root}, a variant that this fp4patch ({__version__}) does not have",
            help=f"name one with --variant ({', '.join(load().variants)}), or `fp4patch revert` the tree",
        )
    return name
