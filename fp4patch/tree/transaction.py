"""The protocol by which files of several trees change, all or none: one lock for each tree, one decision for all.

The decision is one rename, in the first tree that changes (the primary): ``journal.json`` becomes ``committed.json``.
Before it, everything needed to go forward or back is on the disk; a command that dies before it is undone, one that
dies after it is finished, by the next command that locks any of the trees. See ``journal`` for the files in each tree.
"""

import errno
import fcntl
import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn

from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.tree.files import STATE_DIR
from fp4patch.tree.journal import Entry, Journal, Phase, Store

OnWait = Callable[[Path], None]
"""Callback that receives, once, each tree that another command holds."""


@dataclass(frozen=True)
class Recovery:
    """An interrupted command that was put in order in one tree."""

    root: Path
    outcome: Literal["completed", "rolled back"]
    txid: str


@dataclass(frozen=True)
class Move:
    """One file of a change, with its bytes. ``mode`` is for the new bytes."""

    entry: Entry
    before: bytes | None
    after: bytes | None
    mode: int | None


@dataclass(frozen=True)
class Change:
    """Changes of one tree, and the pristine bytes that its new receipt names."""

    store: Store
    journal: Journal
    moves: tuple[Move, ...]
    pristine: tuple[bytes, ...]


def commit(changes: Sequence[Change]) -> None:
    """Make all changes, or none of them. The first tree is the primary.

    Refused, with every tree as it was, if a file was changed since it was read, cannot be replaced, or there is no
    room.
    """
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


_INTERRUPTED = "a command was interrupted here, and its work cannot be put in order"


def _prepare(changes: Sequence[Change]) -> None:
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


def _undo(changes: Sequence[Change], error: BaseException) -> NoReturn:
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


def refuse_interrupted(stores: Mapping[Path, Store]) -> None:
    """Report the remains of an interrupted command, if nothing may be written."""
    found = {root: begun for root, store in stores.items() if (begun := store.journal())}
    decided = _decided(found)
    for root, (_, journal) in found.items():
        outcome = "complete it" if journal.txid in decided else "roll it back"
        raise Refused(
            f"a command was interrupted in {root}, so what the tree is to be is not settled",
            help=f"`fp4patch apply` and `fp4patch revert` first {outcome}, then do their own work",
        )


def recover(stores: Mapping[Path, Store]) -> tuple[Recovery, ...]:
    """Finish or undo what interrupted commands left in these trees, which are all that they changed and still exist."""
    with _deferred_signals():
        return _recover(stores)


def _recover(stores: Mapping[Path, Store]) -> tuple[Recovery, ...]:
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


# --- the operating system --------------------------------------------------------------------------------------------


def lock(root: Path, on_wait: OnWait) -> int:
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
                on_wait(root)
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


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "become the user who may write there"
    return "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "remove the cause"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
