"""The user's cache directory, the hashes of files in it, and directories for unfinished files."""

import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from fp4patch.core.errors import SourceError


def cache_dir() -> Path:
    """Return the directory of downloads and compilations: ``FP4PATCH_CACHE``, else the user's cache directory.

    Raise SourceError if this user has none, as in a container that runs under another user id.
    """
    try:
        return Path(os.environ.get("FP4PATCH_CACHE") or platformdirs.user_cache_path("fp4patch"))
    except RuntimeError as error:
        raise SourceError(
            "this user has no home directory to keep downloads and compilations in",
            help="set FP4PATCH_CACHE to a directory for them, or HOME",
        ) from error


@contextmanager
def scratch(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a directory below ``parent``, which is made too, and remove both as far as they were not there before.

    The directory is locked while it is used. What a command that was killed left there is removed by the next one.
    """
    made = [directory for directory in (parent, *parent.parents) if not directory.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f"{glob.escape(prefix)}*{_UNFINISHED}"):
        with suppress(OSError), _locked(left):
            shutil.rmtree(left)
    work = Path(tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=_UNFINISHED))
    try:
        with _locked(work):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):  # a directory in use remains
            for directory in made:
                directory.rmdir()


_UNFINISHED = ".fp4patch-unfinished"


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """OSError: another process has it."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def sha256(path: Path) -> str:
    """Return the file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
