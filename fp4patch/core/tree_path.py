"""Names of files in a source tree, for manifests and receipts."""

from __future__ import annotations

from pathlib import PurePosixPath

SUFFIXES = frozenset((".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl", ".py", ".cmake"))
"""File suffixes of the languages that edits support: C++, Python and CMake."""


def is_inside(path: str) -> bool:
    """Return whether a text names a file inside a tree, with slashes and in normal form."""
    parts = PurePosixPath(path)
    return path == parts.as_posix() != "." and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path


def is_source(path: str) -> bool:
    """Return whether an edit can change the file: a C++, Python or CMake file that is in no hidden directory."""
    parts = PurePosixPath(path)
    known = parts.suffix in SUFFIXES or parts.name == "CMakeLists.txt"
    return is_inside(path) and known and not any(part.startswith(".") for part in parts.parts)
