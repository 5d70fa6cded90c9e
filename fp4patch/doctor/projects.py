"""Any CUDA project: what its build files set, what its FP4 statements come to for a GPU, and what was not looked at."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Answer, Axis, Finding, Level, Observation
from fp4patch.core.arch import Arch, nearest
from fp4patch.core.cuda import FOR_GB10, refused
from fp4patch.core.errors import UsageError
from fp4patch.core.wording import counted, listed, shortened
from fp4patch.cxx.preprocessor import Preprocessor
from fp4patch.doctor import recipes, settings
from fp4patch.doctor.builds import quoted
from fp4patch.doctor.known_defects import refused_by_pytorch
from fp4patch.doctor.messages import UTF16
from fp4patch.doctor.readings import files
from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import Kind
from fp4patch.doctor.result import ProjectReport, Question
from fp4patch.doctor.settings import BuildFile, Setting
from fp4patch.doctor.statements import (
    Left,
    SourceFile,
    Statement,
    StatementKind,
    may_have_statements,
    summary,
    what_is_left,
)

SOURCES = (".cu", ".cuh", ".h", ".hpp", ".hxx", ".cc", ".cpp", ".inl", ".inc", ".ptx")
_SKIPPED = frozenset((".git", "node_modules", "__pycache__", ".venv", "site-packages", "test", "tests", "docs"))
_LARGEST = 1 << 22
"""Bytes of a text that is read."""
_GENERATED = 1 << 18
"""Bytes of a source that people write: what is larger is generated, for one target."""
_SHOWN = 3
_CONFIGURED = "configure it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, then fp4patch doctor BUILD_DIR"
_DETECTED = "PyTorch's detection"
# Example: nv_float4_t
_TEMPLATE = re.compile(r"\b(?:[mn][xv]_float4_t|OpClassBlockScaled\w*TensorOp)\b")
"""CUTLASS's names for products of block-scaled matrices: the instructions are in its headers."""
_FOR_OTHERS = "its FP4 statements are for other GPUs alone"
_TORCH_LISTS = ("TORCH_CUDA_ARCH_LIST", "--arch-list", _DETECTED)


@dataclass
class Project:
    """The texts of a project that matter, by their paths below its root."""

    root: Path
    sources: dict[str, SourceFile] = field(default_factory=dict)
    """Sources with FP4 statements."""
    builds: dict[str, str] = field(default_factory=dict)
    """Build files and recipes."""
    macros: dict[str, str] = field(default_factory=dict)
    """What the build files define for compilations."""
    read: int = 0
    by_name: dict[str, list[str]] = field(default_factory=dict)
    """Paths of all sources, by the name of the file."""
    kept: dict[str, SourceFile] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    """Files that are not read, and why."""
    templates: list[str] = field(default_factory=list)
    """Places of sources that multiply by templates of CUTLASS."""

    @classmethod
    def at(cls, path: Path, *, without: Sequence[Path] = (), converting: bool = False) -> Project:
        """Read a directory, or one file. UsageError if a file cannot be read.

        ``without``: directories that are judged by themselves; ``converting``: only conversions to E2M1 matter, in
        files that are not generated.
        """
        project = cls(path if path.is_dir() else path.parent)
        largest = _GENERATED if converting else _LARGEST
        for name in _files(path, without):
            content, why = _content(f"{project.root}/{name}", largest)
            project.read += 1
            if why and not converting:
                project.unread[name] = why
            if not name.endswith(SOURCES):
                project.builds[name] = _text(content)
                continue
            project.by_name.setdefault(name.rpartition("/")[2], []).append(name)
            if b".e2m1x2." in content if converting else may_have_statements(content):
                project.kept[name] = SourceFile(name, _text(content))
                if project.kept[name].statements:
                    project.sources[name] = project.kept[name]
            if not converting and (b"_float4_t" in content or b"OpClassBlockScaled" in content):
                source = project.kept.setdefault(name, SourceFile(name, _text(content)))
                if found := _TEMPLATE.search(source.text):
                    project.templates.append(f"{name}:{source.line(found.start())}")
        return project

    @property
    def is_extension(self) -> bool:
        """True if PyTorch's own build of extensions compiles it, which a setup.py calls."""
        names = {name.rpartition("/")[2] for name in self.builds}
        uses = any("cpp_extension" in text for name, text in self.builds.items() if name.endswith(".py"))
        return uses and "CMakeLists.txt" not in names

    def preprocessor(self, target: Arch, cuda: str) -> Preprocessor:
        """Return a pass over one of the sources for a target."""
        return Preprocessor(target, cuda, self.macros, self._source, self._included)

    def _source(self, name: str) -> SourceFile:
        if name not in self.kept:
            self.kept[name] = SourceFile(name, (self.root / name).read_text(encoding="utf-8", errors="replace"))
        return self.kept[name]

    def _included(self, path: str, name: str) -> str:
        """Return the path of the file that an ``#include`` names, if it is one of the project's."""
        candidates = self.by_name.get(name.rpartition("/")[2], ())
        if candidates and (beside := normpath(join(dirname(path), name))) in candidates:
            return beside
        fitting = [one for one in candidates if one == name or one.endswith(f"/{name}")]
        return fitting[0] if len(fitting) == 1 else ""


