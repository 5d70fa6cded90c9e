"""The evaluation of a tree: what a variant makes of it, each patch by itself, and notes about the tree as a whole.

Apply, status, verify and doctor are users of this.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from fp4patch import __version__
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.outside import OutsidePatch
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.plan import patches_of
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.errors import Refused
from fp4patch.core.release import is_version
from fp4patch.core.results import NothingToDo, Rewritten, State
from fp4patch.core.wording import counted, joined
from fp4patch.tree.files import sha256
from fp4patch.tree.fold import FoldedFile, FoldedTree, fold_tree
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.receipt import KeptDiff, PatchStatus, Receipt
from fp4patch.tree.scan import Scan, basis, scan, source_hashes


def bypasses(root: Path, target: Target) -> Iterator[str]:
    """Yield one note for each kind of compiled code that is used in the place of a package's sources."""
    for bypass in target.bypasses:
        patterns = (os.path.join(glob.escape(str(root)), pattern) for pattern in bypass.paths)  # noqa: PTH118 - with ..
        found = {os.path.normpath(path) for pattern in patterns for path in glob.iglob(pattern, recursive=True)}  # noqa: PTH207 - the same
        if found:
            modules = f"{len(found)} compiled module{'s' * (len(found) != 1)}"
            yield f"{os.path.commonpath([os.path.dirname(path) for path in found])}: {modules}: {bypass.because}"  # noqa: PTH120 - the same


def origin_notes(tree: LockedTree) -> Iterator[str]:
    """Yield one note if a tree is of another release than its receipt, or if files have other pristine bytes now."""
    if tree.origins is None:
        return
    by, gone = Counter[str](), 0
    for path, file in tree.on_record.items():
        with suppress(Refused):  # the file is a problem of its own
            origin = tree.origin(path)
            if origin and origin.known:
                gone += origin.pristine is None
                by[origin.by] += origin.pristine is not None and sha256(origin.pristine) != file.pristine_sha256
    renewed = [f"the pristine bytes of {counted(n, 'file')} are those of {name}" for name, n in by.items() if n]
    lost = f"{counted(gone, 'patched file is', 'patched files are')} gone" if gone else ""
    if note := joined(tree.origins.change_of_release, *renewed, lost, by="; "):
        yield note


def record_of(tree: LockedTree, variant: str, patches: Sequence[Patch]) -> Receipt:
    """Return what a receipt says before anything is folded."""
    return Receipt(
        fp4patch=__version__,
        target=tree.known.target.name,
        version=str(tree.known.version or ""),
        variant=variant,
        patches=tuple(f"{patch.id} {patch.version}" for patch in patches),
        files={},
        diffs=tuple(_kept_diff(patch) for patch in patches if isinstance(patch, OutsidePatch)),
    )


def _kept_diff(patch: OutsidePatch) -> KeptDiff:
    origin = patch.origin
    return KeptDiff(
        patch.id,
        patch.link,
        sha256(patch.diff),
        origin.stack,
        origin.stack_sha256,
        origin.file_sha256,
        origin.merged,
    )


def evaluate(tree: LockedTree, variant: Variant, catalog: Catalog) -> tuple[FoldedTree, Receipt]:
    """Return the fold of a variant, and what a receipt says of it.

    Both are read from the tree's receipt as long as nothing changed since: its files, the tree's other sources, and
    fp4patch itself.
    """
    patches, options = patches_of(variant, tree.known, catalog)
    record, receipt = record_of(tree, variant.name, patches), tree.receipt
    if receipt and record == replace(receipt, files={}, folders=(), states=(), remainders=(), basis=""):
        files = {
            path: FoldedFile(tree.current(path), file.patches, executable=file.executable)
            for path, file in receipt.files.items()
        }
        written = {path: sha256(file.desired) for path, file in files.items()}
        if basis(source_hashes(tree), written) == receipt.basis:
            return FoldedTree(tuple(patches), files, (), (), receipt.remainders), receipt
    return fold_tree(tree, variant.name, patches, options), record


