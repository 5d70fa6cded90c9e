"""A patched copy of a tree that stays as it is: one on a read-only mount, or that a build system keeps for others."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused, UsageError
from fp4patch.tree.apply import Applied
from fp4patch.tree.locking import locked


@contextmanager
def copy_of(tree: Path, output: Path) -> Iterator[Path]:
    """Yield a copy of a tree in a directory beside ``output``, whose files their owner may write. Links stay links.

    It is removed at the end, unless it got its name.

    It has no ``.git``. UsageError: there is something at ``output``, or it is in the tree. Refused: no tree, or
    it cannot be copied.
    """
    known = identify(tree, load())
    target = Path(os.path.realpath(output))
    if os.path.lexists(output):
        raise UsageError(f"{output} exists", help="name a directory that does not")
    if target.is_relative_to(known.root):
        raise UsageError(f"{output} is in the tree that is copied", help="name a directory outside of it")
    place = target.with_name(f".{target.name}.fp4patch-new")
    try:
        shutil.rmtree(place, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked([known]):
            shutil.copytree(known.root, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        for folder, _, files in os.walk(place):
            for path in (Path(folder), *(Path(folder, name) for name in files)):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & 0o777 | 0o200)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(place, ignore_errors=True)
        raise Refused(f"{tree} cannot be copied to {output}: {str(error)[:300]}", help="make room there") from error
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def finished(applied: Applied, place: Path, output: Path) -> Applied:
    """Give the copy its name, unless the patches do not fit; return the result as one of that name."""
    if not applied.refused:
        place.rename(output)
    trees = (replace(tree, root=Path(output, tree.root.relative_to(place))) for tree in applied.trees)
    return replace(applied, trees=tuple(trees))
