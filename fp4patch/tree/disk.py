"""The few ways in which fp4patch changes a disk. Each calls ``step`` first, so a test can end the process there.

A change is made to a name in an open directory, never to a path: a user who can write above it could put a link into
the path between a check and the change.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

LARGEST = 256 << 20
"""Bytes of the largest file that is read: no source file comes near it, and a sparse one must not fill the memory."""

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

KINDS = {
    stat.S_IFLNK: "a symlink",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotAFile(OSError):  # noqa: N818 - it describes an entry, which may be no error
    """Something that is no regular file has the name of one. ``strerror`` names its kind."""


def step(what: str) -> None:
    """Test hook, called before every change of the disk with the change in words. The kill tests patch it."""


@contextmanager
def _closed_after(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Directory:
    """An open directory. Names in it are never followed where they are links."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        """The directory's path, for messages."""
        self._at = descriptor

    @classmethod
    def at(cls, path: Path) -> Directory:
        """Open the directory at a path whose last component is no link. OSError: it is none."""
        return cls(path, os.open(path, _DIRECTORY))

    def below(self, *parts: str) -> Directory:
        """Open a directory below this one, component by component. OSError: one of them is a link, or not there."""
        found = Directory(self.path, os.dup(self._at))
        try:
            for part in parts:
                deeper = os.open(part, _DIRECTORY, dir_fd=found._at)
                os.close(found._at)
                found = Directory(found.path / part, deeper)
        except OSError as error:
            there = found.stat(part)
            os.close(found._at)
            if there and stat.S_ISLNK(there.st_mode):
                raise OSError(errno.ELOOP, "a symlink on the way", str(found.path / part)) from error
            raise
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._at)

    # --- looking ---

    def stat(self, name: str = "") -> os.stat_result | None:
        """Return what is known of a name, or of the directory itself; None if there is no such name."""
        with suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._at, follow_symlinks=False) if name else os.fstat(self._at)
        return None

    @property
    def identity(self) -> tuple[int, int]:
        """The directory's device and inode."""
        found = os.fstat(self._at)
        return found.st_dev, found.st_ino

    def names(self) -> list[str]:
        """Return the names in the directory, sorted."""
        with _closed_after(self._readable()) as descriptor:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 - of a descriptor, which a Path cannot be

    def read(self, name: str) -> tuple[bytes, os.stat_result] | None:
        """Return the bytes of a regular file, and what is known of it; None if there is none.

        NotAFile: the name is of something else. OSError: it cannot be read, or is larger than any source file.
        """
        # The kind is checked before opening: opening a FIFO waits, and opening a device can have any effect.
        found = self.stat(name)
        if found is None:
            return None
        descriptor = self._open(name, found)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(LARGEST), os.fstat(descriptor)

    def tail(self, name: str, size: int) -> bytes:
        """Return the last bytes of a regular file. OSError: there is none."""
        found = os.stat(name, dir_fd=self._at, follow_symlinks=False)
        with _closed_after(self._open(name, found)) as descriptor:
            return os.pread(descriptor, size, max(0, found.st_size - size))

    def _open(self, name: str, found: os.stat_result) -> int:
        """Open a regular file to read it, and nothing else that has come into its place."""
        if stat.S_ISREG(found.st_mode):
            descriptor = os.open(name, _FILE, dir_fd=self._at)
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST:
                return descriptor
            os.close(descriptor)
        if stat.S_ISREG(found.st_mode):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self.path / name))
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotAFile(errno.EINVAL, kind, str(self.path / name))

    # --- changing ---

    def create(self, name: str, data: bytes, *, like: str = "", mode: int | None = None) -> None:
        """Make a file that is on the disk when this returns; one that a killed command left under that name goes first.

        It belongs to the owner of the file ``like``, and has its permissions and attributes, but for a ``mode`` that is
        given. Without such a file, what root makes belongs to the owner of the directory.
        """
        self.remove(name)
        step(f"create {self.path / name}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        found = self.stat(like) if like else None
        private = found is not None or mode is not None
        descriptor = os.open(name, flags, 0o600 if private else 0o666, dir_fd=self._at)
        try:
            step(f"fill {self.path / name}")
            left = memoryview(data)
            while left:  # a short write comes first, then ENOSPC or EFBIG gives the reason
                left = left[os.write(descriptor, left) :]
            if found is not None:
                self._copy_attributes(like, found, descriptor)
                mode = stat.S_IMODE(found.st_mode) if mode is None else mode
            self._give(descriptor, found)
            if mode is not None:
                os.fchmod(descriptor, mode & 0o777)
            os.fsync(descriptor)
        except OSError as error:
            error.filename = str(self.path / name)  # a descriptor has no name, and the user wants one
            raise
        finally:
            os.close(descriptor)

    def _give(self, descriptor: int, replaced: os.stat_result | None) -> None:
        """Give a new file to the owner of the file that it replaces, else to the owner of the directory.

        The superuser's file in another user's directory is one that this user could have replaced: its replacement
        belongs to the directory's owner, so that no user can make root the owner of the user's bytes.
        """
        here = os.fstat(self._at)
        owner = replaced if replaced and (replaced.st_uid or not here.st_uid) else here
        if replaced or os.geteuid() == 0:
            with suppress(OSError):  # only root may give files away, and then it should
                os.fchown(descriptor, owner.st_uid, owner.st_gid)

    def _copy_attributes(self, name: str, found: os.stat_result, descriptor: int) -> None:
        """Extended attributes and access lists, but never capabilities."""
        if not hasattr(os, "listxattr"):
            return
        with _closed_after(self._open(name, found)) as source, suppress(OSError):  # some file systems have none
            for attribute in os.listxattr(source):
                if attribute != "security.capability":
                    with suppress(OSError):  # some attributes are root's
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))

    def rename(self, name: str, to: str) -> None:
        """Atomic: another process sees the old file or the new one. Durable when this returns."""
        step(f"rename {self.path / name} to {self.path / to}")
        os.rename(name, to, src_dir_fd=self._at, dst_dir_fd=self._at)
        self.sync()

    def set_time(self, name: str, nanoseconds: int) -> None:
        """Set when a regular file was last changed."""
        found = self.stat(name)
        if found:
            with _closed_after(self._open(name, found)) as descriptor:
                os.utime(descriptor, ns=(nanoseconds, nanoseconds))

    def remove(self, name: str) -> None:
        """Remove a file or a symlink, if it is there."""
        if self.stat(name):
            step(f"remove {self.path / name}")
            os.unlink(name, dir_fd=self._at)

    def make(self, name: str) -> None:
        """Make a directory, if it is not there; what root makes belongs to the owner of this one."""
        if not self.stat(name):
            step(f"make {self.path / name}")
            os.mkdir(name, dir_fd=self._at)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            with _closed_after(os.open(name, flags, dir_fd=self._at)) as made:
                self._give(made, None)

    def remove_folder(self, name: str) -> None:
        """Remove an empty directory, if it is there."""
        if self.stat(name):
            step(f"remove {self.path / name}")
            os.rmdir(name, dir_fd=self._at)

    def sync(self) -> None:
        """Names in a directory survive a power cut only after this."""
        with _closed_after(self._readable()) as descriptor:
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS):  # some network file systems have no such thing
                    raise

    def _readable(self) -> int:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._at)
