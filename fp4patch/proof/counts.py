"""Recorded counts: how many instructions the code of each probe had when it was last looked at.

``records/counts/<variant>.json`` has a row for each probe and target: the largest counts of all releases that were
recorded. Code may exceed them by :data:`TOLERANCE`, since another release schedules it a little differently. Rows that
nobody has counted have limits, which a person set: they hold as they are. Code that is the pristine tree's is not
compared, since no patch made it longer. ``python -m tools.record_counts`` writes the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, NonNegativeInt, TypeAdapter

from fp4patch.catalog.manifest import data_root
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ManifestError
from fp4patch.core.results import verdict_on
from fp4patch.core.table import Manifest, must
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check

TOLERANCE = 15
"""Percent by which code may exceed what was counted."""

RULE = "no count above its recorded limit"
"""The check of the counts of a row."""

METRICS = ("instructions", "branches", "local", "f64")


class Row(NamedTuple):
    """What is recorded of a probe on a target: the METRICS in their order."""

    numbers: tuple[int | None, ...]
    """None: the metric is not limited."""
    counted: bool
    """True of counts, and false of limits."""

    @property
    def limits(self) -> tuple[int | None, ...]:
        """The greatest numbers that code may have."""
        if not self.counted:
            return self.numbers
        return tuple(None if number is None else number * (100 + TOLERANCE) // 100 for number in self.numbers)


Records = Mapping[tuple[str, str, str], Row]
"""Rows by release of the compiler (``13.0``), probe and target."""

Name = Annotated[str, Field(pattern=r"^\S+/\S+ sm_\w+$")]
"""Probe and target: ``cutlass/encode-float sm_121``."""
_FOUR = Field(min_length=len(METRICS), max_length=len(METRICS))
Counts = Annotated[tuple[NonNegativeInt, ...], _FOUR]
Limits = Annotated[tuple[NonNegativeInt | None, ...], _FOUR]


@dataclass(frozen=True, kw_only=True)
class CountsFile(Manifest):
    """The file of a variant."""

    metrics: Annotated[tuple[str, ...], must(METRICS.__eq__, " ".join(METRICS))]
    """What the numbers of a row are."""
    releases: dict[str, tuple[str, ...]]
    """Releases of each target that were counted."""
    counts: dict[str, dict[Name, Counts]]
    """By release of the compiler."""
    limits: dict[str, dict[Name, Limits]] = field(default_factory=dict)


_FILE = TypeAdapter(CountsFile)


@cache
def recorded(file: Path) -> Records:
    """Return the rows in a file; none where there is no file. ManifestError if it is not what the tool writes."""
    try:
        read = _FILE.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"{file} holds no counts: {error}", help="python -m tools.record_counts writes it"
        ) from error
    records: dict[tuple[str, str, str], Row] = {}
    for compilers, counted in ((read.limits, False), (read.counts, True)):
        for compiler, rows in compilers.items():
            for name, numbers in rows.items():
                probe, _, arch = name.partition(" ")
                records[compiler, probe, arch] = Row(numbers, counted)
    return records


def file_of(variant: str) -> Path:
    """Return the file of a variant's counts."""
    return data_root() / "records" / "counts" / f"{variant}.json"


def release_of(version: str) -> str:
    """Return the release by which counts are recorded: ``13.0`` of ``13.0.88``."""
    return ".".join(version.split(".")[:2])


def numbers(listing: SassListing) -> tuple[int, int, int, int]:
    """Return the METRICS of a listing."""
    return listing.size, listing.branches, listing.local, listing.f64


def check(row: Row, listing: SassListing) -> Check:
    """Return the comparison of a listing with what is recorded."""
    each = [(f"{number} {name}", number) for name, number in zip(METRICS, numbers(listing), strict=True)]
    compared = zip(each, row.limits, strict=True)
    excess = [f"{said}, at most {limit}" for (said, number), limit in compared if limit is not None and number > limit]
    because = "the code is not longer than when it was recorded"
    return Check(RULE, because, verdict_on(not excess), "; ".join(excess) or ", ".join(said for said, _ in each))


def row_of(records: Records, compiler: str, probe: str, arch: Arch) -> Row | None:
    """Return what is recorded of a probe on a target; None if nothing is."""
    return records.get((release_of(compiler), probe, str(arch)))
