"""Recognition of a source tree by its contents at any path, and of the version that it states.

The version is only a hint: bundled copies can be wrong (xformers 0.0.35 states 4.3.0 over 4.2 headers).
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.target import Target
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.release import is_version
from fp4patch.core.wording import joined


@dataclass(frozen=True)
class Identified:
    """A tree that was recognised. ``version`` is the one that it states or that the user gave; None if there is
    none."""

    root: Path
    target: Target
    version: Version | None


def identify(path: Path, catalog: Catalog, said: str | None = None) -> Identified:
    """Return the target and the version of the tree at ``path``; ``said`` overrides what the tree claims.

    Refused, with a hint where one is near, if it is no tree of a known kind or of more than one.
    """
    if said and not is_version(said):
        raise UsageError(f"{said!r} is not a version", help="for example --target-version 4.3.5")
    root = Path(os.path.realpath(path))  # not resolve(): a loop of links is not a directory, and not a bug
    matches = [target for target in catalog.targets.values() if is_at(root, target)]
    if not matches and not os.path.isdir(root):  # noqa: PTH112 - nor is a name that is too long
        raise Refused(f"{path} is not a directory", help="name the top directory of a source tree")
    if len(matches) > 1:
        raise Refused(
            f"{path} looks like {' and '.join(t.title for t in matches)}", help="name the directory of one of them"
        )
    if not matches:
        raise Refused(f"{path} is not a source tree of a known target", help=_hint(root, catalog))
    target = matches[0]
    return Identified(root, target, Version(said) if said else claimed_version(root, target))


def identify_all(paths: Iterable[Path], catalog: Catalog, said: str | None = None) -> list[Identified]:
    """Return each tree once, in the order in which they were named, and behind each tree those that it contains."""
    trees: dict[Path, Identified] = {}
    for tree in [identify(path, catalog, said) for path in paths]:
        trees.setdefault(tree.root, tree)
        for inside in contained(tree.root, tree.target, catalog):
            trees.setdefault(inside.root, inside)
    return list(trees.values())


def contained(root: Path, target: Target, catalog: Catalog) -> Iterator[Identified]:
    """Yield the trees of other targets that a tree contains. Refused: one of them is a link out of it."""
    for part in target.contains:
        inner = catalog.targets[part.target]
        for folder in (root / place for place in part.at):
            if is_at(folder, inner):
                found = folder.resolve()
                if not found.is_relative_to(root):
                    raise Refused(
                        f"{folder} is a link to {found}, outside the tree",
                        help="name the directory above that holds both, or put a copy in the link's place",
                    )
                yield Identified(found, inner, claimed_version(found, inner))


def is_at(folder: Path, target: Target) -> bool:
    """Return whether a tree of that kind is there. Refused: unknown, since a directory in it is not readable."""
    try:
        return not target.missing(folder)
    except PermissionError as error:
        raise unreadable(error) from error
    except OSError:  # a name that is too long, for one
        return False


def unreadable(error: PermissionError) -> Refused:
    """Return the problem for a part of a tree that is not readable."""
    return Refused(f"{error.filename}: {error.strerror}", help="run fp4patch as a user who may read the tree")


def claimed_version(root: Path, target: Target) -> Version | None:
    """Return the version that the tree's own files state; None if they do not, or not as a version."""
    for file in target.version.files:
        with suppress(OSError):
            text = (root / file).read_text(encoding="utf-8", errors="replace")
            if statement := re.search(target.version.pattern, text, re.MULTILINE):
                version = ".".join(statement.groups())
                return Version(version) if is_version(version) else None
    return None


_DEEPEST = 5
"""Directories inside directories in which a tree is looked for, where there is none."""
_MOST = 20_000
"""Directories that are looked at for it."""


def _below(root: Path, catalog: Catalog) -> Iterator[Identified]:
    """Yield the trees below a directory: the submodules of a project, and what its build fetched."""
    for seen, (place, folders, _) in enumerate(os.walk(root)):
        folder = Path(place)
        found = [target for target in catalog.targets.values() if folder != root and _is_readable_tree(folder, target)]
        yield from (Identified(folder, target, claimed_version(folder, target)) for target in found)
        is_deep = len(folder.relative_to(root).parts) >= _DEEPEST
        folders[:] = [] if found or is_deep or seen > _MOST else sorted(f for f in folders if not f.startswith("."))


def _is_readable_tree(folder: Path, target: Target) -> bool:
    try:
        return is_at(folder, target)
    except Refused:
        return False


def _hint(root: Path, catalog: Catalog) -> str:
    """Return the trees below, else a message about the missing marks of a tree, else the marks of each target."""
    if below := list(islice(_below(root, catalog), 5)):
        places = shlex.join(os.path.relpath(tree.root) for tree in below)
        trees = ", ".join(joined(tree.target.title, str(tree.version or "")) for tree in below)
        return f"name the tree{'s' * (len(below) > 1)} below it: {places} ({trees})"
    for target in catalog.targets.values():
        if any((root / mark).is_file() for layout in (target.marks, *target.other_marks) for mark in layout):
            gone = " and ".join(target.missing(root))
            return f"it would be {target.title}, if it had {gone}: is the tree whole?"
    return "; ".join(f"{t.title} has {t.marks[0]}" for t in catalog.targets.values())
