"""A directory of JSON entries in the user's cache.

Reading never fails: an entry that is damaged or absent is a miss. Writing is atomic, and a directory that cannot be
written only costs time.
"""

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

FORMAT = 1
"""Part of every key: a change of what is stored makes all older entries misses."""


def key(*parts: str | bytes) -> str:
    """Return one name for a sequence of texts; no two sequences share it."""
    digest = hashlib.sha256(b"fp4patch %d" % FORMAT)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


class Store:
    """Entries by name; a name may have directories. With ``most``, the oldest entries beside a new one are removed."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder, self._most = folder, most

    def read(self, name: str) -> Any:
        """Return the entry of this name; None if there is none, or none that can be read."""
        try:
            return json.loads(self._path(name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, name: str, entry: object) -> None:
        """Keep an entry, in the place of the one that was there."""
        path = self._path(name)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(entry, file)
                Path(temporary).replace(path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            if self._most:
                entries = sorted(path.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
                for old in entries[: -self._most]:
                    old.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
