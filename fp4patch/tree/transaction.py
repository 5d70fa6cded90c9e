"""Changes of files in several trees, all or none: one lock for each tree, one decision for all of them.

The decision is one rename, in the first tree that changes (the primary): ``journal.json`` becomes ``committed.json``.
Before it, everything needed to go forward or back is on the disk; a command that dies before it is undone, one that
dies after it is finished, by the next transaction on any of the trees. See ``journal`` for the files in each tree.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import signal
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, Self

from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.problem import Problem
from fp4patch.tree import disk
from fp4patch.tree.files import STATE_DIR, SourceFile, Tree
from fp4patch.tree.journal import RECEIPT, AnySource, Entry, Journal, Phase, Scope, Store, sha256
from fp4patch.tree.receipt import Receipt, dumps
from fp4patch.tree.stamp import TAIL, Stamp, find_stamp

OnWait = Callable[[Path], None]
"""Callback that receives, once, each tree that another command holds."""


@dataclass(frozen=True)
class Recovery:
    """An interrupted command that this transaction put in order, in one tree."""

    root: Path
    outcome: Literal["completed", "rolled back"]
    txid: str


@dataclass(frozen=True)
class _Move:
    """One file of a change, with its bytes."""

    entry: Entry
    before: bytes | None
    after: bytes | None
    mode: int | None


@dataclass(frozen=True)
class _Change:
    """Changes of a commit in one tree."""

    store: Store
    journal: Journal
    moves: tuple[_Move, ...]
    pristine: tuple[bytes, ...]


class Transaction:
    """Locks trees, puts interrupted commands in order, shows each file as it is, and changes all or nothing.

    Leaving without ``commit`` leaves every tree as it is. ``on_wait`` receives each tree that another command holds.
    Without ``writes`` nothing is ever written: a tree in which a command was interrupted is refused. ``scope`` tells
    which files of a tree a receipt may name.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        on_wait: OnWait | None = None,
        *,
        writes: bool = True,
        scope: Scope | None = None,
    ) -> None:
        self._canonical: dict[tuple[int, int], Path] = {}
        self.roots = tuple(dict.fromkeys(self._real(Tree.at(root).root) for root in sorted(set(roots))))
        self._on_wait = on_wait or (lambda _: None)
        self._writes = writes
        self._scope = scope or AnySource()
        self._unrecorded: dict[Path, dict[str, Stamp]] = {}
        self._locks = ExitStack()
        self._stores: dict[Path, Store] = {}
        self._receipts: dict[Path, tuple[Receipt, bytes] | None] = {}
        self._files: dict[tuple[Path, str], SourceFile | None] = {}
        self._staged: dict[Path, dict[str, bytes]] = {}
        self.looked_at: dict[tuple[Path, str], str] = {}
        """SHA-256 of what a plan or a fold read, by tree and path; empty for what is not there."""
        self.contents: dict[tuple[Path, str], bytes | None] = {}
        """The pristine bytes that a plan or a fold read."""
        self.recovered: tuple[Recovery, ...] = ()

    def __enter__(self) -> Self:
        try:
            stores = self._lock_closure()
            if self._writes:
                with _deferred_signals():
                    self.recovered = _recover(stores)
            else:
                _refuse_interrupted(stores)
            self._stores = {root: stores[root] for root in self.roots}
            self._read_receipts()
            for store in self._stores.values() if self._writes else ():
                with suppress(OSError):  # garbage in a tree that is read-only now hurts nobody
                    store.tidy()
        except BaseException:
            self._locks.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.close()
        if isinstance(error, Fp4PatchError) and self.recovered:  # nobody else tells the user
            done = ", ".join(f"{found.root} ({found.outcome})" for found in self.recovered)
            error.help = f"{error.help} (before that, an interrupted command was put in order: {done})".strip()

    # --- reading ---

    def receipt(self, root: Path) -> Receipt | None:
        """Receipt of the tree; None if nothing was changed."""
        found = self._receipts[self._real(root)]
        return found[0] if found else None

    def _read_receipts(self) -> None:
        self._receipts = {root: store.receipt() for root, store in self._stores.items()}

    def _real(self, root: Path) -> Path:
        """Return the one path by which this transaction knows a tree, which may be mounted in several places."""
        real = Path(os.path.realpath(root))
        return self._canonical.setdefault(_identity(real), real)

    def current(self, root: Path, rel: str) -> bytes | None:
        """Return the file's bytes, read once; None if there is none. Refused: see ``Tree.read``."""
        file = self._file(self._real(root), rel)
        return file.data if file else None

    def pristine(self, root: Path, rel: str) -> bytes | None:
        """Return the bytes before we ever touched the file: the receipt's if it knows the file, else the current
        ones."""
        known = self._known(root, rel)
        return self._stores[self._real(root)].blob(known) if known else self.current(root, rel)

    def mode(self, root: Path, rel: str) -> int:
        """Return the permission bits that belong to the file: the receipt's if it knows the file, else the current
        ones."""
        receipt = self.receipt(root)
        if receipt and rel in receipt.files:
            return self._stores[self._real(root)].tree.mode_to_write(rel, receipt.files[rel].mode)
        file = self._file(self._real(root), rel)
        return file.mode if file else 0o644

    def mode_now(self, root: Path, rel: str) -> int | None:
        """Return the permission bits that the file has; None if there is none."""
        file = self._file(self._real(root), rel)
        return file.mode if file else None

    def unrecorded(self, root: Path, files: Iterable[str]) -> dict[str, Stamp]:
        """Those of these files that fp4patch wrote, in a tree without a receipt, whatever became of the receipt."""
        real = self._real(root)
        if self.receipt(real):
            return {}
        if real not in self._unrecorded:
            found = (path for path in files if self._scope.allows(real, path) and find_stamp(_tail(real / path)))
            self._unrecorded[real] = {
                path: stamp for path in found if (data := self.current(real, path)) and (stamp := find_stamp(data))
            }
        return self._unrecorded[real]

    def writable_problem(self, root: Path, rel: str) -> Problem | None:
        """Return the reason why the file cannot be replaced; None if it can."""
        return self._stores[self._real(root)].tree.writable_problem(rel)

    def _known(self, root: Path, rel: str) -> str | None:
        receipt = self.receipt(root)
        return receipt.files[rel].pristine_sha256 if receipt and rel in receipt.files else None

    def _file(self, root: Path, rel: str) -> SourceFile | None:
        if (root, rel) not in self._files:
            self._files[root, rel] = self._stores[root].tree.read(rel)
        return self._files[root, rel]

    # --- changing ---

    def stage(self, root: Path, rel: str, data: bytes) -> None:
        """Set the new contents of the file. Refused for a new file that the receipt does not list: patches create no
        files."""
        if self.current(root, rel) is None and not self._known(root, rel):
            raise _absent(rel)
        self._staged.setdefault(self._real(root), {})[rel] = data

    def commit(self, receipts: Mapping[Path, Receipt | None]) -> None:
        """Replace every staged file and write the receipts; None: no receipt, and no trace of us in that tree.

        Refused, with every tree as it was, if a file cannot be replaced or changed since it was read, or if there is no
        room. ValueError, a bug of the caller's: a receipt that does not match the new files.
        """
        changes = self._changes({self._real(root): receipt for root, receipt in receipts.items()})
        if not changes:
            return
        with _deferred_signals() as arrived:
            try:
                _prepare(changes)
                if arrived:
                    raise KeyboardInterrupt
                changes[0].store.turn(Phase.PREPARED, Phase.COMMITTED)  # the decision
                for change in changes:
                    change.store.settle(change.journal, forward=True)
            except BaseException as error:
                _undo(changes, error)
            _finish_all([(change.store, change.journal) for change in changes], Phase.COMMITTED)
            self._staged.clear()
            self._files.clear()
            self._read_receipts()

    def _changes(self, receipts: Mapping[Path, Receipt | None]) -> list[_Change]:
        if missing := self._staged.keys() - receipts.keys():
            raise ValueError(f"files staged in {missing}, but no receipt said for it")
        moves = {root: self._moves(root, receipts[root]) for root in sorted(receipts)}
        moves = {root: found for root, found in moves.items() if found}
        found_problems = [
            problem
            for root, found in moves.items()
            for move in found
            if move.entry.path != RECEIPT and (problem := self.writable_problem(root, move.entry.path))
        ]
        if found_problems:
            first = found_problems[0]
            raise Refused(
                f"{first.file}: found {first.found}; nothing was changed", help=first.help, problems=found_problems
            )
        places = [
            self._stores[root].tree.identity(move.entry.path)
            for root, found in moves.items()
            for move in found
            if move.entry.path != RECEIPT
        ]
        if len(places) != len(set(places)):
            raise Refused("two of these trees hold the same file", help="name each tree once")
        txid, roots, changes = uuid.uuid4().hex, tuple(str(root) for root in moves), []
        for root, found in moves.items():
            primary = "" if str(root) == roots[0] else roots[0]
            journal = Journal(txid, primary, roots, tuple(move.entry for move in found))
            receipt = receipts[root]
            pristine = tuple(self._pristine_of(root, path) for path in (receipt.files if receipt else ()))
            changes.append(_Change(self._stores[root], journal, tuple(found), pristine))
        return changes

    def _moves(self, root: Path, receipt: Receipt | None) -> list[_Move]:
        """Return the renames in a tree; the receipt, last, is one of its files."""
        old = self.receipt(root)
        files = receipt.files if receipt else {}
        moves = []
        for path in sorted({*self._staged.get(root, {}), *files, *(old.files if old else ())}):
            before, pristine = self.current(root, path), self._pristine_of(root, path)
            after = self._staged.get(root, {}).get(path, before)
            if after is None:
                raise _absent(path)
            said = (
                (files[path].pristine_sha256, files[path].written_sha256) if path in files else (sha256(pristine),) * 2
            )
            if said != (sha256(pristine), sha256(after)):
                raise ValueError(f"the receipt does not say what {path} was and will be")
            if after != before:
                moves.append(_Move(Entry(path, sha256(before), sha256(after)), before, after, self.mode(root, path)))
        if not moves and receipt and old and replace(receipt, applied_at=old.applied_at) == old:
            return []
        kept = self._receipts[root]
        was, will = kept[1] if kept else None, dumps(receipt) if receipt else None
        if was != will:
            moves.append(_Move(Entry(RECEIPT, sha256(was), sha256(will)), was, will, None))
        return moves

    def _pristine_of(self, root: Path, path: str) -> bytes:
        pristine = self.pristine(root, path)
        if pristine is None:
            raise ValueError(f"a receipt names {path}, which does not exist")
        return pristine

    # --- locking ---

    def _lock_closure(self) -> dict[Path, Store]:
        """Lock the trees, and those that an interrupted command changed together with them; always in one order."""
        wanted = set(self.roots)
        while True:
            stores = {}
            for root in sorted(wanted, key=_identity):  # the same for everybody, wherever the trees are mounted
                descriptor = _lock(root, self._on_wait)
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


