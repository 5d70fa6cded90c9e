"""All files of a tree that a compiler or a build can read, each by its real path inside the tree."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.identify import unreadable
from fp4patch.core.globs import glob
from fp4patch.core.tree_path import is_source

_APART = frozenset({"__pycache__", "node_modules"})
# Example: csrc/build/lib.linux-x86_64-cpython-311
_BUILT = re.compile(r"(?:.*/)?build/(?:lib|temp|bdist)\.[^/]+")
"""Directories that setuptools fills: copies of Python files among them, which no build reads."""


def source_files(root: Path, apart: Iterable[Path]) -> tuple[list[str], list[str]]:
    """Return the source files of the tree at ``root``, a real path, and its links to what is not searched.

    What is located below ``apart`` is of other trees. Directories whose name begins with a dot, and virtual
    environments, are not of the tree.
    """
    files = []
    outside = []
    todo = [""]
    others = frozenset(map(os.path.realpath, apart))
    while todo:
        folder = todo.pop()
        try:
            entries = list(os.scandir(root / folder))
        except PermissionError as error:
            raise unreadable(error) from error
        if folder and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            name = f"{folder}{entry.name}"
            if entry.is_symlink():
                leads = entry.is_dir() or (is_source(entry.name) and entry.is_file())
                outside += [name] if leads and not _is_searched(entry, root, others) else []
            elif entry.is_dir():
                skipped = entry.name.startswith(".") or entry.name in _APART or entry.path in others
                todo += [] if skipped or _BUILT.fullmatch(name) else [f"{name}/"]
            elif is_source(entry.name) and entry.is_file():
                files.append(name)
    return sorted(files), outside


def _is_searched(link: os.DirEntry[str], root: Path, others: Iterable[str]) -> bool:
    """Return whether what a link leads to is searched in its own place, or is of another tree."""
    real = Path(os.path.realpath(link.path))
    if any(real.is_relative_to(path) for path in others):
        return True
    hidden = not real.is_relative_to(root) or any(part.startswith(".") for part in real.relative_to(root).parts)
    return not hidden and (real.is_dir() or is_source(real.name))


@dataclass(frozen=True)
class CandidateFiles:
    """Source files of a tree that its patches may be about; no other file decides what a patch comes to."""

    files: tuple[str, ...]
    unsearched: Mapping[str, str]
    """What is not searched, with the reason: links that lead out of the tree, and files that are too large."""

    def matching(self, globs: Sequence[str]) -> Iterator[str]:
        """Return the files whose real path one of the globs matches, in order. No receipt may name a file elsewhere."""
        pattern = glob(tuple(globs))
        return (file for file in self.files if pattern.fullmatch(file))
