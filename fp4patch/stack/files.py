"""The files of one release, by the names of upstream's repository: of a tree, of a pinned archive, or of a clone."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath

from fp4patch.catalog.identify import Identified, claimed_version, is_at
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.target import AS_UPSTREAM, Archive, Layout, Target
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.release import is_version
from fp4patch.core.store import scratch
from fp4patch.core.wording import suggested
from fp4patch.sources.archive import read_files
from fp4patch.sources.fetch import fetch
from fp4patch.sources.history import Clone
from fp4patch.sources.index import download
from fp4patch.tree.locking import locked

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
    layout: Layout = AS_UPSTREAM
    """Where it has the files of the repository."""
    occupied: Callable[[str], bool] = field(default=lambda _: False, repr=False)
    """Tells whether a directory, a link or the like is at a path, or one but a directory is above it."""
    _texts: dict[str, str | None] = field(default_factory=dict, repr=False)

    def text(self, path: str) -> str | None:
        """Return a file as text; None if there is none."""
        if path not in self._texts:
            content = self.read(path)
            self._texts[path] = None if content is None else content.decode("utf-8", "surrogateescape")
        return self._texts[path]

    def obstacle(self, path: str) -> str:
        """Return why no file can be made at a path at which there is none; empty if it can."""
        if not self.layout.has_place(path):
            return "an installed package has no place for it"
        if above := next((folder for folder in _above(path) if self.text(folder) is not None), ""):
            return f"the release has the file {above} where the patch needs a directory"
        return "the release has something else than a file there" if self.occupied(path) else ""


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
        return replace(in_archive(target, archive, paths, progress), name=name)
    fetch(target, version, work, progress=progress)
    layout = target.layout_at(work)
    return Release(name, _reader(work, layout, {}), target, version, layout=layout)


def in_archive(target: Target, archive: Archive, paths: Collection[str], progress: OnProgress) -> Release:
    """Return the release of a pinned archive, with these files alone."""
    marks = {mark for marks in (target.marks, *target.other_marks) for mark in marks}
    other = Layout(target.repository)
    named = {*paths, *(folder for path in paths for folder in _above(path))}
    wanted = {*marks, *named, *map(other.place, named)}
    contents = read_files(download(archive, progress), archive.subtree, wanted)
    layout = target.layout(contents.__contains__)
    read = lambda path: contents.get(layout.place(path))  # noqa: E731
    return Release(archive.filename, read, target, archive.version, layout=layout)


def of_commit(clone: Clone, commit: str) -> Release:
    """Return the files of a commit."""
    return Release(commit, lambda path: clone.read(commit, path), clone=clone, commit=commit)


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
    layout = target.layout_at(root) if target else AS_UPSTREAM
    pristine = _pristine(Identified(root.resolve(), target, claimed_version(root, target))) if target else {}
    history = own or clone if commit else None
    top = root.resolve()

    def occupied(path: str) -> bool:
        place = layout.place(path)
        try:
            linked = (top / place).parent.resolve() != (top / place).parent
            return linked or (os.path.lexists(top / place) and place not in pristine)
        except OSError:
            return True

    reader = _reader(root, layout, pristine)
    return Release(str(root), reader, target, version, history, commit, layout, occupied)


def _above(path: str) -> Iterator[str]:
    return map(str, PurePosixPath(path).parents[:-1])


def _pristine(tree: Identified) -> Mapping[str, bytes | None]:
    """Return the files that fp4patch patched as upstream has them: a release has no patch that we put in."""
    with locked([tree]) as (held,):
        return {path: held.read(path) for path in held.on_record}


def _reader(root: Path, layout: Layout, pristine: Mapping[str, bytes | None]) -> Callable[[str], bytes | None]:
    """Return what reads a regular file of a tree; links are not followed."""
    top = root.resolve()

    def read(path: str) -> bytes | None:
        place = layout.place(path)
        if place in pristine:
            return pristine[place]
        file = top / place
        try:
            is_itself = file.parent.resolve() == file.parent and not file.is_symlink()
            if is_itself and file.is_file() and file.stat().st_size <= _LARGEST:
                return file.read_bytes()
        except OSError:
            pass
        return None

    return read
