"""Recorded counts: how many instructions the code of each probe may have, by what it had when it was last looked at.

``records/counts/<variant>.json`` has limits by compiler, probe and target: the largest count of all releases that were
recorded, and 15 % more, since another release schedules the same code a little differently. Code that is the pristine
tree's is not compared, since no patch made it longer. ``python -m tools.record_counts`` writes the file.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fp4patch.catalog.manifest import data_root
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ManifestError
from fp4patch.core.results import verdict_on
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check

TOLERANCE = 15
"""Percent by which a limit exceeds what was counted."""

RULE = "no count above its recorded limit"
"""The check of the counts of a row."""

_count = operator.attrgetter("size", "branches", "local", "f64")


class Counts(NamedTuple):
    """Limits of a kernel's code; None: not limited."""

    instructions: int | None
    branches: int | None
    local: int | None
    f64: int | None

    @classmethod
    def parse(cls, text: str) -> Counts:
        """Return the limits of ``50 * 0 0``."""
        return cls(*(None if word == "*" else int(word) for word in text.split(" ")))

    def __str__(self) -> str:
        return " ".join("*" if limit is None else str(limit) for limit in self)

    def exceeded(self, numbers: Sequence[int]) -> Iterator[str]:
        """Yield a clause for each number that is above its limit."""
        for name, number, limit in zip(METRICS, numbers, self, strict=True):
            if limit is not None and number > limit:
                yield f"{number} {name}, at most {limit}"


METRICS = Counts._fields
Records = Mapping[str, Mapping[str, Mapping[str, Counts]]]
"""Limits by release of the compiler (``13.0``), probe and target."""


@cache
def recorded(file: Path) -> Records:
    """Return the counts in a file; none where there is no file. ManifestError if it is not what the tool writes."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return {
            compiler: {
                probe: {arch: Counts.parse(text) for text, archs in rows.items() for arch in archs.split(" ")}
                for probe, rows in probes.items()
            }
            for compiler, probes in data["counts"].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ManifestError(
            f"{file} holds no counts: {error}", help="python -m tools.record_counts writes it"
        ) from error


def file_of(variant: str) -> Path:
    """Return the file of a variant's counts."""
    return data_root() / "records" / "counts" / f"{variant}.json"


def release_of(version: str) -> str:
    """Return the release by which counts are recorded: ``13.0`` of ``13.0.88``."""
    return ".".join(version.split(".")[:2])


def check(limit: Counts, listing: SassListing) -> Check:
    """Return the comparison of a listing with its limits."""
    numbers = _count(listing)
    excess = list(limit.exceeded(numbers))
    counted = (f"{number} {name}" for name, number in zip(METRICS, numbers, strict=True))
    because = "the code is not longer than when it was recorded"
    return Check(RULE, because, verdict_on(not excess), "; ".join(excess) or ", ".join(counted))


def limit_of(records: Records, compiler: str, probe: str, arch: Arch) -> Counts | None:
    """Return the record of a probe on a target; None if there is none."""
    return records.get(release_of(compiler), {}).get(probe, {}).get(str(arch))
