"""The hashes of every surveyed release's files, which identify the release of a tree whatever version it states.

``python -m tools.regenerate releases`` writes ``records/releases.json``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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


def releases_of(releases: Iterable[SurveyedRelease], hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the releases (of one target) that have exactly a tree's files, by the hashes of these."""
    return tuple(
        release.version
        for release in releases
        if all(hashes.get(path) == known for path, known in release.files.items())
    )
