"""Locks of trees, held by the kernel, and what a locked tree has for a receipt."""

import fcntl
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused
from fp4patch.tree.evaluate import evaluate
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.recovered import Recovered, recovered


@contextmanager
def locked(trees: Sequence[Identified]) -> Iterator[Sequence[LockedTree]]:
    """Lock trees. Nothing is written. A tree that another command holds is named on stderr, and waited for."""
    with ExitStack() as locks:
        for root in sorted(tree.root for tree in trees):  # for everybody in one order
            locks.callback(os.close, _lock(root))
        yield [_with_recovered(LockedTree(tree)) for tree in trees]


def _lock(root: Path) -> int:
    """Return a descriptor that holds the tree's directory itself until it is closed.

    No lock file that could be left behind, and the kernel lets go when we die.
    """
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logging.getLogger(__name__).warning("waiting for another fp4patch that works on %a", str(root))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise Refused(
            f"{root} cannot be locked: {error.strerror}", help="name a directory on a local disk, that you may read"
        ) from error
    return descriptor


def _with_recovered(tree: LockedTree) -> LockedTree:
    """Return the tree; if it is patched and has no receipt, with what that would say."""
    found = None if tree.receipt else recovered(tree.known, tree.may_change, lambda found: _written(tree, found))
    return LockedTree(tree.known, found) if found else tree


def _written(tree: LockedTree, found: Recovered) -> Mapping[str, bytes | None]:
    """Return what the variant of a recovered receipt makes of its files."""
    catalog = load()
    folds, _ = evaluate(LockedTree(tree.known, found), catalog.variants[found.receipt.variant], catalog)
    return {path: file.desired for path, file in folds.files.items() if not file.problems}
