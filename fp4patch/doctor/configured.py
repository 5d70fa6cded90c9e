"""A configured build: the CUDA units of ``compile_commands.json`` or ``build.ninja``, and what they are compiled for.

It works for any project that CMake or PyTorch's extensions configure. Nothing is compiled.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries.findings import Answer, Axis, Level, Observation
from fp4patch.core import process
from fp4patch.core.arch import Arch, nearest
from fp4patch.core.cuda import FOR_GB10, refused
from fp4patch.core.errors import BinaryError
from fp4patch.core.wording import counted, install
from fp4patch.cxx.preprocessor import Preprocessor
from fp4patch.doctor import settings
from fp4patch.doctor.projects import Part, build_for, of_parts, text_of
from fp4patch.doctor.result import ProjectReport, Question
from fp4patch.doctor.settings import Setting
from fp4patch.doctor.statements import SourceFile, may_have_statements

COMMANDS, NINJA = "compile_commands.json", "build.ninja"
# Example: -isystem=/usr/local/cuda/include
_INCLUDE_PATH = re.compile(r"^(?:-I|-isystem|--include-path)[=\n]?(.+)$", re.MULTILINE)
# Example: /cuda-13.0/
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
            text = (path / COMMANDS).read_text(encoding="utf-8")
        elif (path / NINJA).is_file():
            text = _of_ninja(path)
        else:
            raise BinaryError(
                f"{path} is a build without {COMMANDS} and {NINJA}",
                help="configure it again with -G Ninja, or with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
            )
        return list(_of_commands(path, text, cuda))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BinaryError(f"{path}: its description is damaged: {error}", help="configure it again") from error


def _of_ninja(path: Path) -> str:
    """Return the commands of ``build.ninja``, as ninja states them for ``compile_commands.json``, without a build."""
    program = process.located("ninja")
    if program is None:
        raise BinaryError(
            f"{path / NINJA} is read by ninja, and there is none",
            help=f"{install('doctor')}, or configure the build again with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        )
    done = process.run([program, "-t", "compdb"], folder=path)
    if done.status:
        raise BinaryError(f"ninja does not read {path / NINJA}: {done.said}", help="configure it again")
    return done.out


def _of_commands(path: Path, text: str, cuda: Version) -> Iterator[Unit]:
    for entry in json.loads(text):
        arguments = entry.get("arguments") or shlex.split(entry["command"])
        folder, file = Path(entry.get("directory", path)), str(entry["file"])
        by_nvcc = arguments and "nvcc" in Path(arguments[0]).name and not file.endswith((".o", ".a"))
        if by_nvcc or (arguments and file.endswith((".cu", ".cu.cc"))):
            yield _unit(folder / file, arguments, folder, cuda)


def _unit(source: Path, given: Sequence[str], folder: Path, cuda: Version) -> Unit:
    arguments, unread = _with_files(given, folder)
    setting = settings.of_command(str(source), arguments[1:], cuda)
    if unread and setting.code == setting.ptx:  # the default, for want of others
        setting = replace(setting, code=(), ptx=(), unknown=unread, value="targets that are not known")
    include = tuple(folder / name for name in _INCLUDE_PATH.findall("\n".join(arguments)))
    return Unit(source, setting, settings.defined(arguments[1:]), include)


def _with_files(arguments: Sequence[str], folder: Path) -> tuple[list[str], str]:
    """Return the arguments with those that files have, and the name of a file that is not there."""
    result = list[str]()
    unread = ""
    words = iter(arguments)
    for word in words:
        name = next(words, "") if word in ("--options-file", "-optf") else word[1:] if word[:1] == "@" else ""
        if not name:
            result.append(word)
        elif (folder / name).is_file():
            result += shlex.split((folder / name).read_text(encoding="utf-8", errors="replace"))
        else:
            unread = name
    return result, unread


class _Headers:
    """Files that units include, each read once."""

    def __init__(self) -> None:
        self.texts: dict[Path, str] = {}
        self.source = cache(lambda path: SourceFile(path, self.text(Path(path))))
        self.find = cache(_found)

    def text(self, path: Path) -> str:
        if path not in self.texts:
            self.texts[path] = text_of(path) if path.is_file() else ""
        return self.texts[path]

    def with_statements(self, unit: Unit) -> list[SourceFile]:
        """Return the source and those of its headers that have FP4 statements."""
        pending = [str(unit.source)]
        seen = {str(unit.source)}
        found = []
        while pending:
            path = pending.pop()
            text = self.text(Path(path))
            if may_have_statements(text.encode()) and self.source(path).statements:
                found.append(self.source(path))
            named = (rest[1:-1] for _, _, name, rest in self.source(path).directives if name == "include")
            inner = {self.find(unit.include, path, name) for name in named} - seen - {""}
            seen |= inner
            pending += sorted(inner)
        return found

    def part(self, unit: Unit, files: Sequence[SourceFile], gpu: Arch, cuda: str) -> Part:
        """Return these files of a unit as they are compiled on the machine of a GPU."""
        include = partial(self.find, unit.include)
        preprocessor = partial(Preprocessor, cuda=cuda, given=unit.macros, read=self.source, include=include)
        return Part(unit.setting.on(gpu), files, preprocessor)


def _found(include: Sequence[Path], path: str, name: str) -> str:
    """Return the file that an ``#include`` of another one names; nothing for the toolkit's and the system's."""
    folders = (Path(path).parent, *include)
    place = next((str(folder / name) for folder in folders if (folder / name).is_file()), "")
    return "" if _TOOLKIT.search(place) else place


