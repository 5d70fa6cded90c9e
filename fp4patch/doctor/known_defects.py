"""Defects of released packages that doctor finds by their versions: records/known.toml."""

from collections.abc import Sequence
from dataclasses import dataclass

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import read_table
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.release import covers, is_version
from fp4patch.doctor.host import Host

RECORD = "records/known.toml"


@dataclass(frozen=True)
class KnownDefect:
    """A defect of a package; records/known.toml explains the fields."""

    subject: str
    distributions: tuple[str, ...]
    versions: str
    gpus: tuple[Arch, ...]
    level: Level
    found: str
    remedy: str
    link: str
    beside: str = ""


@dataclass(frozen=True)
class _Table:
    known: tuple[KnownDefect, ...]


def known_defects() -> tuple[KnownDefect, ...]:
    """Return every known defect."""
    return read_table(load().root / RECORD, _Table).known


def examine(host: Host, gpus: Sequence[Arch], nvcc: str) -> tuple[Finding, ...]:
    """Return a finding for each defect of what is installed. ``gpus``: those that matter, if known; ``nvcc``: its
    release, or nothing."""
    findings = []
    for one in known_defects():
        version = nvcc if "nvcc" in one.distributions else _installed(host, one.distributions)
        concerned = set(one.gpus) & set(gpus or GPUS)
        if not (concerned and is_version(version) and covers(one.versions, version)):
            continue
        if not one.beside or host.distribution(one.beside):
            level = one.level if gpus else Level.YELLOW
            findings.append(Finding(level, f"{one.subject} {version}", one.found, one.remedy, link=one.link))
    return tuple(findings)


def _installed(host: Host, names: Sequence[str]) -> str:
    found = next(filter(None, map(host.distribution, names)), None)
    return found.version if found else ""
