"""The few ways in which fp4patch changes a disk. Each calls ``step`` first, so a test can end the process there."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def step(what: str) -> None:
    """Called before every change of the disk, with the change in words. It does nothing: tests put a kill here."""


def create(path: Path, data: bytes) -> None:
    """A new file that is on the disk when this returns; one that a killed command left under that name goes first."""
    remove(path)
    step(f"create {path}")
    with open_new(path) as descriptor:
        step(f"fill {path}")
        left = memoryview(data)
        try:
            while left:  # a short write comes first, then ENOSPC or EFBIG says why
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError as error:
            error.filename = str(path)  # a descriptor has no name, and the user wants one
            raise


@contextmanager
def open_new(path: Path) -> Iterator[int]:
    """A descriptor of a file that did not exist; never one that a symlink leads to."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def rename(source: Path, destination: Path) -> None:
    """Atomic: another process sees the old file or the new one. Durable when this returns."""
    step(f"rename {source} to {destination}")
    source.replace(destination)
    sync_folder(destination.parent)


def remove(path: Path) -> None:
    """Remove a file or a symlink, if it is there."""
    if os.path.lexists(path):
        step(f"remove {path}")
        path.unlink()


def make_folder(path: Path) -> None:
    """Make one folder, if it is not there."""
    if not os.path.lexists(path):
        step(f"make {path}")
        path.mkdir()


def remove_folder(path: Path) -> None:
    """Remove an empty folder, if it is there."""
    if os.path.lexists(path):
        step(f"remove {path}")
        path.rmdir()


def sync_folder(path: Path) -> None:
    """Names in a folder survive a power cut only after this."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):  # some network file systems have no such thing
            raise
    finally:
        os.close(descriptor)
