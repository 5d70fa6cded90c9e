"""Names of files in a source tree, for manifests and receipts."""

from pathlib import PurePosixPath

CXX = frozenset((".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl"))
"""File suffixes of C++ and CUDA sources."""


def is_inside(path: str) -> bool:
    """Return whether a text names a file inside a tree, with slashes and in normal form."""
    parts = PurePosixPath(path)
    return path == parts.as_posix() != "." and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path