# --- the protocol over several trees ---------------------------------------------------------------------------------


_INTERRUPTED = "a command was interrupted here, and its work cannot be put in order"


def _prepare(changes: Sequence[_Change]) -> None:
    """Everything that needs room on the disk, and the last look at the files."""
    for change in changes:
        change.store.tidy()
        change.store.begin(change.journal)
    for change in changes:
        for move in change.moves:
            change.store.lay_out(move.entry, move.before, move.after, move.mode)
        for pristine in change.pristine:
            change.store.keep(pristine)
    if problems := [problem for change in changes for problem in change.store.changed_since(change.journal)]:
        first = problems[0]
        raise Refused(
            f"{first.file} was edited while we looked at it; nothing was changed", help=first.help, problems=problems
        )


def _undo(changes: Sequence[_Change], error: BaseException) -> NoReturn:
    """Roll everything back and report the reason; if that fails too, the next command does it."""
    try:
        with suppress(FileNotFoundError):
            changes[0].store.turn(Phase.COMMITTED, Phase.PREPARED)
        begun = [(c.store, c.journal) for c in changes if c.store.journal()]
        for store, journal in begun:
            store.settle(journal, forward=False)
        _finish_all(begun, Phase.PREPARED)
        for change in changes:
            change.store.tidy()
    except (OSError, Fp4PatchError) as second:
        raise Refused(
            f"interrupted ({_reason(error)}), and what was begun could not be undone ({_reason(second)})",
            help="remove the cause and run `fp4patch apply` or `fp4patch revert`: it finishes or undoes this one",
            problems=getattr(second, "problems", ()),
        ) from error
    if isinstance(error, OSError):
        raise Refused(
            f"{_reason(error)}; nothing was changed", help=f"{_remedy(error)}, and run the command again"
        ) from error
    raise error