def is_read(name: str) -> bool:
    """Return whether a file of this name is a source, a build file or a recipe."""
    return name.endswith(SOURCES) or bool(files.kind_of(name)) or bool(recipes.RECIPE.fullmatch(name))


def _files(path: Path, without: Sequence[Path]) -> Iterator[str]:
    """Yield the files that are read, by their paths below ``path``: also scripts in Python that are beside a recipe."""
    if path.is_file():
        yield path.name
    for place, folders, entries in os.walk(path):
        here = Path(place)
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and here / f not in without)
        scripts = any(map(recipes.RECIPE.fullmatch, entries))
        below = f"{here.relative_to(path).as_posix()}/".removeprefix("./")
        for name in sorted(entries):
            is_wanted = is_read(name) or (scripts and name.endswith(".py"))
            if is_wanted and stat.S_ISREG(os.lstat(f"{place}/{name}").st_mode):
                yield below + name


def text_of(file: Path) -> str:
    """Return the text of a file; nothing of one that is too large or no text. UsageError if it cannot be read."""
    return _text(_content(str(file), _LARGEST)[0])


def _content(file: str, largest: int) -> tuple[bytes, str]:
    """Return what a file has, or nothing and why it is not read: no compiler or build tool reads UTF-16."""
    try:
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 - a Path takes long
            if os.fstat(opened.fileno()).st_size > largest:
                return b"", f"it is larger than {largest >> 20} MiB"
            content = opened.read()
    except OSError as error:
        raise UsageError(f"cannot read {Path(file)}: {error.strerror}", help="check its permissions") from error
    if content.startswith(UTF16):
        return b"", "it is UTF-16: save it as UTF-8"
    return (b"", "it is no text: it has NUL bytes") if b"\0" in content[:4096] else (content, "")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def build_texts(path: Path) -> dict[str, str]:
    """Return the build files and recipes of a directory. UsageError if one cannot be read."""
    return {name: text_of(path / name) for name in _files(path, ()) if not name.endswith(SOURCES)}


_RECIPES = ("dockerfile", "shell", "make", "pkgbuild", "yaml", "just")


def rewrites(texts: Mapping[str, str], cuda: Version | None) -> list[Finding]:
    """Return a finding for each command of a known tree's recipes that rewrites targets, as in any project."""
    found = []
    for name, text in texts.items():
        if (files.kind_of(name) in _RECIPES or name.endswith(".py")) and recipes.may_rewrite(text):
            read = settings.read(name, text, cuda or Version(FOR_GB10))
            found += recipes.rewrites(name, read.commands, read.rewrites)
    return found


def examine(path: Path, question: Question, cuda: Version | None, *, without: Sequence[Path] = ()) -> ProjectReport:
    """Return the report on a project. ``cuda``: the release that compiles it, if it is known."""
    project = Project.at(path, without=without)
    release = cuda or Version(FOR_GB10)
    own = path.resolve().name if path.is_dir() else ""
    read = {name: settings.read(name, text, release, own) for name, text in project.builds.items()}
    changed = dict(project.builds)
    for file in read.values():
        for command in file.commands:
            changed |= recipes.rewritten(command, changed)
    again = {
        name: settings.read(name, text, release, own) for name, text in changed.items() if text != project.builds[name]
    }
    read |= again
    read |= {name: BuildFile(unread=f"{name}: {why}") for name, why in project.unread.items()}
    for file in read.values():
        project.macros |= file.macros
    findings = [*recipes.removals(project.builds)]
    for name, file in read.items():
        # A recipe alone builds other projects; one that ends ends it.
        every = file.settings if project.sources else (*file.settings, *file.others)
        findings += recipes.refused(file.flags, every)
        rows = recipes.rewrites(name, file.commands, file.rewrites)
        findings += [row for row in rows if row.level is not Level.NONE or not again]
    build = _Build(project, read, question.asked)
    answers = tuple(_answer(gpu, build, findings, question, cuda) for gpu in question.concerned)
    kinds = Counter(s.kind.value for source in project.sources.values() for s in source.statements)
    shown = tuple(build.counting)
    return ProjectReport(str(path), project.read, shown, dict(kinds), tuple(findings), answers)


