"""Trees that a command has locked: pristine bytes, current bytes and receipt of each, and one commit for all of them.

A command stages the desired state of each tree, then commits: every tree gets its state and its receipt, or none does.
"""

import os
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import load
from fp4patch.catalog.scope import Scope
from fp4patch.catalog.whole import Concerned
from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree import disk
from fp4patch.tree.files import SourceFile, Tree, refuse
from fp4patch.tree.journal import RECEIPT, Entry, Journal, Store, sha256
from fp4patch.tree.receipt import Receipt, ReceiptFile, dumps
from fp4patch.tree.remainder import Remainder
from fp4patch.tree.stamp import TAIL, Stamp, find_stamp
from fp4patch.tree.transaction import Change, Move, OnWait, Recovery, commit, lock, recover, refuse_interrupted


class DesiredFile(NamedTuple):
    """Bytes that a file is to have, and the patches that make them. ``data`` None: the file stays absent."""

    data: bytes | None
    patches: tuple[str, ...]


@dataclass(frozen=True)
class Desired:
    """State that a tree is to have. The default is the pristine state: every file that is not listed is pristine."""

    target: str = ""
    version: str = ""
    variant: str = ""
    patches: tuple[str, ...] = ()
    """All patches of the variant, with their versions, for the receipt."""
    files: Mapping[str, DesiredFile] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()
    """Files whose bytes are not known, since an edit refused: they stay as they are, and nothing is committed."""
    remainders: tuple[Remainder, ...] = ()


@dataclass(frozen=True)
class StagedFile:
    """One file of a staged state, with its modes before and after."""

    before: bytes | None
    after: bytes | None
    mode_before: int | None
    mode: int

    @property
    def changed(self) -> bool:
        """True if the file's bytes change."""
        return self.before != self.after


@dataclass(frozen=True)
class Staged:
    """Result of staging a state: each file, the new receipt (None: the tree is pristine), and reasons to refuse."""

    files: Mapping[str, StagedFile]
    receipt: Receipt | None
    problems: tuple[Problem, ...]
    undecided: frozenset[str]
    """Files whose bytes are not known."""
    changed: bool
    """True if a file or the receipt changes."""


