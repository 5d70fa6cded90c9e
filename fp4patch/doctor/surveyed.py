"""The hashes of every surveyed release's files, which identify the release of a tree whatever version it states.

``python -m tools.regenerate releases`` writes ``records/releases.json``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from fp4patch.doctor.result import Content

RECORD = "records/releases.json"
HASH = 16
"""Hexadecimal digits that are kept of a file's SHA-256."""


@dataclass(frozen=True)
class SurveyedRelease:
    """One surveyed release of a target."""

    target: str
    version: str
    files: Mapping[str, str]
    """Path → the start of its SHA-256, of the files that identify the target's releases."""


@cache
def surveyed(root: Path) -> tuple[SurveyedRelease, ...]:
    """Return every surveyed release, in order of target and version; none where nothing is recorded."""
    file = root / RECORD
    if not file.is_file():
        return ()
    rows = json.loads(file.read_text(encoding="utf-8"))["releases"]
    return tuple(SurveyedRelease(row["target"], row["version"], row["files"]) for row in rows)


def content(releases: tuple[SurveyedRelease, ...], hashes: Mapping[str, str]) -> Content:
    """Return the release (of one target) of a tree, by the hashes of its files; missing files have none."""
    compared = []
    for release in releases:
        differs = sum(hashes.get(path) != known for path, known in release.files.items())
        compared.append((differs, len(release.files), release.version))
    same = tuple(version for differs, _, version in compared if not differs)
    if same or not compared:
        return Content(same)
    # Of releases that are equally near, the newest.
    differs, of, nearest = min(compared, key=lambda c: (c[0], [-part for part in Version(c[2]).release]))
    return Content((), nearest, differs, of) if differs < of else Content(())
