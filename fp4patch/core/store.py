"""The store of results in the user's cache: what was worked out before from the same inputs, by the same code.

A result is found by a key, which is made of the hashes of all its inputs; the source of the packages that make it is
one of them. Reading never fails: an entry that is damaged or absent is a miss. Writing is atomic, and a directory that
cannot be written only costs time.
"""

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

FORMAT = 2
"""Part of every key: a change of what is stored makes all older entries misses."""


def key(*parts: str | bytes) -> str:
    """Return one name for a sequence of texts; no two sequences share it."""
    digest = hashlib.sha256(b"fp4patch %d" % FORMAT)
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
    """Values by key, as JSON files in a directory. With ``most``, the oldest entries beside a new one are removed."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder, self._most = folder, most

    def get(self, key: str) -> Any:
        """Return the value of this key; None if there is none, or it is not what was put there."""
        try:
            checksum, _, data = self._path(key).read_bytes().partition(b"\n")
            return json.loads(data) if checksum.decode() == hashlib.sha256(data).hexdigest() else None
        except (OSError, ValueError, RecursionError):
            return None

    def put(self, key: str, value: object) -> None:
        """Keep a value, in the place of the one that was there."""
        path, data = self._path(key), json.dumps(value).encode()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            if self._most:
                entries = sorted(path.parent.glob("*.json"), key=lambda entry: entry.stat().st_mtime)
                for old in entries[: -self._most]:
                    old.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / (f"{key}.json" if self._most else f"{key[:2]}/{key[2:]}.json")