class LockedTree:
    """A tree under its lock: its files as they were when they were read, and its receipt. It stages its desired state.

    ``place`` is the tree as it was identified, or the path of a directory that may be a tree.
    """

    def __init__(self, root: Path, place: Identified | Path, store: Store, scope: Scope) -> None:
        self.root = root
        self.store = store
        self.recovered: tuple[Recovery, ...] = ()
        """Interrupted commands that were put in order, here or in a tree that was not named."""
        self.concerned: Concerned | None = None
        """Files that the target's patches may be about, once a plan looked for them."""
        self.contents: dict[str, bytes | None] = {}
        """The pristine bytes that a plan or a fold read."""
        self._place = place
        self._scope = scope
        self.reload()

    def reload(self) -> None:
        """Forget what was read and staged, and read the receipt."""
        found = self.store.receipt()
        self.receipt: Receipt | None = found[0] if found else None
        """Record of what was done to the tree; None if nothing was."""
        self._document = found[1] if found else None
        self._files: dict[str, SourceFile | None] = {}
        self._unrecorded: dict[str, Stamp] | None = None
        self.staged: Staged | None = None

    @cached_property
    def known(self) -> Identified:
        """Target and version of the tree. Refused: it is no source tree."""
        return self._place if isinstance(self._place, Identified) else identify(self._place, load())

    # --- reading ---

    def current(self, path: str) -> bytes | None:
        """Return the file's bytes, read once; None if there is none. Refused: see ``Tree.read``."""
        file = self._file(path)
        return file.data if file else None

    def pristine(self, path: str) -> bytes | None:
        """Return the bytes before fp4patch touched the file: those of the receipt, else the current ones."""
        recorded = self._recorded(path)
        return self.store.blob(recorded.pristine_sha256) if recorded else self.current(path)

    def read(self, path: str) -> bytes | None:
        """Return the pristine bytes that a plan looks at; None if they cannot be read. Links inside are followed."""
        if path not in self.contents:
            try:
                content = self.pristine(path) if self._recorded(path) else (self.root / path).read_bytes()
            except (OSError, Refused):
                content = None
            self.contents[path] = content
        return self.contents[path]

    def mode(self, path: str) -> int:
        """Return the permission bits that belong to the file: those of the receipt, else the current ones."""
        if recorded := self._recorded(path):
            return self.store.tree.mode_to_write(path, recorded.mode)
        file = self._file(path)
        return file.mode if file else 0o644

    def state(self, path: str, desired: bytes | None) -> State:
        """Return the state of a file, from its pristine bytes, the bytes that we wrote, and the desired ones.

        ``desired`` None: the desired bytes are not known, and the bytes that we wrote count as applied.
        """
        recorded = self._recorded(path)
        written = recorded.written_sha256 if recorded else None
        current, pristine = self.current(path), self.pristine(path)
        if current == pristine and (desired is None or written is None or current != desired):
            return State.PRISTINE
        if current == desired or (desired is None and sha256(current) == written):
            return State.APPLIED
        return State.OUTDATED if sha256(current) == written else State.FOREIGN

    def unrecorded(self, files: Iterable[str]) -> dict[str, Stamp]:
        """Return those of these files that fp4patch wrote, if the tree has no receipt, whatever became of it."""
        if self.receipt:
            return {}
        if self._unrecorded is None:
            found = (p for p in files if self._scope.allows(self.root, p) and find_stamp(_tail(self.root / p)))
            self._unrecorded = {p: stamp for p in found if (data := self.current(p)) and (stamp := find_stamp(data))}
        return self._unrecorded

    @property
    def on_record(self) -> Mapping[str, ReceiptFile]:
        """Files that the receipt names; none without a receipt."""
        return self.receipt.files if self.receipt else {}

    def _recorded(self, path: str) -> ReceiptFile | None:
        return self.receipt.files.get(path) if self.receipt else None

    def _file(self, path: str) -> SourceFile | None:
        if path not in self._files:
            self._files[path] = self.store.tree.read(path)
        return self._files[path]

    # --- changing ---

    def stage(self, desired: Desired) -> Staged:
        """Set the state that a commit gives the tree, and return what changes, with every reason to refuse it.

        A file that is neither pristine nor what fp4patch wrote is foreign; a file that cannot be replaced, or that is
        missing, is a problem too.
        """
        files, problems = dict[str, StagedFile](), list[Problem]()
        for path in dict.fromkeys([*desired.files, *self.on_record]):
            if path not in desired.undecided:
                try:
                    files[path] = self._staged_file(path, desired.files.get(path))
                except Refused as refused:
                    if not refused.problems:  # the state of the tree itself is refused, not one file
                        raise
                    problems += refused.problems
        receipt = None if problems or desired.undecided else self._receipt(desired, files)
        changed = any(file.changed for file in files.values()) or not _same(self.receipt, receipt)
        self.staged = Staged(files, receipt, tuple(problems), desired.undecided, changed)
        return self.staged

    def _staged_file(self, path: str, desired: DesiredFile | None) -> StagedFile:
        current, file = self.current(path), self._file(path)
        after = self.pristine(path) if desired is None else desired.data
        if after is None or current == after:
            return StagedFile(current, current, None, 0)
        if current is not None and self.state(path, after) is State.FOREIGN:
            raise _foreign(path)
        if problem := self.store.tree.writable_problem(path):
            raise Refused(f"{path}: found {problem.found}", help=problem.help, problems=[problem])
        if current is None and not self._recorded(path):  # patches make no files
            raise refuse(path, "a file to change", "none")
        return StagedFile(current, after, file.mode if file else None, self.mode(path))

    def _receipt(self, desired: Desired, staged: Mapping[str, StagedFile]) -> Receipt | None:
        """Return the receipt of a staged state; None if no file differs from its pristine bytes."""
        files = {
            path: ReceiptFile(sha256(pristine), sha256(file.after), self.mode(path), desired.files[path].patches)
            for path, file in staged.items()
            if path in desired.files
            and desired.files[path].patches
            and file.after is not None
            and (pristine := self.pristine(path)) is not None
            and pristine != file.after
        }
        if not files:
            return None
        return Receipt(
            fp4patch=__version__,
            target=desired.target,
            version=desired.version,
            variant=desired.variant,
            applied_at=datetime.now(UTC).isoformat(timespec="seconds"),
            patches=desired.patches,
            files=files,
            remainders=desired.remainders,
        )

    def moves(self) -> tuple[Move, ...]:
        """Return the renames that give the tree its staged state; the receipt, last, is one of its files."""
        if not self.staged or not self.staged.changed:
            return ()
        moves = [
            Move(Entry(path, sha256(file.before), sha256(file.after)), file.before, file.after, file.mode)
            for path, file in sorted(self.staged.files.items())
            if file.changed
        ]
        was, will = self._document, dumps(self.staged.receipt) if self.staged.receipt else None
        if was != will:
            moves.append(Move(Entry(RECEIPT, sha256(was), sha256(will)), was, will, None))
        return tuple(moves)

    def pristine_of_staged(self) -> tuple[bytes, ...]:
        """Return the pristine bytes of each file that the staged receipt names."""
        receipt = self.staged.receipt if self.staged else None
        return tuple(data for path in (receipt.files if receipt else ()) if (data := self.pristine(path)) is not None)


