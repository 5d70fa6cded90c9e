"""Any CUDA project: what its build files set, what its FP4 statements come to for a GPU, and what was not looked at."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import dirname, join, normpath

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.driver_choice import nearest
from fp4patch.binaries.findings import Answer, Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import FOR_GB10, refused
from fp4patch.core.wording import counted, listed
from fp4patch.doctor import recipes, settings
from fp4patch.doctor.builds import names, quoted
from fp4patch.doctor.known_defects import refused_by_pytorch
from fp4patch.doctor.result import ProjectReport, Question
from fp4patch.doctor.settings import Setting
from fp4patch.doctor.statements import (
    Left,
    Preprocessor,
    SourceFile,
    Statement,
    StatementKind,
    may_have_statements,
    summary,
)

SOURCES = (".cu", ".cuh", ".h", ".hpp", ".hxx", ".cc", ".cpp", ".inl", ".inc", ".ptx")
_SKIPPED = frozenset((".git", "node_modules", "__pycache__", ".venv", "site-packages", "test", "tests", "docs"))
_LARGEST = 1 << 22
"""Bytes of a text that is read."""
_MOST = 60_000
"""Files of a project that are looked at."""
_SHOWN = 3
_DETECTED = "PyTorch's detection"
_FOR_OTHERS = "its FP4 statements are for other GPUs alone"
_TORCH_LISTS = ("TORCH_CUDA_ARCH_LIST", "--arch-list", _DETECTED)


@dataclass
class Project:
    """The texts of a project that matter, by their paths below its root."""

    root: Path
    sources: dict[str, SourceFile] = field(default_factory=dict)
    """Sources with FP4 statements."""
    builds: dict[str, str] = field(default_factory=dict)
    macros: dict[str, str] = field(default_factory=dict)
    """What the build files define for compilations."""
    read: int = 0
    by_name: dict[str, list[str]] = field(default_factory=dict)
    """Paths of all sources, by the name of the file."""
    unread: list[str] = field(default_factory=list)
    kept: dict[str, SourceFile | None] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path, *, without: Sequence[Path] = (), largest: int = _LARGEST) -> Project:
        """Read a directory, or one file.

        ``without``: directories that are judged by themselves; ``largest``: bytes of a file that is read.
        """
        project = cls(path if path.is_dir() else path.parent)
        for file, name in _files(path, without):
            source = name.endswith(SOURCES)
            if source:
                project.by_name.setdefault(file.name, []).append(name)
            if not source and not (settings.kind_of(name) or recipes.is_recipe(file)):
                continue
            try:
                text = file.read_text(encoding="utf-8", errors="replace") if file.stat().st_size <= largest else ""
            except OSError as error:
                project.unread.append(f"{name}: {error.strerror}")
                continue
            project.read += 1
            if not source:
                project.builds[name] = text
            elif may_have_statements(text):
                source_file = SourceFile.of(name, text)
                if source_file.statements:
                    project.sources[name] = source_file
        return project

    @property
    def is_extension(self) -> bool:
        """True if PyTorch's own build of extensions compiles it, which a setup.py calls."""
        names = {name.rpartition("/")[2] for name in self.builds}
        uses = any("cpp_extension" in text for name, text in self.builds.items() if name.endswith(".py"))
        return uses and "CMakeLists.txt" not in names

    def source(self, name: str) -> SourceFile | None:
        """Return a source that is included."""
        if name not in self.kept:
            try:
                text = (self.root / name).read_text(encoding="utf-8", errors="replace")
                self.kept[name] = SourceFile.of(name, text) if len(text) <= _LARGEST else None
            except OSError:
                self.kept[name] = None
        return self.sources.get(name) or self.kept[name]

    def included(self, path: str, name: str) -> str:
        """Return the path of the file that an ``#include`` names, if it is one of the project's."""
        candidates = self.by_name.get(name.rpartition("/")[2], ())
        beside = normpath(join(dirname(path), name))
        if beside in candidates:
            return beside
        fitting = [one for one in candidates if one == name or one.endswith(f"/{name}")]
        return fitting[0] if len(fitting) == 1 else ""


def _files(path: Path, without: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    if path.is_file():
        yield path, path.name
        return
    number = 0
    for place, folders, files in os.walk(path):
        here = Path(place)
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and here / f not in without)
        for name in sorted(files):
            file = here / name
            number += 1
            if number > _MOST:
                return
            if file.is_file() and not file.is_symlink():
                yield file, file.relative_to(path).as_posix()


