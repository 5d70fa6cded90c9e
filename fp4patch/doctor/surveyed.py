"""The record of every surveyed release: its files' hashes, and its build's result for each arch list.

``python -m tools.regenerate releases`` writes ``records/releases.json``. The hashes identify the release of a tree,
independent of the version that it states; the recorded builds are used if there is no cmake.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from fp4patch.adapters.result import BuildRow
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
    builds: Mapping[str, Mapping[str, tuple[str, ...]]]
    """CUDA release → list of architectures → those of the FP4 kernels; of a build at run time, in words, what is
    compiled on each GPU and what that is worth to it."""


@cache
def surveyed(root: Path) -> tuple[SurveyedRelease, ...]:
    """Return every surveyed release, in order of target and version; none where nothing is recorded."""
    file = root / RECORD
    if not file.is_file():
        return ()
    rows = json.loads(file.read_text(encoding="utf-8"))["releases"]
    return tuple(
        SurveyedRelease(
            row["target"],
            row["version"],
            row["files"],
            {cuda: {asked: tuple(archs) for asked, archs in made.items()} for cuda, made in row["builds"].items()},
        )
        for row in rows
    )


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


def recorded_build(release: SurveyedRelease, cuda: str, asked: str) -> BuildRow | None:
    """Return the recorded result of the release's build for a list and a CUDA major release; None without a record."""
    major = cuda.partition(".")[0]
    for looked_at, made in release.builds.items():
        if looked_at.partition(".")[0] == major and asked in made:
            return BuildRow(looked_at, asked, made[asked], recorded=True)
    return None