class Locked:
    """Locks trees, puts interrupted commands in order, and commits the staged state of all trees, or of none.

    Leaving without ``commit`` leaves every tree as it is. ``on_wait`` receives each tree that another command holds.
    Without ``writes`` nothing is ever written: a tree in which a command was interrupted is refused.
    """

    def __init__(
        self, places: Sequence[Identified | Path], on_wait: OnWait | None = None, *, writes: bool = True
    ) -> None:
        self._canonical: dict[tuple[int, int], Path] = {}
        self._places: dict[Path, Identified | Path] = {}
        for one in places:
            self._places.setdefault(self._real(Tree.at(one.root if isinstance(one, Identified) else one).root), one)
        self._on_wait = on_wait or (lambda _: None)
        self._writes = writes
        self._scope = Scope(load())
        self._locks = ExitStack()
        self._trees: dict[Path, LockedTree] = {}
        self.recovered: tuple[Recovery, ...] = ()

    def __enter__(self) -> Self:
        try:
            stores = self._lock_closure()
            if self._writes:
                self.recovered = recover(stores)
            else:
                refuse_interrupted(stores)
            self._trees = {
                root: LockedTree(root, place, stores[root], self._scope) for root, place in self._places.items()
            }
            for number, tree in enumerate(self):
                tree.recovered = tuple(
                    one
                    for one in self.recovered
                    if one.root == tree.root or (one.root not in self._trees and number == 0)
                )
            for tree in self if self._writes else ():
                with suppress(OSError):  # garbage in a tree that is read-only now does no harm
                    tree.store.tidy()
        except BaseException:
            self._locks.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.close()
        if isinstance(error, Fp4PatchError) and self.recovered:  # this is the only report to the user
            done = ", ".join(f"{found.root} ({found.outcome})" for found in self.recovered)
            error.help = f"{error.help} (before that, an interrupted command was put in order: {done})".strip()

    def __iter__(self) -> Iterator[LockedTree]:
        """Yield the trees, each once, in the order in which they were named."""
        return iter(self._trees.values())

    def __getitem__(self, root: Path) -> LockedTree:
        """Return a tree by any path that leads to it."""
        return self._trees[self._real(root)]

    def commit(self) -> None:
        """Give each tree its staged state and its receipt; a tree in the pristine state keeps no trace of fp4patch.

        Refused, with every tree as it was, if staging found a problem, if a file was changed since it was read or
        cannot be replaced, or if there is no room. ValueError, a bug of the caller's: a file is not decided.
        """
        problems = [problem for tree in self if tree.staged for problem in tree.staged.problems]
        if problems:
            first = problems[0]
            raise Refused(f"{first.file}: found {first.found}; nothing was changed", help=first.help, problems=problems)
        if undecided := [path for tree in self if tree.staged for path in tree.staged.undecided]:
            raise ValueError(f"a commit without knowing the bytes of {', '.join(undecided)}")
        ordered = sorted(self, key=lambda tree: tree.root)
        moving = [(tree, moves) for tree in ordered if (moves := tree.moves())]
        paths = [(tree, move.entry.path) for tree, moves in moving for move in moves if move.entry.path != RECEIPT]
        if len({tree.store.tree.identity(path) for tree, path in paths}) != len(paths):
            raise Refused("two of these trees hold the same file", help="name each tree once")
        txid, roots = uuid.uuid4().hex, tuple(str(tree.root) for tree, _ in moving)
        changes = [
            Change(
                tree.store,
                Journal(txid, "" if str(tree.root) == roots[0] else roots[0], roots, tuple(m.entry for m in moves)),
                moves,
                tree.pristine_of_staged(),
            )
            for tree, moves in moving
        ]
        if changes:
            commit(changes)
        for tree in self:
            tree.reload()

    def _real(self, root: Path) -> Path:
        """Return the one path by which this command knows a tree, which may be mounted in several places."""
        real = Path(os.path.realpath(root))
        return self._canonical.setdefault(_identity(real), real)

    def _lock_closure(self) -> dict[Path, Store]:
        """Lock the trees, and those that an interrupted command changed together with them; always in one order."""
        wanted = set(self._places)
        while True:
            stores = {}
            for root in sorted(wanted, key=_identity):  # the same for everybody, wherever the trees are mounted
                descriptor = lock(root, self._on_wait)
                self._locks.callback(os.close, descriptor)
                stores[root] = Store(Tree(root, descriptor), self._scope)
            related = {root for store in stores.values() for root in self._related(store)} - wanted
            if not related:
                return stores
            self._locks.close()
            wanted |= related

    def _related(self, store: Store) -> Iterator[Path]:
        """Return the trees that an interrupted command changed together with this one, if their journals agree.

        A journal is input: what it names is looked at, and left alone unless it has a journal of the same command.
        """
        if found := store.journal():
            journal = found[1]
            for root in (Path(name) for name in journal.roots):
                if os.path.isdir(root) and Path(os.path.realpath(root)) == root:  # noqa: PTH112 - see Tree.at
                    try:
                        theirs = Store(Tree(root), self._scope).journal()
                    except OSError as error:
                        help_ = "run fp4patch as the user whose command was interrupted"
                        raise Refused(f"{root}: {error.strerror}", help=help_) from error
                    if theirs and (theirs[1].txid, theirs[1].roots) == (journal.txid, journal.roots):
                        yield self._real(root)


