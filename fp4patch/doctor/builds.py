"""Results of a tree's build for arch lists, and the arch list to recommend."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from packaging.version import Version

from fp4patch import adapters
from fp4patch.adapters.result import BuildRow
from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Build, Target
from fp4patch.core.arch import GPUS, Arch, Reach
from fp4patch.core.errors import ToolchainError
from fp4patch.core.wording import listed
from fp4patch.doctor.known_defects import refused_by_pytorch
from fp4patch.doctor.result import Question

_PYTORCH = re.compile(r"[\"']torch\s*==\s*(\d[\d.]*)[\"']")


class Builds:
    """Results of a tree's build, each evaluated once: the tree must not change meanwhile."""

    def __init__(self, tree: Identified) -> None:
        self.tree = tree
        self._known: dict[tuple[str, str], BuildRow] = {}

    def evaluate(self, questions: Iterable[tuple[Question, Version | None]]) -> None:
        """Evaluate the build for all of these questions, each with its CUDA release, in one run of the adapter.

        Raises ToolchainError where this machine has no program for it.
        """
        build = self.tree.target.build
        pairs = dict.fromkeys(p for question, cuda in questions if build for p in pairs_of(build, question, cuda))
        missing = [pair for pair in pairs if pair not in self._known]
        if build and missing:
            rows = adapters.evaluate(self.tree.root, build, missing, parts=False)
            self._known |= zip(missing, map(self._judged, rows), strict=True)

    def _judged(self, row: BuildRow) -> BuildRow:
        """Return the row of a build that ends, or that makes no usable library, as one that gives nothing."""
        why = row.lacks or self._refused(row)
        if row.stops or not why:
            return row
        nothing = dict.fromkeys(GPUS, Reach.NOTHING)
        return replace(row, stops=why, kernels=row.kernels if row.lacks else (), error="", reaches=nothing)

    def _refused(self, row: BuildRow) -> str:
        """Return why PyTorch ends the build: its release that the tree asks for does not take the list."""
        build = self.tree.target.build
        if build is None or build.kind != "cmake" or not row.asked:
            return ""
        refused = refused_by_pytorch(Arch.parse_list(row.asked, ptx=True), self._pytorch, cmake=True)
        return f"PyTorch {self._pytorch}, which it builds with, does not take {listed(refused)}" if refused else ""

    @cached_property
    def _pytorch(self) -> Version | None:
        """The release of PyTorch that the tree builds with, if it names one."""
        file = self.tree.root / "pyproject.toml"
        pinned = _PYTORCH.search(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else None
        return Version(pinned[1]) if pinned else None

    def rows(self, question: Question, cuda: Version | None) -> tuple[tuple[BuildRow, ...], list[Finding]]:
        """Return the results of the tree's build for the requested arch list, or for the usual ones, and notes."""
        build = self.tree.target.build
        if build is None:
            return (), []
        try:
            self.evaluate([(question, cuda)])
        except ToolchainError as failed:
            found = f"{failed.message}, so the result of the build for {build.setting} was not evaluated"
            return (), [remedies.finding(Level.YELLOW, "cmake", found, "no_cmake", help=failed.help)]
        pairs = pairs_of(build, question, cuda)
        evaluated = tuple(self._known[pair] for pair in pairs)
        return evaluated, not_evaluated(build, evaluated)


def readers() -> dict[str, Target]:
    """Return the variables that name architectures, each with the target that stands for those that read it."""
    targets = [target for target in load().targets.values() if target.build]
    targets.sort(key=lambda target: bool(target.build and target.build.converts))
    return {target.build.setting: target for target in targets if target.build}


def wrong_form(setting: str, value: str) -> str:
    """Return what happens with a list that its readers do not take; empty if they do."""
    target = readers().get(setting)
    build = target and target.build
    return build.otherwise if build and build.form and not re.fullmatch(build.form, value) else ""


def not_evaluated(build: Build, rows: Sequence[BuildRow]) -> list[Finding]:
    """Return a finding if the build could not be evaluated for one of the rows."""
    stopped = next((row for row in rows if row.error), None)
    if stopped is None:
        return []
    found = f"{build.setting}={stopped.asked} with CUDA {stopped.cuda} could not be evaluated: {stopped.error}"
    return [remedies.finding(Level.YELLOW, build.setting, found, "build_not_evaluated")]


def pairs_of(build: Build, question: Question, cuda: Version | None) -> list[tuple[str, str]]:
    """Return each CUDA release and arch list that a question is about."""
    lists = (question.asked.replace(";", build.separator),) if question.asked else build.lists
    return [(c, asked) for c in ((str(cuda),) if cuda else build.cuda) for asked in lists]


def best_of(gpu: Arch, gpus: Sequence[Arch], rows: Sequence[BuildRow]) -> list[BuildRow]:
    """Return the rows of the arch list to recommend for ``gpu``. Prefer one that works with every CUDA release, then
    one that works for all GPUs, then one that names this GPU, then one with suffixes, which every build understands,
    then the shortest. Empty if none works.
    """
    lists: dict[str, list[BuildRow]] = {}
    for row in rows:
        lists.setdefault(row.asked, []).append(row)

    def rank(asked: str) -> tuple[bool, bool, bool, bool, int]:
        served = [reach is not Reach.SUFFIXED for row in lists[asked] for reach in (row.reaches[g] for g in gpus)]
        unserved = [row for row in lists[asked] if row.reaches[gpu] is not Reach.SUFFIXED]
        bare = bool(asked) and not all(arch.suffix for arch in Arch.parse_list(asked, ptx=True))
        return bool(unserved), any(served), not names(asked, gpu), bare, len(re.findall(r"[;\s]", asked))

    serving = (asked for asked, made in lists.items() if any(row.reaches[gpu] is Reach.SUFFIXED for row in made))
    chosen = min(serving, key=rank, default="")
    return [row for row in lists.get(chosen, ()) if row.reaches[gpu] is Reach.SUFFIXED]


def names(asked: str, gpu: Arch) -> bool:
    """Return whether an arch list names a GPU; an empty list means the GPU of the machine."""
    if not asked:
        return True
    return gpu in {arch.gpu for arch in Arch.parse_list(asked, ptx=True)}


def quoted(asked: str) -> str:
    """Return an arch list as a shell takes it."""
    return f'"{asked}"' if re.search(r"[;\s]", asked) else asked
