"""Results of a tree's build for arch lists, evaluated or recorded, and the arch list to recommend."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.version import Version

from fp4patch import adapters
from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.target import Build
from fp4patch.commands.doctor.result import Content, Question
from fp4patch.commands.doctor.surveyed import Release, recorded_build
from fp4patch.core.arch import Arch, Reach
from fp4patch.core.errors import ToolchainError
from fp4patch.inspect import remedies
from fp4patch.inspect.findings import Finding, Level


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
    lists = (question.asked.replace(";", build.separator),) if question.asked else build.lists
    questions = [(c, asked) for c in ((str(cuda),) if cuda else build.cuda) for asked in lists]
    adapter = adapters.of(tree.target)
    try:
        evaluated = adapter.evaluate(tree.root, build, questions)
    except ToolchainError as failed:
        return _recorded(build, questions, cuda, () if patched else releases, what, failed)
    stopped = next((row for row in evaluated if row.error), None)
    if stopped is None:
        return evaluated, []
    found = f"{build.setting}={stopped.asked} with CUDA {stopped.cuda} could not be evaluated: {stopped.error}"
    return evaluated, [remedies.finding(Level.YELLOW, adapter.READS, found, "build_not_evaluated")]


def _recorded(
    build: Build,
    questions: Sequence[tuple[str, str]],
    cuda: Version | None,
    releases: Sequence[Release],
    what: Content,
    failed: ToolchainError,
) -> tuple[tuple[BuildRow, ...], list[Finding]]:
    """Return the recorded results of the tree's release where a program is missing; of a patched tree there are
    none."""
    release = next((r for r in reversed(releases) if r.version in what.releases), None)
    rows = [row for c, asked in questions if release and (row := recorded_build(release, c, asked))]
    said = f"the rows are from the record of {release.version}" if rows and release else "this release has no record"
    found = f"{failed.message}, so the result of the build for {build.setting} could not be evaluated; {said}"
    missing = remedies.finding(Level.YELLOW, "cmake", found, "no_cmake", help=failed.help)
    return tuple(row.reached(row.kernels, str(cuda or "")) for row in rows), [missing]


def best_of(gpu: Arch, gpus: Sequence[Arch], rows: Sequence[BuildRow]) -> list[BuildRow]:
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


def names(asked: str, gpu: Arch) -> bool:
    """Return whether an arch list names a GPU; an empty list means the GPU of the machine."""
    if not asked:
        return True
    return gpu in {arch.gpu for arch in Arch.parse_list(asked, ptx=True)}


def quoted(asked: str) -> str:
    """Return an arch list as a shell takes it."""
    return f'"{asked}"' if re.search(r"[;\s]", asked) else asked
