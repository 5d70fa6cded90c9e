"""A view of a source tree: the tree with some files replaced, as a folder to compile against.

The pristine side needs no second checkout: its include folders are copied in full, and only when something must be
compiled. Putting a folder of pristine headers in front of the tree's would not do: headers include their siblings,
which would still be the patched ones.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fp4patch.model.target import Target


@dataclass(frozen=True)
class SourceView:
    """A tree with these files over it; keys are POSIX paths relative to ``root``, None means *not there*."""

    root: Path
    overlay: Mapping[str, bytes | None] = field(default_factory=dict)


class Side:
    """One view while it is being compiled against: where it lies on disk, and the hashes of its files."""

    def __init__(self, view: SourceView, target: Target, scratch: Path) -> None:
        self._root = view.root.resolve()
        self._overlay = {PurePosixPath(path).as_posix(): content for path, content in view.overlay.items()}
        self._include = target.include
        self._scratch = scratch
        self._folder: Path | None = None if view.overlay else self._root
        self._lock = threading.Lock()
        self._digests: dict[str, str | None] = {}

    @property
    def root(self) -> Path:
        """The tree that this is a view of."""
        return self._root

    def folder(self) -> Path:
        """The view as a folder; where files are replaced, a copy of the include folders with them in place."""
        with self._lock:
            if self._folder is None:
                self._folder = self._materialise()
            return self._folder

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file of the view, None where there is none."""
        if path not in self._digests:
            if path in self._overlay:
                content = self._overlay[path]
                self._digests[path] = None if content is None else hashlib.sha256(content).hexdigest()
            else:
                self._digests[path] = file_digest(self._root / path)
        return self._digests[path]

    def changed_since(self, path: str, moment: float) -> bool:
        """Whether somebody wrote the tree's own file after ``moment`` (seconds of the epoch)."""
        return path not in self._overlay and changed_since(self._root / path, moment)

    def _materialise(self) -> Path:
        copy = self._scratch / "tree"
        for include in self._include:
            if (source := self._root / include).is_dir():
                # Links are followed: a copy must not lead back into the tree.
                shutil.copytree(source, copy / include, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        for path, content in self._overlay.items():
            if not any(PurePosixPath(path).is_relative_to(include) for include in self._include):
                continue
            place = copy / path
            place.unlink(missing_ok=True)
            if content is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        return copy


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def changed_since(path: Path, moment: float) -> bool:
    """Whether a file was written after ``moment``, as far as can be known."""
    try:
        return path.stat().st_mtime >= moment
    except OSError:
        return True
