"""Trees that a command has locked: pristine bytes, current bytes and receipt of each."""

import fcntl
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused
from fp4patch.core.globs import glob
from fp4patch.core.results import State
from fp4patch.tree.files import locate, mode, read, sha256
from fp4patch.tree.origin import Origin, Origins
from fp4patch.tree.receipt import Receipt, ReceiptFile, StateDirectory

COMPLETION = "`fp4patch apply` completes the change, `fp4patch revert` restores the pristine files"
"""What to do about an interrupted command."""


class LockedTree:
    """A tree under its lock: its files as they were when they were read, and its receipt."""

    def __init__(self, known: Identified) -> None:
        self.known = known
        self.root = known.root
        self.state_directory = StateDirectory(known.root, self._may_change)
        self.receipt: Receipt | None = self.state_directory.receipt()
        """Record of what was done to the tree; None if nothing was."""
        named = {patch.partition(" ")[0]: None for patch in self.receipt.patches} if self.receipt else {}
        diffs = self.state_directory.outside(self.receipt) if self.receipt else ()
        kept = {patch.id: patch for patch in reversed(diffs)}
        self.outside = tuple(kept[name] for name in named if name in kept)
        """Patches of the receipt that the catalog does not have."""
        self._contents: dict[str, bytes | None] = {}
        self.pristine = cache(self._pristine)
        self.origins = Origins(known, self.receipt, self.state_directory.blob) if self.receipt else None
        self.origin = cache(self._origin)

    def _may_change(self, path: str) -> bool:
        """Tell whether a receipt may name the file: one that a patch of the target is about, or was."""
        patches = load().patches.values()
        own = {place for p in patches if p.target == self.known.target.name for e in p.edits for place in e.search}
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return not hidden and glob((*self.known.target.touches, *sorted(own))).fullmatch(path) is not None

    @property
    def interrupted(self) -> bool:
        """True if a command was interrupted while it replaced files."""
        return self.receipt is not None and self.receipt.state == "applying"

    @property
    def on_record(self) -> Mapping[str, ReceiptFile]:
        """Files that the receipt names; none without a receipt."""
        return self.receipt.files if self.receipt else {}

    def current(self, path: str) -> bytes | None:
        """Return the file's bytes, read once; None if there is none. Refused: see :func:`files.read`."""
        if path not in self._contents:
            self._contents[path] = read(self.root, path)
        return self._contents[path]

    def read_before(self, contents: Mapping[str, bytes]) -> None:
        """Take the bytes of files that were read already, so that nobody sees others."""
        self._contents = {**contents, **self._contents}

    def _pristine(self, path: str) -> bytes | None:
        """Return the bytes before fp4patch touched the file: those of its origin, of the receipt, or the current ones.

        None: there is no such file, or upstream has none any more.
        """
        recorded = self.on_record.get(path)
        if recorded is None:
            return self.current(path)
        if origin := self.origin(path):
            return origin.pristine
        current = self.current(path) if self.interrupted else None
        if sha256(current) == recorded.pristine_sha256 or not recorded.pristine_sha256:
            return current if recorded.pristine_sha256 else None
        return self.state_directory.blob(recorded.pristine_sha256)

    def mode(self, path: str) -> int | None:
        """Return the permission bits of a file as it is; None if there is none."""
        return mode(locate(self.root, path))

    def pristine_mode(self, path: str) -> int | None:
        """Return the permission bits before fp4patch touched the file; None if there was none."""
        recorded = self.on_record.get(path)
        if recorded and recorded.mode is not None:
            return recorded.mode
        return None if recorded and not recorded.pristine_sha256 else self.mode(path)

    def _origin(self, path: str) -> Origin | None:
        """Return who brought a file of the receipt, if its bytes are none of those that the receipt names."""
        recorded, current = self.on_record.get(path), self.current(path)
        if recorded is None or self.origins is None:
            return None
        named = {recorded.pristine_sha256, recorded.written_sha256}
        named |= {recorded.before_sha256} if self.interrupted else set()
        return None if sha256(current) in named else self.origins.of(path, current)

    def read(self, path: str) -> bytes | None:
        """Return the pristine bytes that a plan looks at; None if they cannot be read."""
        try:
            return self.pristine(path)
        except Refused:
            return None

    def state(self, path: str, desired: bytes | None) -> State:
        """Return the state of a file, from its pristine bytes, the bytes that we wrote, and the desired ones."""
        if self.current(path) == desired:
            recorded = self.on_record.get(path)
            changed = recorded and recorded.executable is not None
            if recorded and changed and bool((self.mode(path) or 0) & 0o100) != recorded.executable:
                return State.OUTDATED
            return State.APPLIED if recorded else State.PRISTINE
        return self._other_state(path)

    def state_on_record(self, path: str) -> State:
        """Return the state of a file of the receipt whose desired bytes are not known: those that we wrote count."""
        state = self._other_state(path)
        written = sha256(self.current(path)) == self.on_record[path].written_sha256
        return State.APPLIED if written and state is not State.FOREIGN else state

    def _other_state(self, path: str) -> State:
        """Return the state of a file whose bytes are not the desired ones."""
        recorded, current = self.on_record.get(path), self.current(path)
        if current == self.pristine(path):
            return State.PRISTINE
        if recorded is None or ((origin := self.origin(path)) and not origin.known):
            return State.FOREIGN
        return State.OUTDATED


@contextmanager
def locked(trees: Sequence[Identified]) -> Iterator[Sequence[LockedTree]]:
    """Lock trees. Nothing is written. A tree that another command holds is named on stderr, and waited for."""
    with ExitStack() as locks:
        for root in sorted(tree.root for tree in trees):  # for everybody in one order
            locks.callback(os.close, _lock(root))
        yield [LockedTree(tree) for tree in trees]


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