class _Build:
    """What the build files of a project say, and which of it counts for its own sources."""

    def __init__(self, project: Project, read: Mapping[str, BuildFile], asked: str) -> None:
        self.project = project
        self.read = read
        every = [(name, setting) for name, file in read.items() for setting in file.settings]
        self.used = {name for file in read.values() for name in file.used}
        self.fixed = [
            setting
            for name, setting in every
            if setting.name in ("-gencode", "-arch") and files.kind_of(name) in ("python", "cmake", "make")
        ]
        """Flags that the project's own build has, whatever a list says."""
        self.elsewhere = [setting for _, setting in every if not self._counts(setting)]
        """Lists that other projects read, or that this one does not."""
        self.counting = [setting for _, setting in every if self._counts(setting)]
        if asked:
            self.counting = [settings.of_list("", "--arch-list", asked)]
        elif not self.counting and project.is_extension:  # it takes the machine's GPU, without a suffix, and adds PTX
            plain = Arch(12, 0)
            value = "where TORCH_CUDA_ARCH_LIST is not set"
            self.counting = [Setting("", _DETECTED, value, (plain,), (plain,), kind=Kind.DEFAULT)]
        others = [setting for file in read.values() for setting in file.others]
        self.others = [*others, *(setting for setting in self.elsewhere if setting not in others)]
        self.unread = [file.unread for file in read.values() if file.unread]

    def _counts(self, setting: Setting) -> bool:
        """Return whether the project's own sources are compiled with a setting."""
        listed = list_name(setting.name)
        if listed is None or listed.notation in ("cmake", "xmake", "xla") or setting.name.startswith("-"):
            return True
        if setting.name in _TORCH_LISTS and self.fixed and self.project.is_extension:
            return False  # torch/utils/cpp_extension.py: flags with an architecture come before the list
        if not self.project.sources and not self.project.is_extension:
            return True  # a recipe alone: it is answered by what it says
        if setting.name in _TORCH_LISTS:
            return self.project.is_extension or setting.name in self.used or not self.fixed
        return setting.name in self.used or listed.read_by == "Nix"


Fates = Mapping[tuple[Statement, Arch], tuple[Left, str]]
"""What is left of each statement for each target that it is compiled for."""


@dataclass(frozen=True)
class Part:
    """Sources with FP4 statements that are compiled for the same targets."""

    setting: Setting
    files: Iterable[SourceFile]
    preprocessor: Callable[[Arch], Preprocessor]


def _answer(gpu: Arch, build: _Build, findings: Sequence[Finding], question: Question, cuda: Version | None) -> Answer:
    """Return the answer for a GPU. It is no only where a compiler refuses what is set: texts decide nothing else."""
    how = _how(build.project, gpu, question)
    seen = [
        Observation(Axis.TOOLS, Level.RED, "the build ends", (f"{one.subject}: {one.found}",), one.remedy)
        for one in findings
        if one.level is Level.RED
    ][:1]
    statements = [statement for source in build.project.sources.values() for statement in source.statements]
    not_read = partial(Observation, Axis.READ, Level.NONE, todo=how)
    if seen:  # nothing else is compiled
        return Answer.of(gpu, *seen)
    if question.asked and build.fixed:
        why = tuple(_meaning(one, gpu) for one in build.fixed[:_SHOWN])
        seen.append(not_read("the list is not all that counts: the build has targets of its own", why))
    elif not build.counting:
        verdict = f"no architecture is set in the {counted(build.project.read, 'file')} read"
        verdict = "what is set is for other builds" if build.others else verdict
        seen.append(not_read(verdict, tuple(_beside(build, gpu))))
    elif statements and not any(_is_for(statement.kind, gpu) for statement in statements):
        todo = remedies.of("other_gpus", gpu=gpu)
        seen.append(Observation(Axis.CONVERTS, Level.NONE, _FOR_OTHERS, (places(statements),), todo))
    else:
        seen += _of_settings(gpu, build, question, cuda)
    return Answer.of(gpu, *seen)


