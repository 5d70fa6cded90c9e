"""Results of a tree's build for arch lists, evaluated or recorded, and the arch list to recommend."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.target import Build
from fp4patch.commands.doctor import build_lists, jit
from fp4patch.commands.doctor.python_text import Package
from fp4patch.commands.doctor.python_values import NotKnown
from fp4patch.commands.doctor.surveyed import Release, recorded_build
from fp4patch.core.arch import Arch, Reach, reach
from fp4patch.core.cuda import refused
from fp4patch.core.errors import ToolchainError
from fp4patch.inspect.findings import GPUS, BuildRow, Compiled, Content, Finding, Level, Question


def rows_of(
    tree: Identified,
    question: Question,
    cuda: Version | None,
    releases: Sequence[Release],
    what: Content,
    *,
    patched: bool,
) -> tuple[tuple[BuildRow, ...], list[Finding]]:
    """Return the results of the tree's build for the requested arch list, or for the usual ones, and notes."""
    build = tree.target.build
    if build is None:
        return (), []
    cudas = (str(cuda),) if cuda else build.cuda
    lists = (question.asked.replace(";", build.separator),) if question.asked else build.lists
    if build.kind == "jit":
        return _read(tree.root, build, cudas, lists)
    try:
        return _evaluated(tree.root, build, cudas, lists)
    except ToolchainError as failed:
        lost = failed
    if patched:
        rows: list[BuildRow] = []
        said = "and of a patched tree nothing is recorded"
    else:
        release = next((r for r in reversed(releases) if r.version in what.releases), None)
        asked = [(c, a) for c in cudas for a in lists]
        rows = [row for c, a in asked if release and (row := recorded_build(release, c, a))]
        said = f"shown is what was recorded of {release.version}" if rows and release else "and nothing is recorded"
    missing = Finding(
        Level.YELLOW,
        "cmake",
        f"{lost.message}, so what the build makes of {build.setting} could not be evaluated; {said}",
        f"{lost.help}, or a newer cmake on PATH",
    )
    return tuple(_reached(row, row.kernels, str(cuda or row.cuda)) for row in rows), [missing]


def evaluate(root: Path, build: Build, cuda: str, asked: str) -> BuildRow:
    """Run the tree's own CMake functions for one list and one CUDA release."""
    with tempfile.TemporaryDirectory(prefix="fp4patch-") as scratch:
        made = build_lists.configure(root, cuda, asked, Path(scratch))
    kernels = [set(archs) for source, archs in made.sources.items() if re.search(build.kernels, source)]
    # A GPU is served if every one of the kernels has code for it.
    common = set.intersection(*kernels) if kernels else set[str]()
    row = BuildRow(cuda, asked, tuple(sorted(common)), error=_reason(made.error))
    requested = re.split(r"[;\s]+", asked.replace("+PTX", "").strip())
    return _reached(
        row, requested if made.error else {*common, *(a for archs in made.sources.values() for a in archs)}, cuda
    )


def _read(
    root: Path, build: Build, cudas: Sequence[str], lists: Sequence[str]
) -> tuple[tuple[BuildRow, ...], list[Finding]]:
    """Return the results of a build at run time for each arch list and GPU, read from its Python without running it."""
    package = jit.package(root)
    rows = tuple(read_one(package, build, cuda, asked) for cuda in cudas for asked in lists)
    lost = next((row for row in rows if row.error), None)
    if lost is None:
        return rows, []
    return rows, [
        Finding(
            Level.YELLOW,
            "Python",
            f"what it makes of {build.setting} is not to be read from its text: {lost.error}",
            "this is a release that fp4patch has not seen, or not the whole tree; `fp4patch verify` still judges code",
        )
    ]