def _finish_all(changes: Sequence[tuple[Store, Journal]], phase: Phase) -> None:
    """Close the journals, the primary's last: while it is there, it decides for the others."""
    try:
        for store, journal in sorted(changes, key=lambda change: not change[1].primary):
            store.finish(journal, Phase.PREPARED if journal.primary else phase)
    except OSError as error:
        raise Fp4PatchError(
            f"every file is as it shall be, but cleaning up failed: {_reason(error)}",
            help="remove the cause and run the command again: it cleans up",
        ) from error


def _decided(found: Mapping[Path, tuple[Phase, Journal]]) -> set[str]:
    """Return the commands that are to be completed. Refused: the tree that decides about one is not at hand.

    The primary's journal is the first to come and the last to go; without it, the state of the other trees is not
    known.
    """
    primaries = {journal.txid for _, journal in found.values() if not journal.primary}
    for root, (_, journal) in found.items():
        if journal.txid not in primaries:
            raise Refused(
                f"a command was interrupted here, in {root}, and whether it was decided is on record in "
                f"{journal.primary}, where there is no journal of it now",
                help=f"if that tree was moved, name both: `fp4patch revert {shlex.quote(str(root))} PLACE`; if it is "
                f"gone, put back a pristine tree (git checkout, or fetch it again), and delete {root / STATE_DIR}",
            )
    return {journal.txid for phase, journal in found.values() if phase is Phase.COMMITTED}