def examine(path: Path, question: Question, cuda: Version | None, *, without: Sequence[Path] = ()) -> ProjectReport:
    """Return the report on a project. ``cuda``: the release that compiles it, if it is known."""
    project = Project.at(path, without=without)
    release = Version(question.cuda) if question.cuda else cuda or Version(FOR_GB10)
    found = [settings.of_option(question.asked)] if question.asked else []
    for name, text in project.builds.items():
        own, macros = settings.read(name, text, release)
        found += () if question.asked else own
        project.macros |= macros
    if not found and project.is_extension:  # PyTorch takes the machine's GPU, without a suffix, and adds PTX
        plain = Arch(12, 0)
        found = [Setting("", _DETECTED, "where TORCH_CUDA_ARCH_LIST is not set", (plain,), (plain,))]
    read, removals = recipes.examine(path)
    findings = [*removals, *recipes.findings_of(project.builds, found)]
    listed_gpus = [gpu for gpu in question.gpus if question.named or not question.asked or names(question.asked, gpu)]
    gpus = listed_gpus or question.gpus
    answers = tuple(_answer(gpu, project, found, findings, question, cuda) for gpu in gpus)
    statements = Counter(s.kind for source in project.sources.values() for s in source.statements)
    return ProjectReport(
        str(path),
        max(project.read, read),
        tuple(found),
        {kind.value: number for kind, number in statements.items()},
        tuple(findings),
        answers,
    )


Fates = dict[tuple[Statement, Arch], tuple[Left, str]]
"""What is left of each statement for each target that it is compiled for."""


def _answer(
    gpu: Arch,
    project: Project,
    found: Sequence[Setting],
    findings: Sequence[Finding],
    question: Question,
    cuda: Version | None,
) -> Answer:
    number = sum(len(source.statements) for source in project.sources.values())
    had = f"{counted(number, 'FP4 statement')} in {counted(len(project.sources), 'file')}" if number else ""
    if stops := next((one for one in findings if one.level is Level.RED), None):
        return Answer(gpu, Level.RED, "the build ends", (f"{stops.subject}: {stops.found}",), stops.remedy)
    if not found:
        verdict = f"no architecture is set in the {counted(project.read, 'file')} read"
        return Answer(gpu, Level.NONE, verdict, (had,) if had else (), _how(project, gpu))
    by_outcome: dict[tuple[Level, str], tuple[Setting, Answer]] = {}
    for setting in _of_concern(project, found):
        one = _of_setting(gpu, project, setting.on(gpu), question, cuda)
        by_outcome.setdefault((one.level, one.verdict), (setting, one))
    order = [Level.GREEN, Level.YELLOW, Level.RED, Level.NONE]
    order = (
        order if project.sources else [*order[:2], *order[:1:-1]]
    )  # without statements, code that loads is not judged
    (setting, best), *others = sorted(by_outcome.values(), key=lambda pair: order.index(pair[1].level))
    if best.level is Level.RED and project.is_extension and setting.name in _TORCH_LISTS:
        every = ";".join(replace(one, suffix="a").torch for one in question.gpus)
        return replace(best, todo=remedies.of("list_for_gpus", setting=_TORCH_LISTS[0], list=quoted(every)))
    if best.level in (Level.RED, Level.NONE):
        return best if best.todo else replace(best, todo=_how(project, gpu))
    if not others:
        return best
    beside = [f"with {_place(other)}: {answer.verdict}" for other, answer in others[:_SHOWN]]
    todo = best.todo or f"build with {_place(setting)}"
    return replace(best, level=Level.YELLOW, evidence=(*best.evidence, *beside), todo=todo, reservations=len(beside))


def _of_concern(project: Project, found: Sequence[Setting]) -> list[Setting]:
    """Return the settings of sources with FP4 statements: of those that name sources, and else of all."""
    names = {Path(name).name for name in project.sources}
    own = [setting for setting in found if names.intersection(setting.sources)]
    if own and names <= {name for setting in own for name in setting.sources}:
        return own
    return [setting for setting in found if not setting.sources or setting in own] or list(found)


def _how(project: Project, gpu: Arch) -> str:
    """Return the commands that would judge it."""
    target = replace(gpu, suffix="a").torch
    return (
        f"fp4patch doctor --for {gpu} --arch-list {target} {project.root}, with the list of your build;"
        " or configure it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, then fp4patch doctor BUILD_DIR"
    )


def _place(setting: Setting) -> str:
    return f"{setting.name} {setting.value}" + (f" ({setting.place})" if setting.place else "")


def answer_of(gpu: Arch, level: Level, verdict: str, evidence: tuple[str, ...], question: Question) -> Answer:
    """Return an answer whose next step is to build for a target that has the instructions."""
    todo = remedies.of("code_for_other_targets", gpu=gpu, **remedies.target_for(gpu, question.gpus))
    return Answer(gpu, level, verdict, evidence, todo)


