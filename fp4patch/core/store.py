"""The user's cache directory: directories for unfinished files, hashes, and results that were worked out before.

A result is found by a key, which is made of the hashes of all its inputs; the source of the packages that make it is
one of them. Reading never fails: an entry that is damaged or absent is a miss. Writing is atomic, and a directory that
cannot be written only costs time.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any

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
    """Make a directory below ``parent``, which is made too, and remove it with what is left in it."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix, ignore_cleanup_errors=True) as work:
        yield Path(work)


def sha256(path: Path) -> str:
    """Return the file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key(*parts: str | bytes) -> str:
    """Return one name for a sequence of texts; no two sequences share it."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


@cache
def source_hash(*packages: str) -> str:
    """Return one SHA-256 of all files of some packages of ours, by their import names."""
    return files_hash(*(Path(str(import_module(package).__file__)).parent for package in packages))


@cache
def files_hash(*folders: Path) -> str:
    """Return one SHA-256 of all files in and below some directories. OSError: one cannot be read."""
    digest = hashlib.sha256()
    for top in folders:
        for folder, below, names in os.walk(top):
            below[:] = sorted(name for name in below if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(folder, name)  # noqa: PTH118 - a Path for each of them takes as long as the hash
                with open(path, "rb") as file:  # noqa: PTH123
                    content = file.read()
                digest.update(f"{os.path.relpath(path, top)}\0{len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()


class Store:
    """Values by key, as JSON files in a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Any:
        """Return the value of this key; None if there is none, or it is not what was put there."""
        try:
            checksum, _, data = self._path(key).read_bytes().partition(b"\n")
            return json.loads(data) if checksum.decode() == hashlib.sha256(data).hexdigest() else None
        except (OSError, ValueError, RecursionError):
            return None

    def put(self, key: str, value: object) -> None:
        """Keep a value, in the place of the one that was there."""
        path = self._path(key)
        data = json.dumps(value).encode()
        whole = path.with_name(f".new-{token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole.write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
            whole.replace(path)
        except OSError:
            with suppress(OSError):
                whole.unlink()

    def _path(self, key: str) -> Path:
        return self._folder / f"{key[:2]}/{key[2:]}.json"
