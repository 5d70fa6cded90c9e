"""The record of surveyed releases: a release is known by its files, whatever version it states."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target

RECORD = "records/releases.json"
"""What ``python -m tools.regenerate releases`` writes."""
HASH = 16
"""Hexadecimal digits that are kept of a file's SHA-256."""


def releases(target: Target) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each surveyed release of a target, and the start of the SHA-256 of its files that tell releases apart."""
    rows = (row for row in _rows(load().root) if row["target"] == target.name)
    yield from ((row["version"], row["files"]) for row in rows)


def rules_of(target: Target, version: Version, hashes: Mapping[str, str]) -> str:
    """Return by which release's rules a tree is patched that is no release; empty if it is one, or nothing is known.

    ``hashes`` has the start of the SHA-256 of the files that tell releases apart, of those that the tree has. A rule
    that depends on the release compares the version that the tree states.
    """
    record = {Version(name): files for name, files in releases(target)}
    named = {*record, *map(Version, (*target.commits, *(archive.version for archive in target.archives)))}
    if version in record and any(hashes.get(file, digest) != digest for file, digest in record[version].items()):
        return f"it states {version}, and has other files than that release: its rules are those of {version}"
    before = [release for release in named if release < version]
    if version in named or not before:
        return ""
    return f"{target.name} {version} is no release that was surveyed: its rules are those of {max(before)}"


def forget() -> None:
    """Read the record anew, since it was written."""
    _rows.cache_clear()


@cache
def _rows(root: Path) -> Any:
    file = root / RECORD
    return json.loads(file.read_text(encoding="utf-8"))["releases"] if file.is_file() else ()
