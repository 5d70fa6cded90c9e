"""A configured build: the CUDA units of ``compile_commands.json`` or ``build.ninja``, and what they are compiled for.

It works for any project that CMake or PyTorch's extensions configure. Nothing is compiled.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries.driver_choice import nearest
from fp4patch.binaries.findings import Answer, Level
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import FOR_GB10, refused
from fp4patch.core.errors import BinaryError
from fp4patch.core.wording import counted
from fp4patch.doctor import settings
from fp4patch.doctor.projects import Fates, answer_of, does_not_compile, failing_of, of_driver, of_fates
from fp4patch.doctor.result import ProjectReport, Question
from fp4patch.doctor.settings import Setting
from fp4patch.doctor.statements import Preprocessor, SourceFile, may_have_statements

COMMANDS, NINJA = "compile_commands.json", "build.ninja"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_LARGEST = 1 << 22
_DEEPEST = 3
"""Files of a graph inside files that are followed."""
_TOOLKIT = re.compile(r"/cuda[^/]*/|/nvidia/cu\d+/|/targets/[\w-]+-linux/|^/usr/include/")
"""Headers of the toolkit and the system, which are not the project's statements."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A CUDA source that the build compiles, and how."""

    source: Path
    setting: Setting
    macros: dict[str, str]
    include: tuple[Path, ...]


def is_build(path: Path) -> bool:
    """Return whether a directory is a configured build."""
    return (path / COMMANDS).is_file() or (path / NINJA).is_file() or (path / "CMakeCache.txt").is_file()


def units(path: Path, cuda: Version) -> list[Unit]:
    """Return the CUDA units of a configured build. BinaryError where its description is damaged, or is not there."""
    try:
        if (path / COMMANDS).is_file():
            return list(_of_commands(path, cuda))
        if (path / NINJA).is_file():
            return list(_of_ninja(path, cuda))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BinaryError(f"{path}: its description is damaged: {error}", help="configure it again") from error
    raise BinaryError(
        f"{path} is a build without {COMMANDS} and {NINJA}",
        help="configure it again with -G Ninja, or with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    )


def _of_commands(path: Path, cuda: Version) -> Iterator[Unit]:
    for entry in json.loads((path / COMMANDS).read_text(encoding="utf-8")):
        arguments = entry.get("arguments") or shlex.split(entry["command"])
        folder = Path(entry.get("directory", path))
        if str(entry["file"]).endswith((".cu", ".cu.cc")) or "nvcc" in Path(arguments[0]).name:
            yield _unit(folder / entry["file"], arguments, folder, cuda)


def _of_ninja(path: Path, cuda: Version) -> Iterator[Unit]:
    """Yield the units of ``build.ninja`` and of the files that it includes, each with the command of its rule."""
    text = _graph(path / NINJA, 0)
    variables = dict(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))
    rules = dict(re.findall(r"^rule (\S+)\n(?:[ \t].*\n)*?[ \t]+command = (.*)$", text, re.MULTILINE))
    for block in re.split(r"\n(?=build )", text):
        head = re.match(r"build (.+?): (\S+) (.+?)(?: \|.*)?$", block, re.MULTILINE)
        sources = [name for name in head[3].split() if name.endswith(".cu")] if head else []
        if not head or not sources or head[2] == "phony":
            continue
        own = dict(re.findall(r"^\s+(\w+) = (.*)$", block, re.MULTILINE))
        command = rules.get(head[2], "")
        for _ in range(5):
            command = _replaced(command, {**variables, **own, "in": sources[0], "out": head[1]})
        yield _unit(path / sources[0].replace("$:", ":"), shlex.split(command), path, cuda)


def _graph(file: Path, depth: int) -> str:
    text = re.sub(r"\$\n\s*", "", file.read_text(encoding="utf-8", errors="replace"))
    parts = []
    for line in text.splitlines(keepends=True):
        word, _, name = line.strip().partition(" ")
        inner = file.parent / name
        follow = word in ("include", "subninja") and depth < _DEEPEST and inner.is_file()
        parts.append(_graph(inner, depth + 1) + "\n" if follow else line)
    return "".join(parts)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1], ""), text)


def _unit(source: Path, given: Sequence[str], folder: Path, cuda: Version) -> Unit:
    arguments, unread = _with_files(given, folder)
    line = " ".join(arguments)
    setting = settings.of_command(source.name, line, cuda)
    if not given or (unread and setting.code == setting.ptx):  # the default, for want of others
        setting = replace(setting, code=(), ptx=(), unknown=unread or "its command", value="targets that are not known")
    include = []
    for at, one in enumerate(arguments):
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if one in ("-I", "-isystem", "--include-path"):
            include.append(folder / following)
        elif one.startswith("-I"):
            include.append(folder / one[2:])
    return Unit(source, setting, settings.defined(line), tuple(include))


def _with_files(arguments: Sequence[str], folder: Path) -> tuple[list[str], str]:
    """Return the arguments with those that files have, and the name of a file that is not there."""
    result, unread, words = list[str](), "", iter(arguments)
    for word in words:
        name = next(words, "") if word in ("--options-file", "-optf") else word[1:] if word[:1] == "@" else ""
        if not name:
            result.append(word)
        elif (folder / name).is_file():
            result += shlex.split((folder / name).read_text(encoding="utf-8", errors="replace"))
        else:
            unread = name
    return result, unread