def read_one(package: Package, build: Build, cuda: str, asked: str) -> BuildRow:
    """Read from the tree's Python what a build at run time makes of one list for one CUDA release."""
    try:
        on = {gpu: jit.compiled(package, build.modules, cuda, asked, Arch.parse(gpu)) for gpu in GPUS}
    except NotKnown as lost:
        return BuildRow(cuda, asked, (), error=str(lost))
    kernels = {arch for there in on.values() for archs in there.modules.values() for arch in archs}
    return BuildRow(cuda, asked, tuple(sorted(kernels)), on, {gpu: _together(on[gpu], gpu) for gpu in GPUS})


def _together(there: Compiled, gpu: str) -> Reach:
    """Return the support of the GPU over all modules."""
    if served := there.served(gpu):
        return Reach.SUFFIXED if len(served) == len(there.modules) else Reach.PARTLY
    return reach([Arch.parse(arch) for archs in there.modules.values() for arch in archs], Arch.parse(gpu))


def _evaluated(
    root: Path, build: Build, cudas: Sequence[str], lists: Sequence[str]
) -> tuple[tuple[BuildRow, ...], list[Finding]]:
    rows = tuple(evaluate(root, build, cuda, asked) for cuda in cudas for asked in lists)
    stopped = next((row for row in rows if row.error), None)
    if stopped is None:
        return rows, []
    return rows, [
        Finding(
            Level.YELLOW,
            "CMakeLists.txt",
            f"could not be evaluated for {stopped.asked} with CUDA {stopped.cuda}: {stopped.error}",
            "this is a release that fp4patch has not seen, or not the whole tree; `fp4patch verify` still judges code",
        )
    ]


def _reached(row: BuildRow, targets: Iterable[str], cuda: str) -> BuildRow:
    """Return the row with what each GPU can load of it: nothing, if the compiler of ``cuda`` does not have one of the
    targets."""
    if stops := refused(Version(cuda), map(Arch.parse, sorted(targets))):
        return replace(row, stops=stops, error="", kernels=(), reaches=dict.fromkeys(GPUS, Reach.NOTHING))
    archs = [Arch.parse(arch) for arch in row.kernels]
    return replace(row, reaches={gpu: reach(archs, Arch.parse(gpu)) for gpu in GPUS})


def _reason(said: str) -> str:
    """Return the first error in CMake's words, in one line, without the place."""
    found = re.search(r"^CMake Error[^\n]*\n+(.*?)(?:\n\s*\n|^Call Stack|\Z)", said, re.DOTALL | re.MULTILINE)
    return " ".join((found[1] if found else said).split())


def best_of(gpu: str, gpus: Sequence[str], rows: Sequence[BuildRow]) -> list[BuildRow]:
    """Return the rows of the arch list to recommend for ``gpu``. Prefer one that works with every CUDA release, then
    one that works for all GPUs, then one that names this GPU, then the shortest. Empty if none works.
    """
    lists: dict[str, list[BuildRow]] = {}
    for row in rows:
        lists.setdefault(row.asked, []).append(row)

    def rank(asked: str) -> tuple[bool, bool, bool, int]:
        served = [reach is not Reach.SUFFIXED for row in lists[asked] for reach in (row.reaches[g] for g in gpus)]
        unserved = [row for row in lists[asked] if row.reaches[gpu] is not Reach.SUFFIXED]
        return bool(unserved), any(served), not names(asked, gpu), len(re.findall(r"[;\s]", asked))

    serving = {asked for asked, made in lists.items() if any(row.reaches[gpu] is Reach.SUFFIXED for row in made)}
    if not serving:
        return []
    chosen = min((asked for asked in lists if asked in serving), key=rank)
    return [row for row in lists[chosen] if row.reaches[gpu] is Reach.SUFFIXED]


def names(asked: str, gpu: str) -> bool:
    """Return whether an arch list names a GPU; an empty list means the GPU of the machine."""
    if not asked:
        return True
    return Arch.parse(gpu) in {arch.gpu for arch in Arch.parse_list(asked, ptx=True)}
