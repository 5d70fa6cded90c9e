"""Trees that a command has locked: pristine bytes, current bytes and receipt of each."""

import fcntl
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from fp4patch.catalog.editable_files import EditableFiles
from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import load
from fp4patch.catalog.source_files import CandidateFiles
from fp4patch.core.errors import Refused
from fp4patch.core.results import State
from fp4patch.tree.files import SourceFile, Tree, read_file, sha256
from fp4patch.tree.receipt import Receipt, ReceiptFile, StateDirectory

COMPLETION = "`fp4patch apply` completes the change, `fp4patch revert` restores the pristine files"
"""What to do about an interrupted command."""


class LockedTree:
    """A tree under its lock: its files as they were when they were read, and its receipt.

    ``place`` is the tree as it was identified, or the path of a directory that may be a tree.
    """

    def __init__(self, root: Path, place: Identified | Path, editable: EditableFiles) -> None:
        self.root = root
        self.tree = Tree(root)
        self.state_directory = StateDirectory(self.tree, editable.allows)
        self.receipt: Receipt | None = self.state_directory.receipt()
        """Record of what was done to the tree; None if nothing was."""
        named = {patch.partition(" ")[0]: None for patch in self.receipt.patches} if self.receipt else {}
        kept = {patch.id: patch for patch in reversed(self.state_directory.outside(self.receipt))}
        self.outside = tuple(kept[name] for name in named if name in kept)
        """Patches of the receipt that the catalog does not have."""
        self.candidates: CandidateFiles | None = None
        """Files that the target's patches may be about, once a plan looked for them."""
        self.contents: dict[str, bytes | None] = {}
        """The pristine bytes that a plan or a fold read."""
        self.hashes: dict[str, str] = {}
        """The hash of each source file that was looked at, or the reason why it was not."""
        self._files: dict[str, SourceFile | None] = {}
        self._place = place

    @cached_property
    def known(self) -> Identified:
        """Target and version of the tree. Refused: it is no source tree."""
        return self._place if isinstance(self._place, Identified) else identify(self._place, load())

    @property
    def interrupted(self) -> bool:
        """True if a command was interrupted while it replaced files."""
        return self.receipt is not None and self.receipt.state == "applying"

    @property
    def on_record(self) -> Mapping[str, ReceiptFile]:
        """Files that the receipt names; none without a receipt."""
        return self.receipt.files if self.receipt else {}

    def file(self, path: str) -> SourceFile | None:
        """Return the file, read once; None if there is none. Refused: see ``Tree.read``."""
        if path not in self._files:
            self._files[path] = self.tree.read(path)
        return self._files[path]

    def current(self, path: str) -> bytes | None:
        """Return the file's bytes; None if there is none. Refused: see ``Tree.read``."""
        file = self.file(path)
        return file.data if file else None

    def pristine(self, path: str) -> bytes | None:
        """Return the bytes before fp4patch touched the file: those of the receipt, else the current ones."""
        recorded = self.on_record.get(path)
        if recorded is None:
            return self.current(path)
        current = self.current(path) if self.interrupted else None
        is_pristine = sha256(current) == recorded.pristine_sha256
        return current if is_pristine else self.state_directory.blob(recorded.pristine_sha256)

    def read(self, path: str) -> bytes | None:
        """Return the pristine bytes that a plan looks at; None if they cannot be read. Links inside are followed."""
        if path not in self.contents:
            try:
                if path in self.on_record:
                    self.contents[path] = self.pristine(path)
                else:
                    file = read_file(Path(os.path.realpath(self.root / path)))
                    self.contents[path] = file[0] if file else None
            except (OSError, Refused):
                self.contents[path] = None
        return self.contents[path]

    def state(self, path: str, desired: bytes | None) -> State:
        """Return the state of a file, from its pristine bytes, the bytes that we wrote, and the desired ones.

        ``desired`` None: the desired bytes are not known, and the bytes that we wrote count as applied.
        """
        recorded = self.on_record.get(path)
        current, pristine = self.current(path), self.pristine(path)
        if current == pristine and (desired is None or recorded is None or current != desired):
            return State.PRISTINE
        written = {recorded.written_sha256, recorded.before_sha256} - {None} if recorded else set()
        if current == desired or (desired is None and recorded and sha256(current) == recorded.written_sha256):
            return State.APPLIED
        return State.OUTDATED if sha256(current) in written else State.FOREIGN


class LockedTrees:
    """The locked trees, each once, in the order in which they were named."""

    def __init__(self, trees: Mapping[tuple[int, int], LockedTree]) -> None:
        self._trees = trees

    def __iter__(self) -> Iterator[LockedTree]:
        """Yield the trees."""
        return iter(self._trees.values())

    def __getitem__(self, root: Path) -> LockedTree:
        """Return a tree by any path that leads to it."""
        return self._trees[_identity(root)]


@contextmanager
def locked(places: Sequence[Identified | Path]) -> Iterator[LockedTrees]:
    """Lock trees. Nothing is written. A tree that another command holds is named on stderr, and waited for."""
    named: dict[tuple[int, int], Identified | Path] = {}
    for place in places:
        named.setdefault(_identity(_root(place)), place)
    with ExitStack() as locks:
        for _, place in sorted(named.items(), key=lambda item: item[0]):  # for everybody in one order
            locks.callback(os.close, _lock(Tree.at(_root(place)).root))
        editable = EditableFiles(load())
        yield LockedTrees(
            {identity: LockedTree(Tree.at(_root(place)).root, place, editable) for identity, place in named.items()}
        )


@contextmanager
def reading(places: Sequence[Identified | Path]) -> Iterator[LockedTrees]:
    """Lock trees to look at them. Refused: a command was interrupted in one, so what it is to be is not settled."""
    with locked(places) as trees:
        for tree in trees:
            if tree.interrupted:
                raise Refused(
                    f"a command was interrupted in {tree.root}: some of its files are replaced, others are not",
                    help=COMPLETION,
                )
        yield trees


def _root(place: Identified | Path) -> Path:
    return place.root if isinstance(place, Identified) else place


def _identity(root: Path) -> tuple[int, int]:
    """Return the identity of a directory, wherever it is mounted. Refused: it is not known."""
    try:
        found = Tree.at(root).root.stat()
    except OSError as error:
        raise Refused(f"{root}: {error.strerror}", help="name a directory that you may read") from error
    return found.st_dev, found.st_ino


def _lock(root: Path) -> int:
    """Return a descriptor that holds the tree's directory itself until it is closed.

    No lock file that could be left behind, and the kernel lets go when we die.
    """
    while True:
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(
                f"{root} cannot be opened: {error.strerror}", help="name a directory that you may read"
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logging.getLogger(__name__).warning("waiting for another fp4patch that works on %a", str(root))
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another process may have put another directory there while we waited: then we hold the wrong one.
            if root.exists() and os.path.samestat(os.fstat(descriptor), root.stat()):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            raise Refused(
                f"{root} cannot be locked: {error.strerror}",
                help="its file system has no flock on directories; copy the tree to a local disk",
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
