"""The record of surveyed releases: a release is known by its files, whatever version it states."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

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


def forget() -> None:
    """Read the record anew, since it was written."""
    _rows.cache_clear()


@cache
def _rows(root: Path) -> Any:
    file = root / RECORD
    return json.loads(file.read_text(encoding="utf-8"))["releases"] if file.is_file() else ()
