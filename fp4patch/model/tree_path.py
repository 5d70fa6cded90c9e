"""How a file of a source tree is named: in manifests and in receipts alike."""

from __future__ import annotations

from pathlib import PurePosixPath


def is_inside(path: str) -> bool:
    """Whether a text names something inside a tree, with slashes, and by the one name that it has."""
    parts = PurePosixPath(path)
    return path == parts.as_posix() != "." and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path
