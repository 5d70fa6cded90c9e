"""Recorded counts: how many instructions the code of each probe may have, by what it had when it was last looked at.

``records/counts/<variant>.json`` has limits by compiler, probe and target: the largest count of all releases that were
recorded, and 15 % more, since another release schedules the same code a little differently. Code that is the pristine
tree's is not compared, since no patch made it longer. ``python -m tools.record_counts`` writes the file.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

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

METRICS = ("instructions", "branches", "local", "f64")
Records = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Limits by release of the compiler (``13.0``), probe and target: ``50 * 0 0``, of which ``*`` is not limited."""
_LIMITS = re.compile(r"(?:\d+|\*)(?: (?:\d+|\*)){3}")


@cache
def recorded(file: Path) -> Records:
    """Return the counts in a file; none where there is no file. ManifestError if it is not what the tool writes."""
    records: dict[str, dict[str, dict[str, str]]] = {}
    try:
        for compiler, probes in json.loads(file.read_text(encoding="utf-8"))["counts"].items():
            for probe, rows in probes.items():
                if not all(map(_LIMITS.fullmatch, rows)):
                    raise ValueError(f"{probe} has other limits than four")
                limits = {arch: text for text, archs in rows.items() for arch in archs.split(" ")}
                records.setdefault(compiler, {})[probe] = limits
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ManifestError(
            f"{file} holds no counts: {error}", help="python -m tools.record_counts writes it"
        ) from error
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


def check(limits: str, listing: SassListing) -> Check:
    """Return the comparison of a listing with its limits."""
    each = [(f"{number} {name}", number) for name, number in zip(METRICS, numbers(listing), strict=True)]
    compared = zip(each, limits.split(" "), strict=True)
    excess = [f"{said}, at most {limit}" for (said, number), limit in compared if limit != "*" and number > int(limit)]
    because = "the code is not longer than when it was recorded"
    return Check(RULE, because, verdict_on(not excess), "; ".join(excess) or ", ".join(said for said, _ in each))


def limit_of(records: Records, compiler: str, probe: str, arch: Arch) -> str:
    """Return the record of a probe on a target; empty if there is none."""
    return records.get(release_of(compiler), {}).get(probe, {}).get(str(arch), "")
