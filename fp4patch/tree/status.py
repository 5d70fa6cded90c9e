"""``fp4patch status``: what state each patch and each file of a tree is in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.core.document import Document, Report, key, shown
from fp4patch.core.results import State
from fp4patch.tree.evaluate import (
    bypasses,
    each_patch,
    evaluate,
    origin_notes,
    patch_states,
    patches_to_try,
    release_notes,
)
from fp4patch.tree.files import sha256
from fp4patch.tree.fold import without_receipt
from fp4patch.tree.locked import COMPLETION, LockedTree
from fp4patch.tree.locking import locked
from fp4patch.tree.receipt import PatchStatus, Remainder
from fp4patch.tree.scan import scan


@dataclass(frozen=True)
class FileStatus(Document):
    """A file that fp4patch changed or would change."""

    path: str
    state: State
    patches: tuple[str, ...]


@dataclass(frozen=True)
class TreeStatus(Document):
    """State of a tree from its receipt and its bytes. Without a receipt, every patch of its target is tried on it."""

    root: Path = field(metadata=key("tree"))
    target: str
    version: str
    variant: str
    """Variant that is applied; empty if none."""
    files: tuple[FileStatus, ...]
    """Files that a patch changes, or would change."""
    patches: tuple[PatchStatus, ...]
    notes: tuple[str, ...]
    remainders: tuple[Remainder, ...] = ()
    """Places that the patches of the variant leave unchanged."""

    @property
    @shown()
    def state(self) -> State:
        """The state of its files that needs attention most; without any it is pristine, or reversed.

        A patch of the applied variant that drifted counts too: code that it should have changed is in another file. A
        variant that is applied to some of its files is outdated.
        """
        states = {file.state for file in self.files} or {State.PRISTINE}
        if State.APPLIED in states and any(file.state is State.PRISTINE and file.patches for file in self.files):
            states.add(State.OUTDATED)
        counted = {State.REVERSED, State.DRIFTED} if self.variant else {State.REVERSED}
        states |= counted & {patch.state for patch in self.patches}
        return next(state for state in State if state in states)


@dataclass(frozen=True)
class StatusReport(Report):
    """States of trees."""

    trees: tuple[TreeStatus, ...]


def status(trees: Sequence[Path], *, all_patches: bool = True) -> tuple[TreeStatus, ...]:
    """Return the state of each tree. Changes nothing. ``all_patches``: as for :func:`patches_to_try`."""
    catalog = load()
    with locked(identify_all(trees, catalog)) as every:
        return tuple(_tree(tree, every, catalog, all_patches) for tree in every)


def _tree(tree: LockedTree, every: Sequence[LockedTree], catalog: Catalog, all_patches: bool) -> TreeStatus:
    known = tree.known
    receipt = tree.receipt
    remainders = tuple[Remainder, ...]()
    catalog = catalog.including(tree.outside)
    variant = catalog.variants.get(receipt.variant) if receipt else None
    if variant:
        folds, record = evaluate(tree, variant, catalog)
        scanned = folds.scan
        files = {}
        for path, done in folds.files.items():
            drifted = done.problems and tree.current(path) == tree.pristine(path)
            state = State.DRIFTED if drifted else tree.state(path, done.desired)
            state = State.OUTDATED if tree.interrupted and state is State.APPLIED else state
            files[path] = FileStatus(path, state, done.patches)
        patches = record.states or patch_states(folds, {path: file.state for path, file in files.items()})
        remainders = folds.remainders
    else:
        files = {
            path: FileStatus(path, tree.state_on_record(path), file.patches) for path, file in tree.on_record.items()
        }
        states = {path: file.state for path, file in files.items()}
        tried = patches_to_try(tree, catalog, all_patches=all_patches)
        scanned = scan(tree, tried)
        patches = each_patch(tree, scanned, catalog, tried, states)
    files = {path: file for path, file in files.items() if file.state is not State.PRISTINE or _is_there(tree, path)}
    notes = [*_origins(tree)]
    if tree.interrupted:
        notes.append(f"a command was interrupted here: {COMPLETION}")
    notes += origin_notes(tree)
    for path, problem in without_receipt(tree, scanned).items() if scanned else ():
        files[path] = FileStatus(path, State.FOREIGN, ())
        notes.append(f"{path}: {problem.found}: {problem.help}")
    notes += release_notes(tree, every)
    if any(part.on_record for part in every if part.root.is_relative_to(tree.root)):
        notes += bypasses(tree.root, known.target)
    return TreeStatus(
        tree.root,
        known.target.name,
        str(known.version or ""),
        receipt.variant if receipt else "",
        tuple(files.values()),
        patches,
        tuple(notes),
        remainders,
    )


def _is_there(tree: LockedTree, path: str) -> bool:
    """Tell whether there is a file: upstream may not have it any more."""
    return tree.current(path) is not None


def _origins(tree: LockedTree) -> Iterator[str]:
    """Yield a note about each patch that is not the catalog's, and about each stack."""
    for name, group in groupby(tree.outside, lambda patch: (patch.origin.stack, patch.origin.stack_sha256)):
        if name[0]:
            merged = [patch.name for patch in group if patch.origin.merged]
            after = f"; merged onto this release: {', '.join(merged)}" if merged else ""
            yield f"the stack {name[0]} is applied, SHA-256 {name[1]}{after}"
        else:
            yield from (f"{p.id} is the diff of {p.link}, SHA-256 {sha256(p.diff)}" for p in group)
