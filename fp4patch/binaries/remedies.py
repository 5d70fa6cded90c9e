"""Recommended actions for a verdict: remedies.toml has a text per cause, and the published releases that need none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import read
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import FAMILIES_SINCE, FOR_GB10
from fp4patch.core.wording import listed


@dataclass(frozen=True)
class BetterRelease:
    """A published release that is green on both GPUs."""

    distribution: str
    package: str
    """The directory that it installs."""
    good: str


@dataclass(frozen=True)
class Remedies:
    """The contents of remedies.toml."""

    cause: Mapping[str, str]
    release: tuple[BetterRelease, ...]


def load() -> Remedies:
    """Return remedies.toml."""
    return read("remedies.toml", Remedies)


def of(cause: str, **values: object) -> str:
    """Return the recommended action for a cause; ``values`` are those of its text."""
    return load().cause[cause].format(**values, cuda_of_families=FAMILIES_SINCE, cuda_for_gb10=FOR_GB10)


def finding(level: Level, subject: str, found: str, cause: str, *, link: str = "", **values: object) -> Finding:
    """Return a finding with the recommended action for its cause."""
    return Finding(level, subject, found, of(cause, **values), cause, link)


def target_for(gpu: Arch, gpus: Sequence[Arch]) -> dict[str, str]:
    """Return the target to build for, and what it serves: the family's, since one build then serves each GPU of it."""
    family = Arch(gpu.major, 0 if gpu.major in (10, 12) else gpu.minor, "f")
    served = [str(one) for one in gpus if family.runs_on(one)]
    return {"target": str(family), "number": family.number, "gpus": listed(served or [str(gpu)])}


def newer(source: str) -> BetterRelease | None:
    """Return the published release to use instead of a wheel or an installed package; None if none is known."""
    name = PurePath(source).name
    try:
        distribution, version, *_ = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return next((one for one in load().release if one.package == name), None)
    known = (one for one in load().release if canonicalize_name(one.distribution) == distribution)
    return next((one for one in known if str(version) != one.good), None)
