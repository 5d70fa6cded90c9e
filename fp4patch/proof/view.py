"""A view of a source tree: the tree with some files replaced, as a directory to compile against.

The pristine side needs no second checkout: its include directories are copied in full, and only when something must be
compiled. Putting a directory of pristine headers in front of the tree's would not do: headers include their siblings,
which would still be the patched ones.
"""

import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fp4patch.catalog.target import Target
from fp4patch.core.cache import sha256
from fp4patch.core.errors import ProofError


@dataclass(frozen=True)
class SourceView:
    """A tree with these files over it; keys are POSIX paths relative to ``root``, None means *not there*."""

    root: Path
    overlay: Mapping[str, bytes | None] = field(default_factory=dict)


class Side:
    """One view while it is being compiled against: its address on disk, and the hashes of its files."""

    def __init__(self, view: SourceView, target: Target, scratch: Path, watched: Iterable[str] = ()) -> None:
        self.watched = tuple(sorted(watched))
        """Files of which compilations report the lines that they read, and those of which they made code."""
        self._root = view.root.resolve()
        self._overlay = {PurePosixPath(path).as_posix(): content for path, content in view.overlay.items()}
        self._include = target.include
        self._scratch = scratch
        self._folder: Path | None = None if view.overlay else self._root
        self._lock = threading.Lock()
        self._digests: dict[str, str | None] = {}
        self._names = ""

    @property
    def root(self) -> Path:
        """The tree that this is a view of."""
        return self._root

    def folder(self) -> Path:
        """Return the view as a directory; where files are replaced, a copy of the include directories with them in
        place.

        ProofError where there is no room for it.
        """
        with self._lock:
            if self._folder is None:
                try:
                    self._folder = self._materialise()
                except OSError as error:
                    raise ProofError(
                        f"{self._root} cannot be copied to {self._scratch}: {_reason(error)}",
                        help="its include directories are needed as they were; TMPDIR names another place for the copy",
                    ) from error
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

    def names(self) -> str:
        """SHA-256 over which files there are in the include directories: a new one may be found before another."""
        with self._lock:
            if not self._names:
                names = "\0".join(sorted(self._included()))
                self._names = hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()
            return self._names

    def _included(self) -> set[str]:
        files = set()
        for include in self._include:
            for place, _, names in os.walk(self._root / include):
                folder = Path(place).relative_to(self._root)
                files |= {(folder / name).as_posix() for name in names}
        inside = {path for path in self._overlay if self._is_included(path)}
        return files - inside | {path for path in inside if self._overlay[path] is not None}

    def _is_included(self, path: str) -> bool:
        return any(PurePosixPath(path).is_relative_to(include) for include in self._include)

    def changed_since(self, path: str, moment: float) -> bool:
        """Return whether the tree's own file was written after ``moment`` (seconds of the epoch)."""
        return path not in self._overlay and changed_since(self._root / path, moment)

    def _materialise(self) -> Path:
        copy = self._scratch / "tree"
        for include in self._include:
            if (source := self._root / include).is_dir():
                # Links are followed: a copy must not lead back into the tree.
                shutil.copytree(source, copy / include, ignore=_left_out, dirs_exist_ok=True)
        for path, content in self._overlay.items():
            if not self._is_included(path):
                continue
            place = copy / path
            place.unlink(missing_ok=True)
            if content is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        return copy


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # copytree's: a list of what it could not copy, and why
        return str(error.args[0][0][2])
    return error.strerror or str(error)


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return the entries that a copy cannot hold: a broken link, a link to a parent directory, or a special file."""
    places = {name: Path(folder, name) for name in names}
    above = {os.path.realpath(place) for place in (Path(folder), *Path(folder).parents)}
    return {
        name
        for name, place in places.items()
        if (place.is_symlink() and os.path.realpath(place) in above) or not (place.is_file() or place.is_dir())
    }


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    with suppress(OSError):
        return sha256(path)
    return None


def changed_since(path: Path, moment: float) -> bool:
    """Return whether a file was written after ``moment``, as far as known; ``cp -p`` and rsync keep older dates."""
    try:
        stat = path.stat()
        return max(stat.st_mtime, stat.st_ctime) >= moment
    except OSError:
        return True