def _refuse_interrupted(stores: Mapping[Path, Store]) -> None:
    """Report the remains of an interrupted command, if nothing may be written."""
    found = {root: begun for root, store in stores.items() if (begun := store.journal())}
    decided = _decided(found)
    for root, (_, journal) in found.items():
        outcome = "complete it" if journal.txid in decided else "roll it back"
        raise Refused(
            f"a command was interrupted in {root}, so what the tree is to be is not settled",
            help=f"`fp4patch apply` and `fp4patch revert` first {outcome}, then do their own work",
        )


def _recover(stores: Mapping[Path, Store]) -> tuple[Recovery, ...]:
    """Finish or undo what interrupted commands left in these trees, which are all that they changed and still exist."""
    found = {root: begun for root, store in stores.items() if (begun := store.journal())}
    decided = _decided(found)
    problems = [
        replace(problem, file=str(root / problem.file))
        for root, (_, journal) in found.items()
        for problem in stores[root].obstacles(journal, forward=journal.txid in decided)
    ]
    if problems:
        first = problems[0]
        raise Refused(f"{_INTERRUPTED}: {first.file}: found {first.found}", help=first.help, problems=problems)
    try:
        for root, (_, journal) in found.items():
            stores[root].settle(journal, forward=journal.txid in decided)
        for txid in {journal.txid for _, journal in found.values()}:
            group = [(stores[root], journal) for root, (_, journal) in found.items() if journal.txid == txid]
            _finish_all(group, Phase.COMMITTED if txid in decided else Phase.PREPARED)
    except OSError as error:
        raise Refused(f"{_INTERRUPTED}: {_reason(error)}", help="remove the cause and run the command again") from error
    return tuple(
        Recovery(root, "completed" if journal.txid in decided else "rolled back", journal.txid)
        for root, (_, journal) in found.items()
    )


def _absent(rel: str) -> Refused:
    help_ = "put back the file that upstream released"
    problem = Problem(expected="a file to change", found="none", file=rel, help=help_)
    return Refused(f"{rel} is not there", help=help_, problems=[problem])


# --- the operating system --------------------------------------------------------------------------------------------


def _lock(root: Path, on_wait: OnWait) -> int:
    """Return a descriptor that holds the tree's directory itself until it is closed.

    No lock file that could be left behind, and the kernel lets go when we die.
    """
    while True:
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(
                f"{root} cannot be opened: {error.strerror}", help="name a folder that you may read"
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait(root)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Somebody may have put another folder there while we waited: then we hold the wrong one.
            if root.exists() and os.path.samestat(os.fstat(descriptor), root.stat()):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            raise Refused(
                f"{root} cannot be locked: {error.strerror}",
                help="its file system has no flock on folders; copy the tree to a local disk",
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def _deferred_signals() -> Iterator[list[int]]:
    """Hold back Ctrl-C, kill and hang-up until the end; the list tells what arrived meanwhile."""
    arrived: list[int] = []
    handlers = {}
    try:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python delivers none
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    handlers[number] = signal.signal(number, lambda n, _: arrived.append(n))
        yield arrived
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


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
        raise Refused(f"{root}: {error.strerror}", help="name a folder that you may read") from error
    return found.st_dev, found.st_ino


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "become the user who may write there"
    return "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "remove the cause"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
