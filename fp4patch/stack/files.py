"""The files of one release, by the names of upstream's repository: of a tree, of a pinned archive, or of a clone."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fp4patch.catalog.identify import claimed_version, is_at
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.target import Target
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress, silent
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


def blob_name(text: str) -> str:
    """Return the name that git gives a content (SHA-1)."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@contextmanager
def opened(
    names: Sequence[str],
    catalog: Catalog,
    paths: Collection[str],
    *,
    clone: Clone | None = None,
    progress: OnProgress = silent,
) -> Iterator[list[Release]]:
    """Yield the releases and trees of some names, of which these paths will be read.

    UsageError: there is no tree or release of that name. SourceError: it cannot be fetched.
    """
    with scratch(Path(_temporary()), "fp4patch-plan-") as work:
        yield [
            release_of(name, catalog, paths, clone=clone, work=work / str(number), progress=progress)
            for number, name in enumerate(names)
        ]


def _temporary() -> str:
    import tempfile  # noqa: PLC0415 - only where a release is opened

    return tempfile.gettempdir()


def release_of(
    name: str, catalog: Catalog, paths: Collection[str], *, clone: Clone | None, work: Path, progress: OnProgress
) -> Release:
    """Return one release: see :func:`opened`. ``work`` is a directory that does not exist yet, for what git clones."""
    if re.search(r"[^/]==", name) and not Path(name).exists():
        target_name, _, version = name.partition("==")
        target = catalog.target(target_name.strip())
        version = version.strip().removeprefix("v")
        if not is_version(version):
            known = [archive.version for archive in target.archives]
            raise UsageError(
                f"{version!r} is not a version", help=f"for example {target.name}=={(known or ['1.0'])[-1]}"
            )
        return _published(name, target, version, paths, clone, work, progress)
    root = Path(name)
    if not root.is_dir():
        known = [f"{target.name}==" for target in catalog.targets.values()]
        raise UsageError(f"{name} is no directory", help=suggested(name, known, "name a tree, or TARGET==VERSION"))
    return of_tree(root, catalog, clone)


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
        wanted = target.in_layouts(sorted(paths))
        contents = read_files(download(archive, progress), archive.subtree, wanted)
        return Release(name, lambda path: _in_layouts(target, path, contents), target, version)
    fetch(target, version, work, progress=progress)
    return Release(name, _reader(work, target), target, version)


def _in_layouts(target: Target, path: str, contents: Mapping[str, bytes]) -> bytes | None:
    return next((contents[place] for place in target.in_layouts([path]) if place in contents), None)


def of_tree(root: Path, catalog: Catalog, clone: Clone | None) -> Release:
    """Return the release that is in a directory; its history is the clone's that it is, or that is given."""
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
        for place in target.in_layouts([path]) if target else (path,):
            file = top / place
            try:
                inside = file.parent.resolve().is_relative_to(top) and not file.is_symlink()
                if inside and file.is_file() and file.stat().st_size <= _LARGEST:
                    return file.read_bytes()
            except OSError:
                continue
        return None

    return read
