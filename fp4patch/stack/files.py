"""The files of one release, by the names of upstream's repository: of a tree, of a pinned archive, or of a clone."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fp4patch.catalog.identify import claimed_version, is_at
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.target import Target
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.release import is_version
from fp4patch.core.store import scratch
from fp4patch.core.wording import suggested
from fp4patch.sources.archive import read_files
from fp4patch.sources.fetch import fetch
from fp4patch.sources.history import Clone
from fp4patch.sources.index import download

_LARGEST = 16 << 20
"""Bytes of the largest file that is read: no source file comes near it."""


@dataclass(frozen=True)
class Release:
    """A release, or a tree of one."""

    name: str
    """As it was named: ``flashinfer==0.6.10``, or the tree's path."""
    read: Callable[[str], bytes | None]
    target: Target | None = None
    version: str = ""
    clone: Clone | None = None
    commit: str = ""
    """Its commit in the clone; empty if no clone has it."""
    _texts: dict[str, str | None] = field(default_factory=dict, repr=False)

    def text(self, path: str) -> str | None:
        """Return a file as text; None if there is none."""
        if path not in self._texts:
            content = self.read(path)
            self._texts[path] = None if content is None else content.decode("utf-8", "surrogateescape")
        return self._texts[path]


@contextmanager
def opener(
    catalog: Catalog, paths: Collection[str], clone: Clone | None, progress: OnProgress
) -> Iterator[Callable[[str], Release]]:
    """Yield what opens a tree, or TARGET==VERSION, of which these paths will be read.

    It raises UsageError if there is no tree or release of that name, and SourceError if that cannot be fetched.
    """
    with scratch(Path(tempfile.gettempdir()), "fp4patch-plan-") as work:

        @cache
        def opened(name: str) -> Release:
            if "==" not in name or Path(name).exists():
                return of_tree(Path(name), catalog, clone)
            target_name, _, version = name.partition("==")
            target, version = catalog.target(target_name.strip()), version.strip().removeprefix("v")
            if not is_version(version):
                known = [archive.version for archive in target.archives] or ["1.0"]
                raise UsageError(f"{version!r} is not a version", help=f"for example {target.name}=={known[-1]}")
            return _published(name, target, version, paths, clone, work / f"{target.name}-{version}", progress)

        yield opened


def _published(
    name: str,
    target: Target,
    version: str,
    paths: Collection[str],
    clone: Clone | None,
    work: Path,
    progress: OnProgress,
) -> Release:
    commit = clone.commit(target.tag_of(version)) if clone else ""
    if clone and commit:
        return Release(name, lambda path: clone.read(commit, path), target, version, clone, commit)
    if archive := target.archive(version):
        wanted = {place for path in paths for place in _places(target, path)}
        contents = read_files(download(archive, progress), archive.subtree, wanted)
        return Release(name, lambda path: _in_layouts(target, path, contents), target, version)
    fetch(target, version, work, progress=progress)
    return Release(name, _reader(work, target), target, version)


def _in_layouts(target: Target, path: str, contents: Mapping[str, bytes]) -> bytes | None:
    return next((contents[place] for place in _places(target, path) if place in contents), None)


def _places(target: Target, path: str) -> tuple[str, ...]:
    """Return the paths at which a tree can have a file of upstream's repository.

    An archive or an installed package is one directory of it: there ``flashinfer/gemm/core.py`` is ``gemm/core.py``.
    """
    tops = {archive.subtree for archive in target.archives} - {""}
    below = (path.removeprefix(f"{top}/") for top in sorted(tops) if path.startswith(f"{top}/"))
    return tuple(dict.fromkeys((*target.in_layouts([path]), *below)))


def of_tree(root: Path, catalog: Catalog, clone: Clone | None) -> Release:
    """Return the release that is in a directory; its history is the clone's that it is, or that is given."""
    if not root.is_dir():
        names = [f"{target.name}==" for target in catalog.targets.values()]
        raise UsageError(f"{root} is no directory", help=suggested(str(root), names, "name a tree, or TARGET==VERSION"))
    found = [target for target in catalog.targets.values() if is_at(root, target)]
    target = found[0] if len(found) == 1 else None
    version = str(claimed_version(root, target) or "") if target else ""
    own = Clone(root) if (root / ".git").exists() else None
    commit = own.commit("HEAD") if own else clone.commit(target.tag_of(version)) if clone and target and version else ""
    return Release(str(root), _reader(root, target), target, version, own or clone if commit else None, commit)


def _reader(root: Path, target: Target | None) -> Callable[[str], bytes | None]:
    """Return what reads a regular file of a tree, in whatever layout the tree is; links are not followed."""
    top = root.resolve()

    def read(path: str) -> bytes | None:
        for place in _places(target, path) if target else (path,):
            file = top / place
            try:
                inside = file.parent.resolve().is_relative_to(top) and not file.is_symlink()
                if inside and file.is_file() and file.stat().st_size <= _LARGEST:
                    return file.read_bytes()
            except OSError:
                continue
        return None

    return read