def reading(places: Sequence[Identified | Path], on_wait: OnWait) -> Locked:
    """Lock trees to look at them. Nothing in them is written, not even to put an interrupted command in order."""
    return Locked(places, on_wait, writes=False)


def _same(old: Receipt | None, new: Receipt | None) -> bool:
    """Return whether two receipts record the same state, independent of their time and fp4patch version."""
    if old is None or new is None:
        return old is new
    return replace(new, applied_at=old.applied_at, fp4patch=old.fp4patch) == old


def _foreign(path: str) -> Refused:
    return refuse(
        path,
        "the pristine bytes, or what fp4patch wrote",
        "a file that was edited since",
        advice=f"take the edit away (in a checkout: `git checkout -- {shlex.quote(path)}`) and run this again; if the "
        "whole tree was replaced by another release, delete its .fp4patch directory",
        state=State.FOREIGN,
    )


def _tail(path: Path) -> bytes:
    """Return the last bytes of a file; none where it cannot be read, or is none."""
    with suppress(OSError), disk.Directory.at(path.parent) as directory:
        return directory.tail(path.name, TAIL)
    return b""


def _identity(root: Path) -> tuple[int, int]:
    """Return the identity of a directory, independent of its path. Refused: it is not known."""
    try:
        found = root.stat()
    except OSError as error:
        raise Refused(f"{root}: {error.strerror}", help="name a directory that you may read") from error
    return found.st_dev, found.st_ino
