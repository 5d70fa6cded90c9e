"""Names of files in a source tree, for manifests and receipts."""

from pathlib import PurePosixPath

from fp4patch.core.globs import glob

CXX = frozenset((".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl"))
"""File suffixes of C++ and CUDA sources."""

_NO_SOURCE = frozenset(
    (
        # documents, pages and leftovers
        "md",
        "rst",
        "ipynb",
        "html",
        "css",
        "js",
        "ts",
        "map",
        "po",
        "log",
        "diff",
        "patch",
        "orig",
        "rej",
        # data and weights
        "json",
        "jsonl",
        "yaml",
        "yml",
        "csv",
        "lock",
        "parquet",
        "npz",
        "npy",
        "pt",
        "pth",
        "safetensors",
        "onnx",
        # pictures and fonts
        "svg",
        "png",
        "jpg",
        "jpeg",
        "gif",
        "ico",
        "webp",
        "pdf",
        "mp4",
        "ttf",
        "woff",
        "woff2",
        # what was built or packed
        "so",
        "a",
        "o",
        "pyc",
        "pyd",
        "bin",
        "whl",
        "zip",
        "gz",
        "xz",
        "bz2",
        "zst",
        # what apply writes before it renames
        "fp4patch-new",
    )
)
"""Suffixes of documentation, data and binaries. Every other file is searched."""


not_built = glob(("tests/**", "benchmarks/**", "docs/**", "examples/**")).fullmatch
"""Passes the paths of files that are no part of what is built."""


def is_inside(path: str) -> bool:
    """Return whether a text names a file inside a tree, with slashes and in normal form."""
    parts = PurePosixPath(path)
    return path == parts.as_posix() != "." and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path


def is_source(name: str) -> bool:
    """Tell whether a compiler or a build may read a file of this name."""
    stem, dot, suffix = name.rpartition(".")
    if suffix.lower() == "txt" and dot:
        return stem == "CMakeLists"
    return not (dot and stem and suffix.lower() in _NO_SOURCE)