def _of_setting(gpu: Arch, project: Project, setting: Setting, question: Question, cuda: Version | None) -> Answer:
    """Return the answer of one setting. ``cuda``: that of the toolkit, where neither user nor base image names one."""
    place = _place(setting)
    stated = question.cuda or setting.cuda
    if stopped := _stopped(gpu, project, setting, question):
        return stopped
    chosen = nearest(gpu, setting.code, setting.ptx)
    if chosen is None and setting.unknown:
        return Answer(gpu, Level.NONE, "the architectures are not followed", (f"{place}: {setting.unknown}",))
    if chosen is None:
        return answer_of(gpu, Level.RED, "nothing loads", (f"{place} makes no code that {gpu} loads",), question)
    release = stated or str(cuda or FOR_GB10)
    place += f": {gpu} gets {chosen}"
    sources = {name: one for name, one in project.sources.items() if _compiled(name, setting)}
    if not sources:
        where = "its sources" if project.sources else f"the {counted(project.read, 'file')} read"
        return Answer(gpu, Level.NONE, f"no FP4 statement is in {where}", (place,))
    by_driver = not any(arch.runs_on(gpu) for arch in setting.code)
    also = dict.fromkeys(arch for arch in (*setting.code, *setting.ptx) if arch.major == gpu.major and arch != chosen)
    for arch in also:  # one target for which a statement does not compile ends the build
        failing = failing_of(_fates(project, sources, arch, release))
        if failing and failing[0].kind.supported(replace(gpu, suffix="a")):
            return does_not_compile(gpu, failing, arch, place, question)
    answer = of_fates(gpu, _fates(project, sources, chosen, release), chosen, place, question)
    if setting.conditional and answer.level is Level.GREEN:
        evidence = (*answer.evidence, "some of the targets are added under conditions that are not known")
        answer = replace(answer, level=Level.YELLOW, evidence=evidence, reservations=answer.reservations + 1)
    return of_driver(answer) if by_driver else answer


def _stopped(gpu: Arch, project: Project, setting: Setting, question: Question) -> Answer | None:
    """Return the answer of a setting with which the build ends, or whatever it is; None for any other."""
    place = _place(setting)
    wrong = refused_by_pytorch(setting.code, None, cmake=False) if setting.name in _TORCH_LISTS else []
    if wrong and project.is_extension:
        why = f"{place}: PyTorch's extensions (torch/utils/cpp_extension.py) do not take {listed(wrong)}"
        return Answer(gpu, Level.RED, "the build ends", (why,))
    stated = question.cuda or setting.cuda
    if stated and (stops := refused(Version(stated), (*setting.code, *setting.ptx))):
        told = "" if question.cuda else ", which the base image has"
        return Answer(gpu, Level.RED, "nothing is compiled", (f"{place}: {stops}{told}",), remedies.of("cuda_too_old"))
    kinds = {statement.kind for source in project.sources.values() for statement in source.statements}
    if kinds and not any(_is_for(kind, gpu) for kind in kinds):
        return Answer(gpu, Level.RED, _FOR_OTHERS, (place,), remedies.of("other_gpus", gpu=gpu))
    return None


def of_driver(answer: Answer) -> Answer:
    """Return the answer of code that is PTX alone."""
    if answer.level not in (Level.GREEN, Level.YELLOW):
        return answer
    evidence = (*answer.evidence, f"{answer.gpu} gets PTX alone, which its driver compiles when a kernel is first used")
    return replace(answer, level=Level.YELLOW, evidence=evidence, reservations=answer.reservations + 1)


def _compiled(name: str, setting: Setting) -> bool:
    """Return whether a file can be part of what a setting compiles: a source that it names, or any header."""
    return not setting.sources or not name.endswith(".cu") or Path(name).name in setting.sources


def left_out(project: Project, target: Arch, cuda: str) -> dict[Left, list[Statement]]:
    """Return the conversions of a known tree by what is left of each for a target, without what a build defines."""
    found: dict[Left, list[Statement]] = {}
    for source in project.sources.values():
        left = Preprocessor(target, cuda, {}, project.source, project.included).left(source)
        for statement, (what, _) in left.items():
            if statement.kind is StatementKind.CONVERSION:
                found.setdefault(what, []).append(statement)
    return found


def _fates(project: Project, sources: Mapping[str, SourceFile], target: Arch, cuda: str) -> Fates:
    found: Fates = {}
    for source in sources.values():
        left = Preprocessor(target, cuda, dict(project.macros), project.source, project.included).left(source)
        found |= {(statement, target): fate for statement, fate in left.items()}
    return found


