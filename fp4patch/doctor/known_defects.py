"""Defects of released packages by their versions, and lists that a PyTorch refuses: records/known.toml."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Axis, Finding, Level, Observation
from fp4patch.binaries.known_programs import read_table
from fp4patch.binaries.report import BinaryReport
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Defect
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.release import covers, is_version
from fp4patch.doctor.host import Host

RECORD = "records/known.toml"
WHEELS = "records/wheels.json"


@dataclass(frozen=True, kw_only=True)
class KnownDefect(Defect):
    """A defect of a package; records/known.toml explains the fields."""

    distributions: tuple[str, ...]
    beside: str = ""


@dataclass(frozen=True)
class PytorchRelease:
    """What PyTorch takes in TORCH_CUDA_ARCH_LIST from a release on."""

    since: str
    extensions: tuple[Arch, ...]
    cmake: str
    until: str = ""
    """Newest release whose files were read, of the last row."""


@dataclass(frozen=True)
class KnownDefects:
    """The contents of records/known.toml."""

    known: tuple[KnownDefect, ...]
    pytorch: tuple[PytorchRelease, ...]


@cache
def read(root: Path) -> KnownDefects:
    """Return what is recorded below the catalog's root."""
    return read_table(root / RECORD, KnownDefects)


def refused_by_pytorch(archs: Iterable[Arch], release: Version | None, *, cmake: bool) -> list[str]:
    """Return the elements of a TORCH_CUDA_ARCH_LIST with which a build ends, in PyTorch's notation.

    ``release``: that of PyTorch; the newest if it is not known. ``cmake``: a CMake project reads it, else a setup.py.
    """
    rows = read(load().root).pytorch
    row = rows[-1]
    if release is not None:
        row = next((row for row in reversed(rows) if Version(row.since) <= Version(release.base_version)), rows[0])
    taken = (lambda arch: arch.suffix in row.cmake) if cmake else row.extensions.__contains__
    return [arch.torch for arch in archs if arch.major >= 9 and not taken(arch)]


def examine(host: Host, gpus: Sequence[Arch], nvcc: str) -> tuple[Finding, ...]:
    """Return a finding for each defect of what is installed. ``gpus``: those that matter, if known; ``nvcc``: its
    release, or nothing."""
    findings, matter = [], set(map(str, gpus or GPUS))
    for defect in read(load().root).known:
        installed = host.distribution(*defect.distributions)
        version = nvcc if "nvcc" in defect.distributions else installed.version if installed else ""
        has_it = matter & set(defect.gpus) and is_version(version) and covers(defect.versions, version)
        if has_it and _is_beside(host, defect.beside):
            level = Level(defect.level) if gpus else Level.YELLOW
            subject = f"{defect.subject} {version}"
            findings.append(Finding(level, subject, defect.found, defect.remedy, link=defect.link))
    return tuple(findings)


def _is_beside(host: Host, requirement: str) -> bool:
    """Return whether a distribution is installed that meets a requirement; true for an empty one."""
    if not requirement:
        return True
    wanted = Requirement(requirement)
    installed = host.distribution(wanted.name)
    return bool(installed and wanted.specifier.contains(installed.version, prereleases=True))


@cache
def _answered(root: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the recorded answers of published wheels, by the name of the file and the GPU."""
    file = root / WHEELS
    return json.loads(file.read_text(encoding="utf-8"))["wheels"] if file.is_file() else {}


def release_with_fp4(name: str, gpu: Arch) -> str:
    """Return the release of a wheel's project, nearest to its own, whose wheel is recorded to answer yes for a GPU.

    A later one is preferred. Empty if none is recorded, or for a file that is no wheel.
    """
    try:
        project, version, *_ = parse_wheel_filename(Path(name).name)
    except InvalidWheelFilename:
        return ""
    wheels = ((parse_wheel_filename(wheel), answers) for wheel, answers in _answered(load().root).items())
    found = {own for (of, own, *_), answers in wheels if of == project and answers.get(str(gpu)) == "yes"} - {version}
    later = [one for one in found if one > version]
    nearest = min(later, default=max(found, default=None))
    return f"{project}=={nearest}" if nearest else ""


def _with_release(report: BinaryReport, name: str) -> BinaryReport:
    """Return the report on a wheel with the release that answers yes as the next step of each no, if one is recorded.

    A build of one's own comes after that: a release is there.
    """

    def stepped(answer: Answer) -> Answer:
        release = release_with_fp4(name, answer.gpu) if answer.level is Level.RED else ""
        todo = remedies.of("release_with_fp4", release=release, gpu=answer.gpu)
        seen = (replace(one, todo=todo) if one is answer.deciding else one for one in answer.observations)
        return Answer(answer.gpu, tuple(seen)) if release else answer

    return replace(report, answers=tuple(map(stepped, report.answers)))


def judged(report: BinaryReport, name: str) -> BinaryReport:
    """Return the report on a wheel with the red defects of its release, by its name, as answers."""
    try:
        project, version, *_ = parse_wheel_filename(Path(name).name)
    except InvalidWheelFilename:
        return report
    defects = [
        defect
        for defect in read(load().root).known
        if Level(defect.level) is Level.RED and not defect.beside and covers(defect.versions, str(version))
        if project in map(canonicalize_name, defect.distributions)
    ]

    def observed(defect: KnownDefect) -> Observation:
        verdict = f"a known defect of {defect.subject} {version}"
        return Observation(Axis.DEFECTS, Level.RED, verdict, (f"{defect.found} ({defect.link})",), defect.remedy)

    def with_defect(answer: Answer) -> Answer:
        concerned = [defect for defect in defects if str(answer.gpu) in defect.gpus]
        return answer.beside(*map(observed, concerned))

    return _with_release(replace(report, answers=tuple(map(with_defect, report.answers))), name)
