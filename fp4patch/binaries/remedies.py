"""Recommended actions for a verdict: remedies.toml has a text per cause."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import read_table
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import FAMILIES_SINCE, FOR_GB10
from fp4patch.core.wording import listed


@cache
def _texts() -> Mapping[str, str]:
    return read_table(resources.files(__package__).joinpath("remedies.toml"), dict[str, str])


def of(cause: str, **values: object) -> str:
    """Return the recommended action for a cause; ``values`` are those of its text."""
    return _texts()[cause].format(**values, cuda_of_families=FAMILIES_SINCE, cuda_for_gb10=FOR_GB10)


def finding(level: Level, subject: str, found: str, cause: str, *, link: str = "", **values: object) -> Finding:
    """Return a finding with the recommended action for its cause."""
    return Finding(level, subject, found, of(cause, **values), cause, link)


def target_for(gpu: Arch, gpus: Sequence[Arch]) -> dict[str, str]:
    """Return the target to build for, and what it serves: the family's, since one build then serves each GPU of it."""
    family = Arch(gpu.major, 0 if gpu.major in (10, 12) else gpu.minor, "f")
    served = [str(one) for one in gpus if family.runs_on(one)]
    return {"target": str(family), "number": family.number, "gpus": listed(served or [str(gpu)])}
