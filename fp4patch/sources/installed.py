"""Which package of an environment has installed a directory, and which bytes it has for a file: its ``RECORD``.

pip, uv and others write it: `the format <https://packaging.python.org/specifications/recording-installed-packages/>`_.
"""

import base64
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LARGEST = 64 << 20
"""Bytes of the largest RECORD that is read: it has a line of a hundred bytes for each file."""


@dataclass(frozen=True)
class Installed:
    """A package: what pip calls its release, and the hash of each of its files by the path in the environment."""

    release: str
    """As pip takes it: ``flashinfer_python==0.7.0``."""
    folder: Path
    """Where its paths begin: ``site-packages``."""
    hashes: Mapping[str, str]
    """As RECORD has them, ``sha256=`` and 43 characters; empty for a file without."""

    @staticmethod
    def owner(root: Path, marks: Sequence[Path]) -> "Installed | None":
        """Return the package that has installed one of the files ``marks`` below a directory; None if none has."""
        for folder in (root, *root.parents):
            places = [mark.relative_to(folder).as_posix() for mark in marks]
            for record in sorted(folder.glob("*.dist-info/RECORD")):
                text = _text(record)
                if any(place in text for place in places):
                    rows = csv.reader(text.splitlines())
                    hashes = {row[0]: row[1] for row in rows if len(row) == 3}
                    if any(place in hashes for place in places):
                        name, _, version = record.parent.name.removesuffix(".dist-info").rpartition("-")
                        return Installed(f"{name}=={version}", folder, hashes)
        return None

    def of(self, path: Path) -> str | None:
        """Return the hash of a file; None if the package has no such file."""
        return self.hashes.get(path.relative_to(self.folder).as_posix())


def record_hash(sha256: str) -> str:
    """Return a SHA-256 in hexadecimal as RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")


def _text(record: Path) -> str:
    """Return a RECORD; empty if it is no regular file, or cannot be read."""
    try:
        if record.is_file() and record.stat().st_size <= _LARGEST:
            return record.read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    return ""