def release_notes(tree: LockedTree, every: Sequence[LockedTree]) -> Iterator[str]:
    """Yield a note if another of the trees is built with another release of this one."""
    known = tree.known
    for other in every:
        for pin in other.known.target.pins:
            text = (other.read(pin.file) or b"").decode("utf-8", "replace")
            found = re.search(pin.pattern, text) if pin.target == known.target.name else None
            if found and known.version and is_version(found[1]) and Version(found[1]) != known.version:
                yield (
                    f"{other.root} is built with {pin.target} {found[1]}, and this is {known.version}: "
                    f"`fp4patch fetch {pin.target}=={found[1]} DIR` gets that release"
                )


def patches_to_try(tree: LockedTree, catalog: Catalog, *, all_patches: bool = True) -> tuple[Patch, ...]:
    """Return the patches of the tree's target. Not ``all_patches``: only those that repair a known defect."""
    target = tree.known.target
    repairs = {defect.patch for defect in target.defects}
    own = (patch for patch in catalog.patches.values() if patch.target == target.name)
    return tuple(patch for patch in own if all_patches or patch.name in repairs)


def each_patch(
    tree: LockedTree, scanned: Scan, catalog: Catalog, patches: Sequence[Patch], states: Mapping[str, State]
) -> tuple[PatchStatus, ...]:
    """Return each patch by itself, on the pristine bytes; those of different variants may exclude one another.

    A patch that applies has the state of the files that it changes; of files without a state, it is pristine.
    """
    target, options = tree.known.target.name, dict[str, Mapping[str, str]]()
    for variant in catalog.variants.values():
        # Those of the first variant that has the patch: no anchor depends on them.
        options = (variant.options_of(target) if target in variant.targets else {}) | options
    folds = (fold_tree(tree, "", [patch], options, scanned) for patch in patches)
    return tuple(status for folded in folds for status in patch_states(folded, states))


def try_patches(tree: LockedTree, catalog: Catalog, *, all_patches: bool = True) -> tuple[PatchStatus, ...]:
    """Return each patch of the tree's target by itself. ``all_patches``: as for :func:`patches_to_try`."""
    patches = patches_to_try(tree, catalog, all_patches=all_patches)
    return each_patch(tree, scan(tree, patches), catalog, patches, {})


def patch_states(folds: FoldedTree, states: Mapping[str, State]) -> tuple[PatchStatus, ...]:
    """Return the state of each patch that was folded, by the states of the files."""
    return tuple(_patch_status(patch, folds, states) for patch in folds.patches)


def _patch_status(patch: Patch, folds: FoldedTree, states: Mapping[str, State]) -> PatchStatus:
    """From its edits and its post-conditions: refused, in the state of the files that it changes, or retired."""
    outcomes = [(path, outcome) for path, by, outcome in folds.outcomes() if by == patch.id]
    drifts = [problem for problem in folds.problems if problem.patch == patch.id and problem.state is State.DRIFTED]
    changed = [states.get(path, State.PRISTINE) for path, o in outcomes if isinstance(o, Rewritten)]
    if changed and not drifts:
        state = next(state for state in State if state in changed)
        undone = [o.reversal for _, o in outcomes if isinstance(o, Rewritten) and o.reversal]
        if undone and state is State.PRISTINE:
            return PatchStatus(patch.id, State.REVERSED, "; ".join(undone))
        return PatchStatus(patch.id, state, "")
    for retired in (State.UPSTREAMED, State.NOT_NEEDED) if not drifts else ():
        for _, outcome in outcomes:
            if isinstance(outcome, NothingToDo) and outcome.state is retired:
                since = f"since {outcome.since}: " if outcome.since else ""
                return PatchStatus(patch.id, retired, since + outcome.because)
    # None of its files could be read. If several patches change a file, the first one reports it.
    drifts += sorted(folds.problems, key=lambda problem: problem.patch != patch.id)
    place = f"{drifts[0].file}:{drifts[0].line}" if drifts[0].line else drifts[0].file
    reason = f"{place}{': ' * bool(place)}expected {drifts[0].expected}, found {drifts[0].found}"
    return PatchStatus(patch.id, State.DRIFTED, reason)
