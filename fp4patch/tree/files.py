"""Safe access to the files of one source tree: nothing outside it, nothing that is not a regular file of text."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import overload

from fp4patch.core.errors import Refused
from fp4patch.core.results import Problem, State

STATE_DIR = ".fp4patch"
"""The directory in a tree's root that holds all that fp4patch keeps there."""
LARGEST = 16 << 20
"""Bytes of the largest file that is read: no source file comes near it, and a sparse one must not fill the memory."""

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OTHERS = {STATE_DIR: "fp4patch's", ".git": "git's"}
_KINDS = {
    stat.S_IFLNK: "a symlink",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Unreadable(Refused):
    """A file of a tree cannot be read: what state it is in is not known."""


class NotAFile(OSError):  # noqa: N818 - it describes an entry, which may be no error
    """Something that is no regular file has the name of one. ``strerror`` names its kind."""


@overload
def sha256(data: bytes) -> str: ...
@overload
def sha256(data: None) -> None: ...
@overload
def sha256(data: bytes | None) -> str | None: ...
def sha256(data: bytes | None) -> str | None:
    """Return the SHA-256 in hexadecimal; None of None, which stands for a missing file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


# --- one tree --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceFile:
    """A regular file of a tree as it was when it was read. ``mode`` is its permission bits."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True)
class Tree:
    """A source tree by its real path. Paths in it are relative, with slashes."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> Tree:
        """Return the tree at ``path``, symlinks resolved. Refused if that is no directory."""
        root = Path(os.path.realpath(path))
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            raise Refused(f"{path} is not a directory", help="name the top directory of a source tree")
        return cls(root)

    def locate(self, rel: str) -> Path:
        """Return where ``rel`` really is; the last component is not followed. Refused if not inside this tree."""
        parts = PurePosixPath(rel).parts
        if not parts or rel.startswith("/") or ".." in parts or "\0" in rel:
            raise refuse(rel, "a path inside the tree", "a path that leads out of it")
        if any("\ud800" <= letter <= "\udfff" for letter in rel):  # a receipt, which is JSON, could not name it
            raise refuse(rel, "a name in UTF-8", "another one", advice="rename the file")
        path = self.root.joinpath(*parts)
        folder = Path(os.path.realpath(path.parent))
        # Links within the tree are upstream's business; what counts is where the file really is.
        if not folder.is_relative_to(self.root):
            raise refuse(rel, "a file inside the tree", f"a symlink out of it, to {os.path.realpath(path)}")
        for part in (*parts, *folder.relative_to(self.root).parts):
            if owner := _OTHERS.get(part.lower()):
                raise refuse(rel, "a source file", f"a path into {part}, which is {owner} own")
        return folder / path.name

    def read(self, rel: str) -> SourceFile | None:
        """Return the file at ``rel``; None if there is none.

        Refused, with one problem, if it is outside the tree, a symlink or not a regular file. Unreadable: it may not be
        read.
        """
        try:
            content = read_file(self.locate(rel))
        except NotAFile as error:
            raise refuse(rel, "a regular file", str(error.strerror)) from error
        except OSError as error:
            refused = refuse(
                rel, "a readable file", error.strerror or str(error), advice="run fp4patch as a user who may read it"
            )
            raise Unreadable(refused.message, help=refused.help, problems=refused.problems) from error
        return SourceFile(rel, *content) if content else None

    def writable_problem(self, rel: str) -> Problem | None:
        """Return the reason why the file at ``rel`` must not, or cannot, be replaced (or made again); None if it can.

        Refuse a file that has no write bit, even for root.
        """
        place, found, advice = self.locate(rel), "", ""
        try:
            info = place.lstat()
        except FileNotFoundError:
            if not place.parent.is_dir():
                found = f"no directory {place.parent.relative_to(self.root)}"
                advice = f"put the directory back; if {STATE_DIR} was copied here from another tree, delete that"
        else:
            mode = stat.S_IMODE(info.st_mode)
            if mode & 0o7000:
                found = f"a file with a special permission bit (mode {mode:04o})"
                advice = "chmod ug-s,-t it: no source file needs one"
            elif not mode & 0o222:
                found, advice = f"a read-only file (mode {mode:04o})", "chmod u+w it, if it may change"
            elif not os.access(place, os.W_OK):
                found = f"a file that you may not write (mode {mode:04o}, owner {info.st_uid})"
                advice = "run fp4patch as its owner, or copy the tree to where you may write"
        return _problem(rel, "a file that can be replaced", found, advice) if found else None


# --- the disk --------------------------------------------------------------------------------------------------------


def step(what: str) -> None:
    """Test hook, called before every change of the disk with the change in words. The kill tests patch it."""


def read_file(path: Path) -> tuple[bytes, int] | None:
    """Return the bytes and the permission bits of a regular file; None if there is none.

    NotAFile: the name is of something else. OSError: it cannot be read, or is larger than any source file.
    """
    try:
        # The kind is checked before opening: opening a FIFO waits, and opening a device can have any effect.
        _must_be_a_file(path, path.lstat())
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _must_be_a_file(path, found)
        if found.st_size > LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read(LARGEST), stat.S_IMODE(found.st_mode)


def _must_be_a_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(errno.EINVAL, _KINDS.get(stat.S_IFMT(found.st_mode), "something else"), str(path))


def create(path: Path, data: bytes, *, like: Path | None = None, mode: int = 0o644) -> None:
    """Make a file that is on the disk when this returns; what a killed command left under that name goes first.

    It has the permissions, the owner and the attributes of the file ``like`` if that is there, else ``mode`` within the
    umask; what root makes without such a file, or of one of root's, belongs to the owner of the directory.
    """
    remove(path)
    step(f"create {path}")
    found = like.lstat() if like and os.path.lexists(like) else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600 if found else mode)
    try:
        step(f"fill {path}")
        left = memoryview(data)
        while left:  # a short write comes first, then ENOSPC or EFBIG gives the reason
            left = left[os.write(descriptor, left) :]
        if found and like:
            shutil.copystat(like, path, follow_symlinks=False)
            os.utime(descriptor)  # build systems must see the change
        if found or os.geteuid() == 0:
            # Root's own file among a user's is as a hard link would be: the user's bytes must not become root's.
            owner = found if found and found.st_uid else path.parent.stat()
            with suppress(OSError):  # only root may give files away, and then it should; capabilities get lost
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)  # a descriptor has no name, and the user wants one
        raise
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a directory, if it is not there; what root makes belongs to the owner of the one around it."""
    if not os.path.lexists(path):
        step(f"make {path}")
        path.mkdir()
        owner = path.parent.stat()
        if os.geteuid() == 0:
            with suppress(OSError):
                os.chown(path, owner.st_uid, owner.st_gid)


def rename(path: Path, to: Path) -> None:
    """Atomic: another process sees the old file or the new one. A link at ``to`` is replaced, not followed."""
    step(f"rename {path} to {to}")
    path.rename(to)


def remove(path: Path) -> None:
    """Remove a file, a symlink or an empty directory, if it is there."""
    if os.path.lexists(path):
        step(f"remove {path}")
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def sync(folder: Path) -> None:
    """Names in a directory survive a power cut only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):  # some network file systems have no such thing
            raise
    finally:
        os.close(descriptor)


# --- text ------------------------------------------------------------------------------------------------------------


def decode(data: bytes, path: str) -> str:
    """Return the text of a file, its byte-order mark and line ends as they are. Refused: not UTF-8, or with a NUL."""
    if b"\0" in data:
        raise refuse(path, "UTF-8 text", f"a NUL byte at offset {data.index(0)}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse(path, "UTF-8 text", f"byte 0x{data[error.start]:02x} at offset {error.start}", line) from error


def encode(text: str) -> bytes:
    """Return the bytes of a text: the exact inverse of ``decode``."""
    return text.encode("utf-8")


def _problem(
    rel: str, expected: str, found: str, advice: str = "", line: int | None = None, state: State | None = None
) -> Problem:
    advice = advice or "put back the file that upstream released"
    return Problem(expected=expected, found=found, file=rel, line=line, help=advice, state=state)


def refuse(
    rel: str, expected: str, found: str, line: int | None = None, advice: str = "", state: State | None = None
) -> Refused:
    """Return the refusal of one file of a tree, with its problem."""
    problem = _problem(rel, expected, found, advice, line, state)
    return Refused(f"{rel}: expected {expected}, found {found}", help=problem.help, problems=[problem])
