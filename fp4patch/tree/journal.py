"""State of fp4patch in one tree, and completion or rollback of an interrupted change of that tree.

``.fp4patch/`` holds the receipt, the pristine bytes of each file that it names (``blobs/<sha256>``), a ``.gitignore``
that hides the directory, and during a change the journal. The journal is written before anything else and names all
planned changes, so the remains of a killed process are known. Its name is its phase, and a phase changes by one rename:

- ``journal.json``: prepared. New and old bytes of each file are being written beside it. On recovery: roll back.
- ``committed.json``: only in the primary tree of a transaction, and it decides for all of them. On recovery: complete.
- ``done.json``: this tree is in its final state; other remains are garbage.
"""

import hashlib
import json
import os
import pwd
import re
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import overload

from fp4patch import __version__
from fp4patch.catalog.scope import Scope
from fp4patch.core.errors import Refused
from fp4patch.core.problem import Problem
from fp4patch.tree import disk
from fp4patch.tree.files import STATE_DIR, Tree
from fp4patch.tree.git_index import tracked
from fp4patch.tree.receipt import Receipt, loads

RECEIPT = f"{STATE_DIR}/receipt.json"
LONGEST = 4096
"""Bytes of the longest path that the system takes."""
LONGEST_NAME = 255 - len("..fp4patch-new")


_SHA256 = re.compile("[0-9a-f]{64}")
_GITIGNORE = b"# Made by fp4patch; `fp4patch revert` removes this folder.\n*\n"


class Phase(StrEnum):
    """Phase of a change of one tree: the name of its journal."""

    PREPARED = "journal.json"
    COMMITTED = "committed.json"
    DONE = "done.json"


