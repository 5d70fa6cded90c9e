"""How a file of a source tree is named: in manifests and in receipts alike."""

from __future__ import annotations

from pathlib import PurePosixPath

SUFFIXES = frozenset((".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl", ".py", ".cmake"))
"""Suffixes of the languages that edits know: C++, Python and CMake."""


def is_inside(path: str) -> bool:
    """Return whether a text names something inside a tree, with slashes, and by the one name that it has."""
    parts = PurePosixPath(path)
    return path == parts.as_posix() != "." and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path


def is_source(path: str) -> bool:
    """Return whether an edit could be about the file: a C++, Python or CMake file, in no hidden directory."""
    parts = PurePosixPath(path)
    known = parts.suffix in SUFFIXES or parts.name == "CMakeLists.txt"
    return is_inside(path) and known and not any(part.startswith(".") for part in parts.parts)
