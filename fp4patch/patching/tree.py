"""Safe access to the files of one source tree: nothing outside it, nothing that is not a regular file of text."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fp4patch.errors import Refused
from fp4patch.model.problem import Problem

STATE_DIR = ".fp4patch"
"""The folder in a tree's root that holds all that fp4patch keeps there."""

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


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
        """The tree at ``path``, symlinks resolved. Refused if that is no folder."""
        root = Path(os.path.realpath(path))
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            raise Refused(f"{path} is not a folder", help="name the top folder of a source tree")
        return cls(root)

    def locate(self, rel: str) -> Path:
        """Where ``rel`` lies; the last component is not followed. Refused if that is not inside this tree."""
        parts = PurePosixPath(rel).parts
        if not parts or rel.startswith("/") or ".." in parts or "\0" in rel:
            raise _refuse(rel, "a path inside the tree", "a path that leads out of it")
        if STATE_DIR in parts:
            raise _refuse(rel, "a source file", f"a path into {STATE_DIR}, which is fp4patch's own")
        path = self.root.joinpath(*parts)
        # Links within the tree are upstream's business; what counts is where the file really lies.
        if not Path(os.path.realpath(path.parent)).is_relative_to(self.root):
            raise _refuse(rel, "a file inside the tree", f"a symlink out of it, to {os.path.realpath(path)}")
        return path

    def read(self, rel: str) -> SourceFile | None:
        """The file at ``rel``; None if there is none.

        Refused, with one problem, if it lies outside the tree, is a symlink, is not a regular file, or is unreadable.
        """
        path = self.locate(rel)
        try:
            # The kinds are told apart before opening: opening a FIFO waits, opening a device may do anything.
            kind = path.lstat().st_mode
            if not stat.S_ISREG(kind):
                raise _refuse(rel, "a regular file", _KINDS.get(stat.S_IFMT(kind), "something else"))
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                return SourceFile(rel, file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise _refuse(rel, "a readable file", error.strerror or str(error)) from error

    def writable_problem(self, rel: str) -> Problem | None:
        """Why the file at ``rel`` must not, or cannot, be replaced (or made again); None if it can.

        A file without any write bit was made read-only by somebody: that holds for root too.
        """
        found, advice = _hindrance(self.locate(rel), self.root)
        return _problem(rel, "a file that can be replaced", found, advice) if found else None


def _hindrance(path: Path, root: Path) -> tuple[str, str]:
    """What keeps us from replacing a file, and what to do; empty if nothing does."""
    try:
        read_only = os.statvfs(path.parent).f_flag & os.ST_RDONLY
        mode = stat.S_IMODE(path.lstat().st_mode) if os.path.lexists(path) else None
    except OSError as error:
        advice = f"put the folder back; if {STATE_DIR} was copied here from another tree, delete that"
        gone = f"no folder {path.parent.relative_to(root)}", advice
        return gone if error.errno in _ABSENT else (error.strerror or str(error), "")
    if read_only:
        return "a read-only file system", "mount it writable, or copy the tree"
    if mode is not None and not mode & 0o222:
        return f"a read-only file (mode {mode:04o})", "chmod u+w it, if it may change"
    if mode is not None and not os.access(path, os.W_OK):
        found = f"a file that you may not write (mode {mode:04o}, owner {_owner(path)})"
        return found, "run fp4patch as its owner, or copy the tree"
    for folder in (path.parent, root):
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"a read-only folder, {folder}", "make the folder writable, or copy the tree"
    return "", ""


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # a user of another machine or container
        return str(path.stat().st_uid)


def decode(data: bytes, path: str) -> str:
    """The text of a file, its byte-order mark and line ends as they are. Refused: not UTF-8, or with a NUL."""
    if b"\0" in data:
        raise _refuse(path, "UTF-8 text", f"a NUL byte at offset {data.index(0)}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refuse(path, "UTF-8 text", f"byte 0x{data[error.start]:02x} at offset {error.start}", line) from error


def encode(text: str) -> bytes:
    """The bytes of a text: the exact inverse of ``decode``."""
    return text.encode("utf-8")


_KINDS = {
    stat.S_IFLNK: "a symlink",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _problem(rel: str, expected: str, found: str, help: str = "", line: int | None = None) -> Problem:  # noqa: A002
    return Problem(
        expected=expected, found=found, file=rel, line=line, help=help or "put back the file that upstream released"
    )


def _refuse(rel: str, expected: str, found: str, line: int | None = None) -> Refused:
    problem = _problem(rel, expected, found, line=line)
    return Refused(f"{rel}: expected {expected}, found {found}", help=problem.help, problems=[problem])