@dataclass(frozen=True)
class Entry:
    """One file of a change, by the SHA-256 of its bytes before and after; None where there is no such file."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Journal:
    """A change of one tree, as one part of a transaction over ``roots``. ``primary`` is ``""`` in the primary tree."""

    txid: str
    primary: str
    roots: tuple[str, ...]
    entries: tuple[Entry, ...]


@overload
def sha256(data: bytes) -> str: ...
@overload
def sha256(data: None) -> None: ...
@overload
def sha256(data: bytes | None) -> str | None: ...
def sha256(data: bytes | None) -> str | None:
    """Hex; None of None, which is how a missing file is written down."""
    return None if data is None else hashlib.sha256(data).hexdigest()


class Store:
    """The ``.fp4patch`` directory of one tree. The caller holds the tree's lock.

    What is in it is input from an untrusted tree: each file must be a regular one that the tree's owner, the caller or
    root made and that git does not track, and it may name only files of the ``scope``.
    """

    def __init__(self, tree: Tree, scope: Scope) -> None:
        self.tree = tree
        self.folder = tree.root / STATE_DIR
        self._scope = scope
        with tree.open() as root:
            self._owner = root.stat()
            self._is_there(root, STATE_DIR)
        with self._open() as state:
            self._is_there(state, "blobs")

    def _is_there(self, directory: disk.Directory | None, name: str) -> None:
        """Refuse a directory of ours that is none, or that another program made."""
        found = directory.stat(name) if directory else None
        if directory and found:
            path = directory.path / name
            if not stat.S_ISDIR(found.st_mode):  # a link here would lead what we write out of the tree
                raise Refused(f"{path} is not a directory of fp4patch's making", help="look at it, and move it away")
            self._is_trusted(path, found)

    def _is_trusted(self, path: Path, found: os.stat_result) -> None:
        """Refuse what belongs to a user who may be neither the one who patched the tree nor its owner."""
        if self._owner and found.st_uid not in (0, os.geteuid(), self._owner.st_uid):
            raise Refused(
                f"{path} belongs to {user_name(found.st_uid)}, the tree to {user_name(self._owner.st_uid)}: "
                "its owner could use fp4patch to change other users' files",
                help="if you trust that user, give it to the tree's owner: `chown -R --reference="
                f"{shlex.quote(str(self.tree.root))} {shlex.quote(str(self.folder))}`; else {self._anew()}",
            )

    def _anew(self) -> str:
        return f"put back a pristine tree (git checkout, or fetch it again), and delete {self.folder}"

    @contextmanager
    def _open(self, *parts: str) -> Iterator[disk.Directory | None]:
        """Open the state directory, or one in it; None if it is not there."""
        try:
            directory = self.tree.open(STATE_DIR, *parts)
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        with directory:
            yield directory

    def _read(self, name: str, *parts: str) -> bytes | None:
        """Return the bytes of a file of ours, never through a symlink; None if there is none."""
        path = self.folder.joinpath(*parts, name)
        help_ = "look at it, and move it away"
        try:
            with self._open(*parts) as directory:
                found = directory.read(name) if directory else None
        except disk.NotAFile as error:
            raise _refuse(f"{path} is {error.strerror}", path, "a file", str(error.strerror), help_) from error
        except OSError as error:
            reason = str(error.strerror)
            if isinstance(error, PermissionError):
                help_ = "run fp4patch as the user who patched the tree"
            raise _refuse(f"{path}: {reason}", path, "a file to read", reason, help_) from error
        if found is None:
            return None
        self._is_trusted(path, found[1])
        return found[0]

    def _document(self, name: str) -> bytes | None:
        """Return the bytes of a receipt or journal of the tree; None if there is none."""
        data = self._read(name)
        if data is not None and self._is_tracked:
            raise Refused(
                f"{self.folder} is tracked by git: it came with the tree, and could have fp4patch change files for its "
                "author",
                help="if you committed it yourself, take it out of git: `git -C "
                f"{shlex.quote(str(self.tree.root))} rm -r -q --cached {STATE_DIR}`; else delete it",
            )
        return data

    @cached_property
    def _is_tracked(self) -> bool:
        return any(path.split("/")[0] == STATE_DIR for path in tracked(self.tree.root))

    # --- reading ---

    def receipt(self) -> tuple[Receipt, bytes] | None:
        """Return what was done to the tree, and the document as it is on the disk.

        Refused if the document is damaged, or gone while its pristine copies stay.
        """
        path = self.tree.root / RECEIPT
        data = self._document(path.name)
        if data is not None:
            receipt = loads(data, str(path))
            if strange := next((file for file in receipt.files if not self._scope.allows(self.tree.root, file)), None):
                raise Refused(
                    f"{path} names {strange}, a file that no patch of fp4patch {__version__} is about",
                    help=f"if another fp4patch wrote it, revert the tree with that one; else {self._anew()}",
                )
            return receipt, data
        if self._blob_files() and self._read(Phase.DONE) is None:
            raise Refused(f"{path} is gone, but the pristine copies that belong to it are there", help=self._anew())
        return None

    def blob(self, sha: str) -> bytes:
        """Return pristine bytes, checked. Refused if they are missing or damaged."""
        data = self._read(sha, "blobs")
        if data is None or sha256(data) != sha:
            path, found = self.folder / "blobs" / sha, "gone" if data is None else "damaged"
            raise _refuse(
                f"{path}, a pristine copy, is {found}", path, "a pristine copy, as it was kept", found, self._anew()
            )
        return data

    def journal(self) -> tuple[Phase, Journal] | None:
        """Return the change that was interrupted here; None if there was none. Refused if its journal is damaged."""
        for phase in (Phase.COMMITTED, Phase.PREPARED):
            data = self._document(phase)
            if data is not None:
                return phase, self._parse(data, phase)
        return None

    def _parse(self, data: bytes, phase: Phase) -> Journal:
        try:
            document = json.loads(data)
            entries = tuple(Entry(**entry) for entry in document.pop("entries"))
            journal = Journal(**{**document, "roots": tuple(document["roots"]), "entries": entries})
            self._check(journal)
            return journal
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Refused(
                f"{self.folder / phase}, the journal of an interrupted command, is damaged", help=self._anew()
            ) from error

    def _check(self, journal: Journal) -> None:
        """ValueError or TypeError: not a journal that ``begin`` writes in such a tree."""
        for text in (journal.txid, journal.primary, *journal.roots, *(entry.path for entry in journal.entries)):
            if "\0" in text or len(os.fsencode(text)) > LONGEST:
                raise ValueError("no name of a file or a directory")
        for entry in journal.entries:
            if entry.path != RECEIPT and not self._scope.allows(self.tree.root, entry.path):
                raise ValueError("not a file that a patch is about")
            if any(len(os.fsencode(part)) > LONGEST_NAME for part in entry.path.split("/")):
                raise ValueError("no name that leaves room for that of a copy beside the file")
            if not all(side is None or _SHA256.fullmatch(side) for side in (entry.before, entry.after)):
                raise ValueError("not a SHA-256")
        if not re.fullmatch("[0-9a-f]+", journal.txid) or journal.primary not in ("", *journal.roots):
            raise ValueError("not of one transaction")

    def _blob_files(self) -> list[str]:
        with self._open("blobs") as blobs:
            return [name for name in blobs.names() if _SHA256.fullmatch(name)] if blobs else []

    # --- preparing ---

    def begin(self, journal: Journal) -> None:
        """Write the journal, before anything else. Nothing counts yet."""
        with self.tree.open() as root:
            root.make(STATE_DIR)
            root.sync()
        if self._read(".gitignore") != _GITIGNORE:
            with self.tree.open(STATE_DIR) as state:
                state.create(".gitignore", _GITIGNORE)
        with self.tree.open(STATE_DIR) as state:
            state.create("journal.new", json.dumps(asdict(journal)).encode())
            state.rename("journal.new", Phase.PREPARED)

    def keep(self, pristine: bytes) -> None:
        """Keep pristine bytes, unless they are kept already."""
        name = sha256(pristine)
        if self._read(name, "blobs") != pristine:
            with self.tree.open(STATE_DIR) as state:
                state.make("blobs")
                with state.below("blobs") as blobs:
                    blobs.create(name, pristine)
                    blobs.sync()
                state.sync()

    def lay_out(self, entry: Entry, before: bytes | None, after: bytes | None, mode: int | None) -> None:
        """Write the new and the old bytes beside the target, so that either way is one rename and needs no space.

        Beside it, because only there a rename is sure to stay on one file system. Old after new: while the old bytes
        are not there, nothing was replaced. ``mode`` is for the new bytes; owner and the rest are the target's.
        """
        directory, (target, new, old) = self._places(entry)
        with directory:
            for name, data, permissions in ((new, after, mode), (old, before, None)):
                if data is not None:
                    directory.create(name, data, like=target, mode=permissions)
            directory.sync()

    # --- moving ---

    def turn(self, phase: Phase, to: Phase) -> None:
        """One rename: the journal's name is its phase."""
        with self.tree.open(STATE_DIR) as state:
            state.rename(phase, to)

    def obstacles(self, journal: Journal, *, forward: bool) -> list[Problem]:
        """Return the reasons why ``settle`` would stop halfway, so that it can be refused before it starts."""
        problems: list[Problem] = []
        for entry in journal.entries:
            try:
                directory, names = self._places(entry)
                with directory:
                    self._missing(directory, names, entry, forward=forward)
            except FileNotFoundError:
                problems += self._refuse(entry, "its directory", "none", self._anew()).problems
            except Refused as refused:
                problems += refused.problems
        return problems

    def settle(self, journal: Journal, *, forward: bool) -> None:
        """Bring each file to its bytes after, or before. May be killed and run again. Never writes into a file:
        package managers hard-link theirs, and readers have them open."""
        for entry in journal.entries:
            directory, names = self._places(entry)
            with directory:
                if not self._missing(directory, names, entry, forward=forward):
                    continue
                target, new, old = names
                if (entry.after if forward else entry.before) is None:
                    directory.remove(target)
                    directory.sync()
                    continue
                source = new if forward else old
                last = directory.stat(target)
                # Build systems must see each change, also in a fast sequence.
                directory.set_time(source, max(time.time_ns(), last.st_mtime_ns + 1_000_000 if last else 0))
                directory.rename(source, target)

    def _missing(self, directory: disk.Directory, names: tuple[str, str, str], entry: Entry, *, forward: bool) -> bool:
        """Return whether the file is still to be moved. Refused if it was changed meanwhile, or our copy removed."""
        target, new, old = names
        wanted, source = (entry.after, new) if forward else (entry.before, old)
        found = self._hash(entry.path)
        if found == wanted:
            return False
        if not forward:
            put_back_or_never_laid_out = entry.before is not None and not directory.stat(old)
            never_replaced = entry.after is not None and directory.stat(new) is not None
            if put_back_or_never_laid_out or never_replaced:
                return False
        if found not in (entry.before, entry.after, None):
            raise self._refuse(
                entry,
                f"the bytes from before or after the interrupted command (SHA-256 {entry.before} or {entry.after})",
                "an edit that was made since",
                f"save your edit elsewhere and delete {directory.path / target}; `fp4patch apply` or `fp4patch revert` "
                "then puts the file in order",
            )
        if wanted is not None and self._hash_of(directory, source) != wanted:
            raise self._refuse(entry, f"the copy {source} beside it", "none, or a damaged one", self._anew())
        return True

    def changed_since(self, journal: Journal) -> list[Problem]:
        """Return the files that are not what they were when the transaction read them."""
        return [
            self._refuse(e, "the bytes that were read a moment ago", "others", "run the command again").problems[0]
            for e in journal.entries
            if self._hash(e.path) != e.before
        ]

    def _places(self, entry: Entry) -> tuple[disk.Directory, tuple[str, str, str]]:
        """Open the directory of a file, with the names of the file and of its new and its old bytes there."""
        if entry.path == RECEIPT:
            directory, name = self.tree.open(STATE_DIR), RECEIPT.rpartition("/")[2]
        else:
            directory, name = self.tree.place(entry.path)
        return directory, (name, f".{name}.fp4patch-new", f".{name}.fp4patch-old")

    def _hash(self, path: str) -> str | None:
        if path == RECEIPT:
            return sha256(self._read(RECEIPT.rpartition("/")[2]))
        file = self.tree.read(path)
        return sha256(file.data) if file else None

    def _hash_of(self, directory: disk.Directory, name: str) -> str | None:
        """Return the SHA-256 of a copy that we laid beside a file; None if it is not there, or is no file."""
        with suppress(disk.NotAFile):
            found = directory.read(name)
            return sha256(found[0]) if found else None
        return None

    def _refuse(self, entry: Entry, expected: str, found: str, help: str) -> Refused:  # noqa: A002
        problem = Problem(expected=expected, found=found, help=help, file=entry.path)
        return Refused(
            f"{self.tree.root / entry.path}: expected {expected}, found {found}", help=help, problems=[problem]
        )

    # --- cleaning ---

    def finish(self, journal: Journal, phase: Phase) -> None:
        """Nothing can bring this change back from here; then remove what it needed."""
        disk.step(f"finish {journal.txid} in {self.tree.root}")
        self.turn(phase, Phase.DONE)
        self.tidy()

    def tidy(self) -> None:
        """Remove what neither the receipt nor an open journal needs; without a receipt that is all of it."""
        with self._open() as state:
            if state is None or self.journal():
                return
            receipt = self.receipt()
            done = self._document(Phase.DONE)
            for entry in self._parse(done, Phase.DONE).entries if done is not None else ():
                with suppress(FileNotFoundError):  # the directory was removed, and our copies with it
                    directory, (_, new, old) = self._places(entry)
                    with directory:
                        directory.remove(new)
                        directory.remove(old)
            needed = {file.pristine_sha256 for file in receipt[0].files.values()} if receipt else set()
            with self._open("blobs") as blobs:
                for name in blobs.names() if blobs else ():
                    if blobs and _SHA256.fullmatch(name) and name not in needed:
                        blobs.remove(name)
            state.remove("journal.new")
            if not needed:
                with suppress(OSError):  # what others put there stays
                    state.remove_folder("blobs")
            state.remove(Phase.DONE)
            if receipt is None:
                state.remove(".gitignore")
        if receipt is None:
            with self.tree.open() as root, suppress(OSError):  # and then so does the directory
                root.remove_folder(STATE_DIR)


def user_name(number: int) -> str:
    """Return the name of a user for a message."""
    with suppress(KeyError):  # a user of another machine or container
        return f"{pwd.getpwuid(number).pw_name} (user {number})"
    return f"user {number}"


def _refuse(message: str, path: Path, expected: str, found: str, help: str) -> Refused:  # noqa: A002
    return Refused(message, help=help, problems=[Problem(expected=expected, found=found, help=help, file=str(path))])
