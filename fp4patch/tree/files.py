"""Safe access to the files of one source tree: nothing outside it, nothing that is not a regular file of text."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fp4patch.core.errors import Refused
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree import disk

STATE_DIR = ".fp4patch"
"""The directory in a tree's root that holds all that fp4patch keeps there."""

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OTHERS = {STATE_DIR: "fp4patch's", ".git": "git's"}
_MAY_READ = "run fp4patch as a user who may read the tree"


@dataclass(frozen=True)
class SourceFile:
    """A regular file of a tree as it was when it was read. ``mode`` is its permission bits."""

    path: str
    data: bytes
    mode: int


class Unreadable(Refused):
    """A file of a tree cannot be read: what state it is in is not known."""


@dataclass(frozen=True)
class Tree:
    """A source tree by its real path. Paths in it are relative, with slashes.

    ``descriptor`` is the open directory that a lock holds: with it, the tree stays this directory whatever becomes of
    its path.
    """

    root: Path
    descriptor: int | None = field(default=None, compare=False, repr=False)

    @classmethod
    def at(cls, path: Path) -> Tree:
        """Return the tree at ``path``, symlinks resolved. Refused if that is no directory."""
        root = Path(os.path.realpath(path))
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            raise Refused(f"{path} is not a directory", help="name the top directory of a source tree")
        return cls(root)

    def open(self, *parts: str) -> disk.Directory:
        """Open the tree's directory, or one below it to which no component is a link."""
        if self.descriptor is not None:
            return disk.Directory(self.root, self.descriptor).below(*parts)
        with disk.Directory.at(self.root) as root:
            return root.below(*parts)

    def place(self, rel: str) -> tuple[disk.Directory, str]:
        """Open the directory that holds ``rel``, and return it with the file's name in it. See ``locate``."""
        path = self.locate(rel)
        return self.open(*Path(os.path.realpath(path.parent)).relative_to(self.root).parts), path.name

    def locate(self, rel: str) -> Path:
        """Return where ``rel`` is located; the last component is not followed. Refused if not inside this tree."""
        parts = PurePosixPath(rel).parts
        if not parts or rel.startswith("/") or ".." in parts or "\0" in rel:
            raise refuse(rel, "a path inside the tree", "a path that leads out of it")
        path = self.root.joinpath(*parts)
        real = Path(os.path.realpath(path.parent))
        # Links within the tree are upstream's business; what counts is where the file really is.
        if not real.is_relative_to(self.root):
            raise refuse(rel, "a file inside the tree", f"a symlink out of it, to {os.path.realpath(path)}")
        for part in (*parts, *real.relative_to(self.root).parts):
            if owner := _OTHERS.get(part.lower()):
                raise refuse(rel, "a source file", f"a path into {part}, which is {owner} own")
        return path

    def read(self, rel: str) -> SourceFile | None:
        """Return the file at ``rel``; None if there is none.

        Refused, with one problem, if it is outside the tree, a symlink or not a regular file. Unreadable: it may not be
        read.
        """
        try:
            directory, name = self.place(rel)
            with directory:
                found = directory.read(name)
        except disk.NotAFile as error:
            raise refuse(rel, "a regular file", str(error.strerror)) from error
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            refused = refuse(rel, "a readable file", error.strerror or str(error), advice=_MAY_READ)
            raise Unreadable(refused.message, help=refused.help, problems=refused.problems) from error
        return SourceFile(rel, found[0], stat.S_IMODE(found[1].st_mode)) if found else None

    def identity(self, rel: str) -> tuple[int, int, str]:
        """Return what a file is by the directory that holds it, by whichever path that is reached."""
        directory, name = self.place(rel)
        with directory:
            return *directory.identity, name

    def mode_to_write(self, rel: str, recorded: int) -> int:
        """Return the permission bits that a file may get, of those that are on record for it.

        A receipt is input: it may not let more users write than may write the present file, or its directory.
        """
        allowed = 0o755
        with suppress(OSError):  # where its directory is gone, it cannot be written either
            directory, name = self.place(rel)
            with directory:
                for found in (directory.stat(name), directory.stat()):
                    allowed |= found.st_mode & 0o022 if found else 0
        return recorded & allowed

    def writable_problem(self, rel: str) -> Problem | None:
        """Return the reason why the file at ``rel`` must not, or cannot, be replaced (or made again); None if it can.

        Refuse a file that has no write bit, even for root.
        """
        found, advice = _hindrance(self.locate(rel), self.root)
        return _problem(rel, "a file that can be replaced", found, advice) if found else None


def _hindrance(path: Path, root: Path) -> tuple[str, str]:
    """Return the obstacle to replacing a file, and the recommended action; empty if there is none."""
    try:
        read_only = os.statvfs(path.parent).f_flag & os.ST_RDONLY
        mode = stat.S_IMODE(path.lstat().st_mode) if os.path.lexists(path) else None
    except OSError as error:
        advice = f"put the directory back; if {STATE_DIR} was copied here from another tree, delete that"
        gone = f"no directory {path.parent.relative_to(root)}", advice
        return gone if error.errno in _ABSENT else (error.strerror or str(error), "")
    if read_only:
        return "a read-only file system", "mount it writable, or copy the tree"
    if mode is not None and (mode & 0o7000 or not mode & 0o222):
        special = "a file with a special permission bit", "chmod ug-s,-t it: no source file needs one"
        kind, advice = special if mode & 0o7000 else ("a read-only file", "chmod u+w it, if it may change")
        return f"{kind} (mode {mode:04o})", advice
    if mode is not None and not os.access(path, os.W_OK):
        found = f"a file that you may not write (mode {mode:04o}, owner {_owner(path)})"
        return found, "run fp4patch as its owner, or copy the tree"
    for folder in (path.parent, root):
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"a read-only directory, {folder}", "make the directory writable, or copy the tree"
    return "", ""


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # a user of another machine or container
        return str(path.stat().st_uid)


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