def _of_settings(gpu: Arch, build: _Build, question: Question, cuda: Version | None) -> list[Observation]:
    """Return what the settings come to: the best one answers, since what is not followed may be what is compiled."""
    project = build.project
    how = _how(project, gpu, question)
    by_outcome: dict[tuple[Level, str], tuple[Setting, Answer]] = {}
    for setting in build.counting:
        of_one = _decided(_of_setting(gpu, project, setting.on(gpu), question, cuda), setting)
        answer = Answer.of(gpu, *of_one)
        by_outcome.setdefault((answer.level, answer.verdict), (setting, answer))
    order = (Level.GREEN, Level.YELLOW, Level.NONE, Level.RED)
    (setting, best), *others = sorted(by_outcome.values(), key=lambda pair: order.index(pair[1].level))
    beside = tuple(f"with {_place(other)}: {answer.verdict}" for other, answer in others[:_SHOWN])
    if best.level in (Level.RED, Level.NONE):
        todo = best.todo or how
        if project.is_extension and setting.name in _TORCH_LISTS and not question.asked:
            every = ";".join(replace(one, suffix="a").torch for one in question.gpus)
            todo = remedies.of("list_for_gpus", setting=_TORCH_LISTS[0], list=quoted(every))
        facts = (*best.deciding.evidence, *beside, *_beside(build, gpu))
        found = replace(best.deciding, evidence=facts, todo=todo)
        return [found if one is best.deciding else one for one in best.observations]
    seen = list(best.observations)
    if build.unread:
        seen.append(Observation(Axis.READ, Level.YELLOW, f"not read: {shortened(build.unread)}"))
    if others and any(setting.partial for setting in build.counting):
        each = tuple(f"{_place(one)}: {answer.verdict}" for one, answer in by_outcome.values())
        verdict = "its sources are compiled for different targets"
        return [Observation(Axis.READ, Level.NONE, verdict, each, how)]
    todo = f"build with {_place(setting)}"
    return seen + [Observation(Axis.LOADS, Level.YELLOW, one, (), todo) for one in beside]


def _decided(observations: Iterable[Observation], setting: Setting) -> list[Observation]:
    """Return a no only if a compiler refuses what is set for certain; else what was read, without a judgement."""
    is_certain = setting.kind is not Kind.DEFAULT and not (setting.unknown or setting.condition or setting.partial)
    why = (f"it is a default: {setting.name} can be set otherwise",) if setting.kind is Kind.DEFAULT else ()
    return [
        one
        if one.level is not Level.RED or (one.axis is Axis.TOOLS and is_certain)
        else replace(one, level=Level.NONE, evidence=(*one.evidence, *why))
        for one in observations
    ]


def _meaning(setting: Setting, gpu: Arch) -> str:
    """Return what a setting comes to for a GPU, as far as its reader is known."""
    chosen = nearest(gpu, setting.code, setting.ptx)
    got = f"{gpu} gets {chosen}" if chosen else setting.unknown or f"nothing that {gpu} loads"
    said = f"{_place(setting)}: {got}" if not setting.meaning else f"{_place(setting)}: {setting.meaning}"
    return f"{said} (for {setting.command})" if setting.command else said


def _beside(build: _Build, gpu: Arch) -> Iterator[str]:
    """Yield what was read that does not count, and what was not read."""
    yield from (f"for other builds: {_meaning(setting, gpu)}" for setting in build.others[:_SHOWN])
    if build.unread:
        yield f"not read: {shortened(build.unread)}"


def _how(project: Project, gpu: Arch, question: Question) -> str:
    """Return the commands that would judge it, without the one that was just run."""
    target = replace(gpu, suffix="a").torch
    if question.asked:
        return _CONFIGURED
    with_list = f"fp4patch doctor --for {gpu} --arch-list {target} {project.root}, with the list of your build"
    return f"{with_list}; or {_CONFIGURED}"


def _place(setting: Setting) -> str:
    return f"{setting.name} {setting.value}" + (f" ({setting.place})" if setting.place else "")


def build_for(gpu: Arch, question: Question) -> str:
    """Return the next step to build for a target that has the instructions."""
    return remedies.of("code_for_other_targets", gpu=gpu, **remedies.target_for(gpu, question.gpus))