def examine(path: Path, question: Question, cuda: Version | None) -> ProjectReport:
    """Return the report on a configured build: what its units are compiled for, and what they have of FP4."""
    headers, found = _Headers(), units(path, cuda or Version(FOR_GB10))
    sources = {unit: headers.with_statements(unit) for unit in found}
    kinds = Counter(s.kind.value for files in sources.values() for file in files for s in file.statements)
    alike = {unit.setting.value: unit.setting for unit in found}
    numbers = Counter(unit.setting.value for unit in found)
    rows = tuple(
        replace(alike[value], place=counted(number, "CUDA source"), name="compiled for")
        for value, number in numbers.items()
    )
    unknown = next((unit for unit in found if unit.setting.unknown), None)
    why = (f"{unknown.source.name}: {unknown.setting.unknown} is not read",) if unknown else ()
    verdict = "the architectures are not followed" if unknown else "" if found else "the build compiles no CUDA source"
    answers = []
    for gpu in question.gpus:
        parts = [headers.part(unit, files, gpu, str(cuda or FOR_GB10)) for unit, files in sources.items()]
        unread = Observation(Axis.READ, Level.NONE, verdict, why)
        answers.append(Answer.of(gpu, *([unread] if verdict else _observed(gpu, parts, cuda, question))))
    return ProjectReport(str(path), len(headers.texts), rows, dict(kinds), (), tuple(answers))


def _observed(gpu: Arch, parts: Sequence[Part], cuda: Version | None, question: Question) -> Iterator[Observation]:
    """Yield what the units of a build come to for a GPU."""
    targets = [arch for part in parts for arch in (*part.setting.code, *part.setting.ptx)]
    if cuda and (stops := refused(cuda, targets)):
        yield Observation(Axis.TOOLS, Level.RED, "nothing is compiled", (stops,))
    loading = [part for part in parts if nearest(gpu, part.setting.code, part.setting.ptx)]
    how = f"{gpu} loads a target of {len(loading)} of {counted(len(parts), 'CUDA source')}"
    having = [part for part in parts if part.files]
    judged = [part for part in having if part in loading]
    names = {part.setting.place for part in judged}
    without = [part.setting.place for part in having if part.setting.place not in names]
    why = f"{counted(len(without), 'source')} with FP4 statements, as {''.join(without[:1])}, have no such target"
    todo = build_for(gpu, question)
    if not loading:
        evidence = (how, f"they are compiled for {parts[0].setting.value}")
        yield Observation(Axis.LOADS, Level.RED, "nothing loads", evidence, todo)
    elif not having:
        yield Observation(Axis.READ, Level.NONE, "no FP4 statement is in the sources or their headers", (how,))
    elif not judged:
        yield Observation(Axis.CONVERTS, Level.RED, "FP4 code that it has is for other GPUs", (how, why), todo)
    else:
        yield from of_parts(gpu, judged, how, question)
        if without:
            yield Observation(Axis.LOADS, Level.YELLOW, why)
