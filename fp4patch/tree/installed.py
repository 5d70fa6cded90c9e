"""Compiled code that an installed package uses in the place of its sources."""

import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.target import Target


def bypasses(
    root: Path, target: Target, version: Version | None, environ: Mapping[str, str] = os.environ
) -> Iterator[str]:
    """Yield one note for each kind of compiled code that is there and is used in the place of the tree's sources."""
    for bypass in target.bypasses:
        home = (bypass.instead and environ.get(bypass.instead)) or os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises for a user without one, as in containers
        found: set[str] = set()
        for pattern in bypass.paths:
            place = pattern.replace("{version}", glob.escape(str(version or "")))
            base = home if place.startswith("~/") else str(root)
            matches = glob.iglob(os.path.join(glob.escape(base), place.removeprefix("~/")), recursive=True)  # noqa: PTH118, PTH207 - a pattern with .., which Path.glob refuses
            found |= {os.path.normpath(match) for match in matches}
        if found:
            folder = Path(os.path.commonpath(found))
            folder = folder if folder.is_dir() else folder.parent
            yield f"{folder}: {len(found)} compiled module{'s' * (len(found) != 1)}: {bypass.because}"
