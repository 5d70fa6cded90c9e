"""Other records of an installed package's files: compiled code that replaces them, and the package manager's RECORD."""

import base64
import csv
import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.target import Target


def bypasses(
    root: Path,
    target: Target,
    version: Version | None,
    environ: Mapping[str, str] = os.environ,
    user: Path | None = None,
) -> Iterator[str]:
    """Yield one note for each kind of compiled code that is there and is used in the place of the tree's sources.

    ``user`` is the home directory, by default that of the user who runs this.
    """
    for bypass in target.bypasses:
        home = (bypass.instead and environ.get(bypass.instead)) or str(user or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises for a user without one, as in containers
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


def stale_record(root: Path, target: Target, changed: Iterable[str]) -> str:
    """Return a note on the package manager's record of the files ``changed``; empty if there is nothing to note.

    The paths are relative to the tree. Only the package's own RECORD counts, in a ``.dist-info`` directory beside the
    tree (PyPA's "Recording installed projects").
    """
    if not target.distribution:
        return ""
    for package in Distribution.discover(name=target.distribution, path=[str(root.parent)]):
        stated = {row[0]: row[1] for row in csv.reader((package.read_text("RECORD") or "").splitlines()) if row}
        stale = [path for path in changed if not _agrees(root / path, stated.get(f"{root.name}/{path}", ""))]
        if stale:
            return (
                f"the RECORD of {target.distribution} {package.version} has other hashes for {len(stale)} of these "
                f"files, since they are patched: what checks installed files reports them, a reinstall takes the "
                f"patches away, and `fp4patch revert` makes RECORD right again"
            )
    return ""


def _agrees(file: Path, stated: str) -> bool:
    """Return whether a file has the hash that RECORD states, ``sha256=…`` in URL-safe base64; True without one."""
    name, _, value = stated.partition("=")
    if not value:
        return True
    try:
        digest = hashlib.new(name, file.read_bytes()).digest()
    except (OSError, ValueError):
        return False
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == value
