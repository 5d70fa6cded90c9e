"""Files of a tree that a patch could change: a receipt in the tree may name no others."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from fp4patch.catalog.identify import is_at
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.source_files import glob
from fp4patch.catalog.target import Target
from fp4patch.core.tree_path import is_inside


class EditableFiles:
    """The files that the patches of a tree's target are about, or were.

    What its target is, the tree's marks tell. A directory that has lost them may be of any target.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._globs = cache(self._find_globs)

    def allows(self, root: Path, path: str) -> bool:
        """Return whether a patch could change the file at ``path`` in the tree at ``root``."""
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return is_inside(path) and not hidden and self._globs(root).fullmatch(path) is not None

    def _find_globs(self, root: Path) -> re.Pattern[str]:
        kinds = [target for target in self._catalog.targets.values() if is_at(root, target)]
        return glob(tuple({one for target in kinds or self._catalog.targets.values() for one in self._of(target)}))

    def _of(self, target: Target) -> Iterator[str]:
        yield from target.touches
        for patch in self._catalog.patches.values():
            for edit in patch.edits if patch.target == target.name else ():
                yield from edit.search