def _of_setting(
    gpu: Arch, project: Project, setting: Setting, question: Question, cuda: Version | None
) -> Iterator[Observation]:
    """Yield what one setting comes to. ``cuda``: that of the toolkit, where neither user nor base image names one."""
    place = _place(setting)
    stated = question.cuda or setting.cuda
    wrong = refused_by_pytorch(setting.code, None, cmake=False) if setting.name in _TORCH_LISTS else []
    stops = refused(Version(stated), (*setting.code, *setting.ptx)) if stated else ""
    chosen = nearest(gpu, setting.code, setting.ptx)
    if wrong and project.is_extension:
        why = f"{place}: PyTorch's extensions (torch/utils/cpp_extension.py) do not take {listed(wrong)}"
        yield Observation(Axis.TOOLS, Level.RED, "the build ends", (why,))
    elif stops:
        why = f"{place}: {stops}{'' if question.cuda else ', which the base image has'}"
        yield Observation(Axis.TOOLS, Level.RED, "nothing is compiled", (why,), remedies.of("cuda_too_old"))
    elif chosen is None and setting.unknown:
        why = f"{place}: {setting.unknown}"
        yield Observation(Axis.READ, Level.NONE, "the architectures are not followed", (why,))
    elif chosen is None:
        why = f"{place} makes no code that {gpu} loads"
        yield Observation(Axis.LOADS, Level.RED, "nothing that it loads is named", (why,), build_for(gpu, question))
    elif not project.sources:
        gets = f"{place}: {gpu} gets {chosen}"
        by_templates = [_by_templates(project.templates)] if project.templates else []
        why = f"no FP4 statement is in the {counted(project.read, 'file')} read"
        yield Observation(Axis.READ, Level.NONE, why, (gets, *filter(None, [setting.meaning]), *by_templates))
    else:
        preprocessor = partial(project.preprocessor, cuda=stated or str(cuda or FOR_GB10))
        part = Part(setting, project.sources.values(), preprocessor)
        doubtful = any(arch.major == gpu.major or arch == chosen for arch in setting.conditional)
        for found in of_parts(gpu, [part], f"{place}: {gpu} gets {chosen}", question, project.templates):
            yield replace(found, level=Level.NONE) if doubtful and found.level is Level.RED else found
        if doubtful:
            why = "some of the targets are set under conditions that are not known"
            yield Observation(Axis.READ, Level.YELLOW, why)


def _by_templates(templates: Sequence[str]) -> str:
    return f"CUTLASS's block-scaled templates, whose headers are not read: {shortened(templates)}"


def of_parts(
    gpu: Arch, parts: Iterable[Part], place: str, question: Question, templates: Sequence[str] = ()
) -> list[Observation]:
    """Return what comes of sources that are compiled together; each part has a target that the GPU loads.

    ``templates``: places that multiply by templates which are not among the sources.
    """
    fates: Fates = {}
    by_driver = False
    for part in parts:
        code, ptx = part.setting.code, part.setting.ptx
        chosen = nearest(gpu, code, ptx)
        assert chosen
        by_driver |= chosen not in code
        # One target for which a statement does not compile ends the build.
        for arch in dict.fromkeys((chosen, *(arch for arch in (*code, *ptx) if arch.major == gpu.major))):
            own = {
                (s, arch): fate
                for file in part.files
                for s, fate in what_is_left(file, part.preprocessor(arch)).items()
            }
            absent = [s for (s, _), (what, _) in own.items() if what is Left.COMPILED and not s.kind.compiles(arch)]
            if failing := [statement for statement in absent if _is_for(statement.kind, gpu)]:
                more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
                having = (replace(gpu, suffix=suffix) for suffix in ("a", "f"))
                needed = listed([target for target in having if failing[0].kind.supported(target)], "or")
                made = f"PTX of {arch}, which {part.setting.name} {part.setting.value} makes"
                made = str(arch) if arch in code else made
                why = f"{failing[0].place}{more} is compiled for {made}, and {failing[0].kind} needs {needed}"
                todo = build_for(gpu, question)
                return [Observation(Axis.TOOLS, Level.RED, "it does not compile", (why, place), todo)]
            fates = {**own, **fates} if arch == chosen else fates
    found = _of_fates(gpu, fates, place, question, templates)
    why = f"{gpu} gets PTX alone, which its driver compiles when a kernel is first used"
    return [*found, Observation(Axis.LOADS, Level.YELLOW, why)] if by_driver else found