@dataclass
class _Headers:
    """Files that units include, each read once."""

    texts: dict[Path, str] = field(default_factory=dict)
    sources: dict[Path, SourceFile] = field(default_factory=dict)
    places: dict[tuple[Path, str, tuple[Path, ...]], Path | None] = field(default_factory=dict)

    def text(self, path: Path) -> str:
        if path not in self.texts:
            try:
                small = path.stat().st_size <= _LARGEST
                self.texts[path] = path.read_text(encoding="utf-8", errors="replace") if small else ""
            except OSError:
                self.texts[path] = ""
        return self.texts[path]

    def source(self, path: str) -> SourceFile:
        place = Path(path)
        if place not in self.sources:
            self.sources[place] = SourceFile.of(path, self.text(place))
        return self.sources[place]

    def find(self, unit: Unit, path: str, name: str) -> str:
        """Return the file that an ``#include`` names; nothing for the toolkit's and the system's."""
        here = Path(path).parent
        key = here, name, unit.include
        if key not in self.places:
            candidates = (folder / name for folder in (here, *unit.include))
            self.places[key] = next((one for one in candidates if one.is_file()), None)
        found = self.places[key]
        return str(found) if found and not _TOOLKIT.search(str(found)) else ""

    def with_statements(self, unit: Unit) -> list[SourceFile]:
        """Return the source and those of its headers that have FP4 statements."""
        pending, seen, found = [str(unit.source)], {str(unit.source)}, []
        while pending:
            path = pending.pop()
            text = self.text(Path(path))
            if may_have_statements(text) and self.source(path).statements:
                found.append(self.source(path))
            for name in _INCLUDE.findall(text):
                inner = self.find(unit, path, name)
                if inner and inner not in seen:
                    seen.add(inner)
                    pending.append(inner)
        return found


def examine(path: Path, question: Question, cuda: Version | None) -> ProjectReport:
    """Return the report on a configured build: what its units are compiled for, and what they have of FP4."""
    headers, found = _Headers(), units(path, cuda or Version(FOR_GB10))
    having = [(unit, files) for unit in found if (files := headers.with_statements(unit))]
    kinds = Counter(s.kind.value for _, files in having for file in files for s in file.statements)
    sets: dict[str, list[Unit]] = {}
    for unit in found:
        sets.setdefault(unit.setting.value, []).append(unit)
    rows = tuple(
        Setting(counted(len(same), "CUDA source"), "compiled for", value, same[0].setting.code, same[0].setting.ptx)
        for value, same in sets.items()
    )
    unknown = next((unit for unit in found if unit.setting.unknown), None)
    why = (f"{unknown.source.name}: {unknown.setting.unknown} is not read",) if unknown else ()
    verdict = "the architectures are not followed" if unknown else "" if found else "the build compiles no CUDA source"
    answers = tuple(
        Answer(gpu, Level.NONE, verdict, why) if verdict else _answer(gpu, found, having, headers, cuda, question)
        for gpu in question.gpus
    )
    return ProjectReport(str(path), len(headers.texts), rows, dict(kinds), (), answers)


def _answer(
    gpu: Arch,
    found: Sequence[Unit],
    having: Sequence[tuple[Unit, list[SourceFile]]],
    headers: _Headers,
    cuda: Version | None,
    question: Question,
) -> Answer:
    loads = {unit: nearest(gpu, unit.setting.on(gpu).code, unit.setting.ptx) for unit in found}
    lost = [unit for unit in found if loads[unit] is None]
    how = f"{len(found) - len(lost)} of {counted(len(found), 'CUDA source')} have a target that {gpu} loads"
    targets = [arch for unit in found for arch in (*unit.setting.code, *unit.setting.ptx)]
    if cuda and (stops := refused(cuda, targets)):
        return Answer(gpu, Level.RED, "nothing is compiled", (stops,))
    if len(lost) == len(found):
        return answer_of(
            gpu, Level.RED, "nothing loads", (how, f"they are compiled for {found[0].setting.value}"), question
        )
    fates: Fates = {}
    chosen = next(arch for arch in loads.values() if arch)
    without = []
    by_driver = False
    for unit, files in having:
        target = loads[unit]
        if target is None:
            without.append(unit)
            continue
        chosen = target
        by_driver |= target not in unit.setting.on(gpu).code

        def include(path: str, name: str, unit: Unit = unit) -> str:
            return headers.find(unit, path, name)

        others = [arch for arch in (*unit.setting.code, *unit.setting.ptx) if arch.major == gpu.major]
        for file in files:
            for arch in dict.fromkeys((target, *others)):
                left = Preprocessor(arch, str(cuda or FOR_GB10), dict(unit.macros), headers.source, include).left(file)
                found_for = {(statement, arch): fate for statement, fate in left.items()}
                if arch == target:
                    fates = found_for | fates
                elif (failing := failing_of(found_for)) and failing[0].kind.supported(replace(gpu, suffix="a")):
                    return does_not_compile(gpu, failing, arch, how, question)
    if without and not fates:
        why = f"{counted(len(without), 'source')} with FP4 statements, as {without[0].source.name}, have no such target"
        return answer_of(gpu, Level.RED, "FP4 code that it has is for other GPUs", (how, why), question)
    if not fates:
        return Answer(gpu, Level.NONE, "no FP4 statement is in the sources or their headers", (how,))
    answer = of_fates(gpu, fates, chosen, how, question)
    compiled = {unit.source for unit, _ in having if unit not in without}
    if (out := [unit.source.name for unit in without if unit.source not in compiled]) and answer.level is not Level.RED:
        why = f"{counted(len(out), 'source')} with FP4 statements, as {out[0]}, have no such target"
        answer = replace(
            answer, level=Level.YELLOW, evidence=(*answer.evidence, why), reservations=answer.reservations + 1
        )
    return of_driver(answer) if by_driver else answer