def failing_of(fates: Fates) -> list[Statement]:
    """Return the statements that are compiled for a target without the instruction."""
    return [
        statement
        for (statement, target), (left, _) in fates.items()
        if left is Left.COMPILED
        and statement.kind is not StatementKind.INTRINSIC
        and not statement.kind.supported(target)
    ]


def does_not_compile(gpu: Arch, failing: Sequence[Statement], arch: Arch, place: str, question: Question) -> Answer:
    """Return the answer of statements that are compiled for a target without the instruction."""
    more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
    why = f"{failing[0].place}{more} is compiled for {arch}, and {failing[0].kind} needs {needs(failing[0].kind, gpu)}"
    return answer_of(gpu, Level.RED, "it does not compile", (why, place), question)


def needs(kind: StatementKind, gpu: Arch) -> str:
    """Return the targets of a GPU that have an instruction: ``sm_121a or sm_121f``."""
    able = [replace(gpu, suffix=suffix) for suffix in ("a", "f") if kind.supported(replace(gpu, suffix=suffix))]
    return listed(able, "or") if able else "another GPU"


def of_fates(  # noqa: PLR0911 - one return an answer
    gpu: Arch, fates: Fates, chosen: Arch, place: str, question: Question
) -> Answer:
    """Return the answer that follows from what is left of the statements; ``chosen`` is a target that the GPU loads."""
    able = {key: fate for key, fate in fates.items() if _is_for(key[0].kind, gpu)}
    if failing := failing_of(able):
        return does_not_compile(gpu, failing, chosen, place, question)

    def having(*lefts: Left) -> list[Statement]:
        return list(dict.fromkeys(statement for (statement, _), (left, _) in able.items() if left in lefts))

    compiled = [s for (s, target), (left, _) in able.items() if left is Left.COMPILED and s.kind.supported(target)]
    compiled = list(dict.fromkeys(compiled))
    lost, unknown = having(Left.CONSTANT), having(Left.UNKNOWN)
    software = [s for s in having(Left.OTHER, Left.COMPILED) if s not in compiled]
    names = listed(list(dict.fromkeys(name for left, name in able.values() if left is Left.UNKNOWN))[:_SHOWN])
    rows = (
        (compiled, summary(Counter(s.kind for s in compiled))),
        (lost, f"{counted(len(lost), 'FP4 statement')} left out, with {Left.CONSTANT.value}"),
        (software, f"{counted(len(software), 'FP4 statement')} with software in its place"),
        (unknown, f"{counted(len(unknown), 'FP4 statement')} not judged, which {names} decides"),
    )
    evidence = (*(f"{what}: {places(some)}" for some, what in rows if some), place)
    if not able:
        return Answer(gpu, Level.RED, _FOR_OTHERS, (place,), remedies.of("other_gpus", gpu=gpu))
    if lost and not chosen.suffix:
        return answer_of(gpu, Level.RED, "FP4 statements are left out", evidence, question)
    if lost:
        todo = f"repair the condition at {lost[0].place}: it leaves {chosen} out"
        return Answer(gpu, Level.RED, "FP4 statements are left out", evidence, todo)
    if not compiled and software:
        if chosen.suffix:
            return Answer(gpu, Level.YELLOW, "software converts to FP4", evidence)
        return answer_of(gpu, Level.YELLOW, "software converts to FP4", evidence, question)
    if not compiled:
        return Answer(gpu, Level.NONE, "the files read do not decide it", evidence)
    multiplies, converts = _kinds_of(compiled)
    reservations = bool(unknown) + bool(software)
    if converts and multiplies:
        level = Level.YELLOW if reservations else Level.GREEN
        verdict = f"FP4 in hardware, by {counted(len(compiled), 'statement')}"
        return Answer(gpu, level, verdict, evidence, "", reservations)
    verdict = "it multiplies in hardware, and converts nothing to FP4"
    verdict = "it converts in hardware, and multiplies nothing in FP4" if converts else verdict
    if any(_kinds_of(unknown)):
        verdict = f"it {'converts' if converts else 'multiplies'} in hardware; the rest is not decided"
    return Answer(gpu, Level.YELLOW, verdict, evidence, "", reservations)


def _is_for(kind: StatementKind, gpu: Arch) -> bool:
    return kind.supported(replace(gpu, suffix="a")) or kind is StatementKind.INTRINSIC


def _kinds_of(statements: Sequence[Statement]) -> tuple[bool, bool]:
    """Return whether some of the statements multiply, and whether some convert."""
    products = {statement.kind in (StatementKind.MATRIX, StatementKind.SPARSE) for statement in statements}
    return True in products, False in products


def places(statements: Sequence[Statement]) -> str:
    """Return the places of the first statements, and how many more there are."""
    names = [statement.place for statement in statements]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