def left_out(project: Project, target: Arch, cuda: str) -> dict[Left, list[Statement]]:
    """Return the conversions of a known tree by what is left of each for a target, without what a build defines."""
    found: dict[Left, list[Statement]] = {}
    for source in project.sources.values():
        if all(statement.kind is not StatementKind.CONVERSION for statement in source.statements):
            continue
        for statement, (what, _) in what_is_left(source, project.preprocessor(target, cuda)).items():
            if statement.kind is StatementKind.CONVERSION:
                found.setdefault(what, []).append(statement)
    return found


def _of_fates(gpu: Arch, fates: Fates, place: str, question: Question, templates: Sequence[str]) -> list[Observation]:
    """Return what follows from what is left of the statements: those that convert, and those that multiply."""
    targets: dict[Left, dict[Statement, Arch]] = {left: {} for left in Left}
    deciding: dict[str, None] = {}
    for (statement, target), (left, name) in fates.items():
        if _is_for(statement.kind, gpu):
            in_software = left is Left.COMPILED and not statement.kind.supported(target)
            targets[Left.OTHER if in_software else left].setdefault(statement, target)
            deciding |= {name: None} if left is Left.UNKNOWN else {}
    if not any(targets.values()):
        return [Observation(Axis.CONVERTS, Level.RED, _FOR_OTHERS, (place,), remedies.of("other_gpus", gpu=gpu))]
    decided = any(targets[left] for left in (Left.COMPILED, Left.CONSTANT, Left.OTHER))
    if not decided:
        unknown = list(targets[Left.UNKNOWN])
        why = f"{counted(len(unknown), 'FP4 statement')} not judged, which {shortened(deciding)} decides"
        verdict = "the files read do not decide it"
        return [Observation(Axis.READ, Level.NONE, verdict, (f"{why}: {places(unknown)}", place))]
    seen = list[Observation]()
    for axis, products in ((Axis.CONVERTS, False), (Axis.MULTIPLIES, True)):
        own = {left: {s: t for s, t in of.items() if _multiplies(s) is products} for left, of in targets.items()}
        if templates and products and not any(own.values()):
            facts = (_by_templates(templates), place)
            verdict = "it multiplies by templates not read"
            seen.append(Observation(Axis.MULTIPLIES, Level.NONE, verdict, facts, _CONFIGURED))
            continue
        seen += _of_axis(axis, own, place, build_for(gpu, question), deciding)
    return seen


def _of_axis(
    axis: Axis,
    targets: Mapping[Left, Mapping[Statement, Arch]],
    place: str,
    build: str,
    deciding: Iterable[str],
) -> Iterator[Observation]:
    """Yield what is left of the statements of one axis. ``build``: the step to a target that has the instructions."""
    compiled, lost, software, unknown = (list(targets[left]) for left in Left)
    software = [statement for statement in software if statement not in compiled]
    verb = axis.value
    if compiled:
        facts = (f"{summary(Counter(s.kind for s in compiled))}: {places(compiled)}", place)
        yield Observation(axis, Level.GREEN, f"{verb} by {counted(len(compiled), 'statement')}", facts)
    elif not (lost or software or unknown):
        yield Observation(axis, Level.YELLOW, f"it {verb} nothing in FP4", (place,))
    if lost:
        target = targets[Left.CONSTANT][lost[0]]
        facts = (f"{counted(len(lost), 'FP4 statement')} left out, with {Left.CONSTANT.value}: {places(lost)}", place)
        todo = f"repair the condition at {lost[0].place}: it leaves {target} out" if target.suffix else build
        yield Observation(axis, Level.RED, "FP4 statements are left out", facts, todo)
    if software:
        target = targets[Left.OTHER][software[0]]
        facts = (f"{counted(len(software), 'FP4 statement')} with software in its place: {places(software)}", place)
        yield Observation(axis, Level.YELLOW, f"software {verb} in its place", facts, "" if target.suffix else build)
    if unknown:
        why = f"{counted(len(unknown), 'FP4 statement')} not judged, which {shortened(deciding)} decides"
        yield Observation(axis, Level.YELLOW, why, (places(unknown),))


def _is_for(kind: StatementKind, gpu: Arch) -> bool:
    return kind.compiles(replace(gpu, suffix="a"))


def _multiplies(statement: Statement) -> bool:
    return statement.kind in (StatementKind.MATRIX, StatementKind.SPARSE)


def places(statements: Sequence[Statement]) -> str:
    """Return the places of the first statements, and how many more there are."""
    return shortened(statement.place for statement in statements)
