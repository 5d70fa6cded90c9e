"""What fp4patch keeps in one tree, and how an interrupted change of that tree is finished or undone.

``.fp4patch/`` holds the receipt, the pristine bytes of each file that it names (``blobs/<sha256>``), a ``.gitignore``
that hides the folder, and during a change the journal. The journal is written before anything else and names
everything that is about to happen, so whatever a kill leaves behind is known. Its name is its phase, and a phase
changes by one rename:

- ``journal.json``: prepared. New and old bytes of each file are being laid beside it. On recovery: back.
- ``committed.json``: only in the primary tree of a transaction, and it decides for all of them. On recovery: forward.
- ``done.json``: this tree is as it shall be; what else lies about is garbage.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import overload

from fp4patch.errors import Refused
from fp4patch.model.problem import Problem
from fp4patch.patching import disk
from fp4patch.patching.receipt import Receipt, loads
from fp4patch.patching.tree import STATE_DIR, Tree

RECEIPT = f"{STATE_DIR}/receipt.json"
_GITIGNORE = b"# Made by fp4patch; `fp4patch revert` removes this folder.\n*\n"


class Phase(StrEnum):
    """How far a change of one tree has come: the name of its journal."""

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
    """The ``.fp4patch`` folder of one tree. The caller holds the tree's lock."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.folder = tree.root / STATE_DIR
        self._blobs = self.folder / "blobs"
        for folder in (self.folder, self._blobs):  # a link here would lead what we write out of the tree
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                raise Refused(f"{folder} is not a folder of fp4patch's making", help="look at it, and move it away")

    # --- reading ---

    def receipt(self) -> Receipt | None:
        """What was done to the tree. Refused if the document is damaged, or gone while its pristine copies stay."""
        path = self.tree.root / RECEIPT
        data = _read(path)
        if data is not None:
            return loads(data, str(path))
        if self._blob_files() and _read(self.folder / Phase.DONE) is None:
            raise Refused(
                f"{path} is gone, but the pristine copies that belong to it are there",
                help=f"put back a pristine tree (git checkout, or fetch it again), and delete {self.folder}",
            )
        return None

    def blob(self, sha: str) -> bytes:
        """Pristine bytes, checked. Refused if they are missing or damaged."""
        data = _read(self._blobs / sha)
        if data is None or sha256(data) != sha:
            path, found = self._blobs / sha, "gone" if data is None else "damaged"
            help_ = f"put back a pristine tree (git checkout, or fetch it again), and delete {self.folder}"
            raise _refuse(f"{path}, a pristine copy, is {found}", path, "a pristine copy, as it was kept", found, help_)
        return data

    def journal(self) -> tuple[Phase, Journal] | None:
        """The change that was interrupted here; None if there was none. Refused if its journal is damaged."""
        for phase in (Phase.COMMITTED, Phase.PREPARED):
            data = _read(self.folder / phase)
            if data is not None:
                return phase, self._parse(data, phase)
        return None

    def _parse(self, data: bytes, phase: Phase) -> Journal:
        try:
            document = json.loads(data)
            entries = tuple(Entry(**entry) for entry in document.pop("entries"))
            journal = Journal(**{**document, "roots": tuple(document["roots"]), "entries": entries})
            if not all(isinstance(name, str) for name in (journal.txid, *journal.roots, *(e.path for e in entries))):
                raise TypeError("names are strings")
            return journal
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(
                f"{self.folder / phase}, the journal of an interrupted command, is damaged",
                help=f"put back a pristine tree (git checkout, or fetch it again), and delete {self.folder}",
            ) from error

    def _blob_files(self) -> list[Path]:
        return sorted(self._blobs.iterdir()) if self._blobs.is_dir() else []

    # --- preparing ---

    def begin(self, journal: Journal) -> None:
        """Write the journal, before anything else. Nothing counts yet."""
        disk.make_folder(self.folder)
        disk.sync_folder(self.tree.root)
        if _read(self.folder / ".gitignore") != _GITIGNORE:
            disk.create(self.folder / ".gitignore", _GITIGNORE)
        draft = self.folder / "journal.new"
        disk.create(draft, json.dumps(asdict(journal)).encode())
        disk.rename(draft, self.folder / Phase.PREPARED)

    def keep(self, pristine: bytes) -> None:
        """Keep pristine bytes, unless they are kept already."""
        path = self._blobs / str(sha256(pristine))
        if _read(path) != pristine:
            disk.make_folder(self._blobs)
            disk.create(path, pristine)
            disk.sync_folder(self._blobs)
            disk.sync_folder(self.folder)

    def lay_out(self, entry: Entry, before: bytes | None, after: bytes | None, mode: int | None) -> None:
        """Write the new and the old bytes beside the target, so that either way is one rename and needs no space.

        Beside it, because only there a rename is sure to stay on one file system. Old after new: while the old bytes
        are not there, nothing was replaced. ``mode`` is for the new bytes; owner and the rest are the target's.
        """
        target, new, old = self._places(entry)
        for path, data, permissions in ((new, after, mode), (old, before, None)):
            if data is None:
                continue
            disk.create(path, data)
            if before is not None:
                owner = target.stat()
                with suppress(OSError):  # only root may give files away, and then it should
                    os.chown(path, owner.st_uid, owner.st_gid)
                shutil.copystat(target, path)
            if permissions is not None:
                path.chmod(permissions)
        disk.sync_folder(target.parent)

    # --- moving ---

    def turn(self, phase: Phase, to: Phase) -> None:
        """One rename: the journal's name is its phase."""
        disk.rename(self.folder / phase, self.folder / to)

    def obstacles(self, journal: Journal, *, forward: bool) -> list[Problem]:
        """Why ``settle`` would stop halfway; look before you leap."""
        problems: list[Problem] = []
        for entry in journal.entries:
            try:
                self._missing(entry, forward=forward)
            except Refused as refused:
                problems += refused.problems
        return problems

    def settle(self, journal: Journal, *, forward: bool) -> None:
        """Bring each file to its bytes after, or before. May be killed and run again. Never writes into a file:
        package managers hard-link theirs, and readers have them open."""
        for entry in journal.entries:
            if not self._missing(entry, forward=forward):
                continue
            target, new, old = self._places(entry)
            if (entry.after if forward else entry.before) is None:
                disk.remove(target)
                disk.sync_folder(target.parent)
                continue
            source = new if forward else old
            last = target.stat().st_mtime_ns if target.exists() else 0
            now = max(time.time_ns(), last + 1_000_000)  # build systems must see each change, also in a fast sequence
            os.utime(source, ns=(now, now))
            disk.rename(source, target)

    def _missing(self, entry: Entry, *, forward: bool) -> bool:
        """Whether the file is still to be moved. Refused if somebody else changed it meanwhile, or took our copy."""
        target, new, old = self._places(entry)
        wanted, source = (entry.after, new) if forward else (entry.before, old)
        found = self._hash(entry.path)
        if found == wanted:
            return False
        if not forward:
            put_back_or_never_laid_out = entry.before is not None and not old.exists()
            never_replaced = entry.after is not None and new.exists()
            if put_back_or_never_laid_out or never_replaced:
                return False
        if found not in (entry.before, entry.after, None):
            raise self._refuse(
                entry,
                f"the bytes from before or after the interrupted command (SHA-256 {entry.before} or {entry.after})",
                "an edit that somebody made since",
                f"save your edit elsewhere and delete {target}; the next command puts the file in order",
            )
        if wanted is not None and sha256(_read(source)) != wanted:
            help_ = f"put back a pristine tree (git checkout, or fetch it again), and delete {self.folder}"
            raise self._refuse(entry, f"the copy {source.name} beside it", "none, or a damaged one", help_)
        return True

    def changed_since(self, journal: Journal) -> list[Problem]:
        """The files that are not what they were when the transaction read them."""
        return [
            self._refuse(e, "the bytes that were read a moment ago", "others", "run the command again").problems[0]
            for e in journal.entries
            if self._hash(e.path) != e.before
        ]

    def _places(self, entry: Entry) -> tuple[Path, Path, Path]:
        """Where the file lies, and where its new and old bytes wait."""
        target = self.tree.root / RECEIPT if entry.path == RECEIPT else self.tree.locate(entry.path)
        return (
            target,
            target.with_name(f".{target.name}.fp4patch-new"),
            target.with_name(f".{target.name}.fp4patch-old"),
        )

    def _hash(self, path: str) -> str | None:
        if path == RECEIPT:
            return sha256(_read(self.tree.root / RECEIPT))
        file = self.tree.read(path)
        return sha256(file.data) if file else None

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
        if not self.folder.is_dir() or self.journal():
            return
        receipt = self.receipt()
        done = _read(self.folder / Phase.DONE)
        for entry in self._parse(done, Phase.DONE).entries if done is not None else ():
            _, new, old = self._places(entry)
            disk.remove(new)
            disk.remove(old)
        needed = {file.pristine_sha256 for file in receipt.files.values()} if receipt else set()
        for blob in self._blob_files():
            if blob.name not in needed:
                disk.remove(blob)
        disk.remove(self.folder / "journal.new")
        if not needed and self._blobs.is_dir():
            disk.remove_folder(self._blobs)
        disk.remove(self.folder / Phase.DONE)
        if receipt is None:
            disk.remove(self.folder / ".gitignore")
            with suppress(OSError):  # what others put there stays, and then so does the folder
                disk.remove_folder(self.folder)


def _read(path: Path) -> bytes | None:
    """A file of our own, never through a symlink; None if there is none."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        help_ = "run fp4patch as the user who patched the tree"
        raise _refuse(f"{path}: {error.strerror}", path, "a file to read", str(error.strerror), help_) from error
    except OSError as error:
        help_ = "look at it, and move it away"
        raise _refuse(f"{path}: {error.strerror}", path, "a file", str(error.strerror), help_) from error


def _refuse(message: str, path: Path, expected: str, found: str, help: str) -> Refused:  # noqa: A002
    return Refused(message, help=help, problems=[Problem(expected=expected, found=found, help=help, file=str(path))])
