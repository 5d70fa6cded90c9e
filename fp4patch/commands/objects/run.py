"""Object files of a configured build that a patch affects or that convert to E2M1: ``fp4patch objects``.

Before anything is compiled: the commands are those that CMake made (``CMAKE_EXPORT_COMPILE_COMMANDS``), and what a
source includes is read from the tree. So a build that would lose the suffix is detected in seconds, and the object
files worth compiling first are known by name.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from fp4patch.binaries.report import LoadOutcome
from fp4patch.binaries.scan import examine
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.commands.objects.result import ObjectFile
from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError, Refused
from fp4patch.core.problem import Problem
from fp4patch.core.tree_path import CXX
from fp4patch.edits.asm import scan
from fp4patch.edits.cxx import lex
from fp4patch.edits.lex_error import LexError
from fp4patch.tree.locked import reading
from fp4patch.tree.transaction import OnWait

COMMANDS = "compile_commands.json"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
_QUOTED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# `-gencode arch=compute_121a,code=sm_121a`, `--generate-code=arch=compute_90,code=[compute_90,sm_90]`.
_GENCODE = re.compile(r"code=(\[[^\]]*\]|\S+)")
_SM = re.compile(r"sm_\d+[af]?")
_ARCH = re.compile(r"(?:^|\s)-arch[= ](sm_\d+[af]?)(?=\s|$)")


def objects(
    build: Path, trees: Sequence[Path], asked: Sequence[Arch] = (), *, on_wait: OnWait
) -> tuple[ObjectFile, ...]:
    """Return the object files of a build that see what is patched in these trees, or what converts there.

    Those that are compiled already are looked into, for the GPUs ``asked``.

    Raises Refused where the build has no compile commands, or none for a file of these trees.
    """
    commands = _commands(build)
    identified = identify_all(trees, load())
    with reading(identified, on_wait) as locked:
        patched = {tree.root / path for tree in locked for path in tree.on_record}
    roots = [tree.root for tree in identified]
    files = (path for root in roots for path in root.rglob("*"))
    converting = {path for path in files if path.suffix in CXX and path.is_file() and _converts(path)}
    marked = {path for path in patched if path.suffix in CXX} | converting
    includes: dict[Path, tuple[str, ...]] = {}
    found = []
    with _understood(build / COMMANDS):
        ours = [entry for entry in commands if any(_file(entry).is_relative_to(root) for root in roots)]
        for entry in ours:
            source, command = _file(entry), _command(entry)
            seen = sorted(_reached(source, _folders(command, Path(entry["directory"])), roots, includes) & marked)
            if seen and source.suffix == ".cu":
                root = next(root for root in roots if source.is_relative_to(root))
                name = _output(entry, command, build)
                found.append(
                    ObjectFile(
                        name=name,
                        source=source.relative_to(root).as_posix(),
                        architectures=architectures(command),
                        converts=any(path in converting for path in seen),
                        sees=tuple(_short(path, roots) for path in seen),
                        itself=any(path in converting and path.is_relative_to(root) for path in seen),
                        outcomes=_outcomes(build, name, asked),
                    )
                )
    if not ours:
        raise Refused(
            f"no command in {build / COMMANDS} compiles a file of {', '.join(map(str, roots))}",
            help="name the tree that this build was configured from",
        )
    return tuple(sorted(found, key=lambda one: one.name))


def check(found: Sequence[ObjectFile], asked: Sequence[Arch]) -> None:
    """Refused, with every object file whose conversions would not run on one of these GPUs."""
    problems = [
        Problem(
            f"{one.source} compiled for a target with a suffix that {gpu} loads",
            f"machine code for {', '.join(map(str, one.architectures)) or 'no architecture'}",
        )
        for one in found
        for gpu in one.missed(asked)
    ]
    if not any(one.converts for one in found):
        problems.append(Problem("object files that convert to E2M1", "none: this build leaves the FP4 kernels out"))
    if problems:
        raise Refused(
            "this build would not have its FP4 conversions on the requested GPUs",
            problems=problems,
            help="build for 12.1a and 12.0a (TORCH_CUDA_ARCH_LIST) with the variant's patches applied",
        )


def check_includes(build: Path) -> None:
    """Refused, with every file that a source of the build includes in quotes and that no directory of its command has.

    A build that does not have one stops there, maybe after hours. Headers in angle brackets may be the compiler's own,
    and files that only an ``-isystem`` directory has are not read.
    """
    problems: dict[str, Problem] = {}
    done: set[tuple[Path, tuple[Path, ...]]] = set()
    with _understood(build / COMMANDS):
        entries = [(entry, _command(entry), Path(entry["directory"])) for entry in _commands(build)]
        system = {folder for _, command, directory in entries for folder in _folders(command, directory, ("-isystem",))}
        for entry, command, directory in entries:
            own = tuple(f for f in _folders(command, directory, ("-I", "-iquote")) if f not in system)
            pending = [_file(entry)]
            while pending:
                path = pending.pop()
                if (path, own) in done:
                    continue
                done.add((path, own))
                text = path.read_text(encoding="utf-8", errors="replace")
                pending += _existing(_INCLUDE.findall(text), [path.parent, *own])
                for name in _QUOTED.findall(text):
                    if name not in problems and not _existing([name], [path.parent, *own, *system]):
                        absent = ", ".join(str(folder) for folder in own if not folder.is_dir())
                        because = f"; of the directories named, there is no {absent}" if absent else ""
                        problems[name] = Problem(f"{name}, which {path} includes", f"no such file{because}")
    if problems:
        raise Refused(
            "this build would stop: sources include files that are not there",
            problems=list(problems.values()),
            help="a tree is not whole: archives of the package index hold CUTLASS's include and tools/util alone; "
            "name a clone of the release",
        )


def architectures(command: str) -> tuple[Arch, ...]:
    """Return the architectures for which a command line of nvcc requests machine code; PTX is left out."""
    named = [name for code in _GENCODE.findall(command) for name in _SM.findall(code)] + _ARCH.findall(command)
    return tuple(Arch.parse(name) for name in dict.fromkeys(named))


# --- the build's commands --------------------------------------------------------------------------------------------


def _commands(build: Path) -> list[dict[str, Any]]:
    path = build / COMMANDS
    try:
        return list(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise Refused(
            f"{build} has no {COMMANDS}", help="configure it with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
        ) from None
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}", help="configure the build again") from error


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """Refused where a command is not one of CMake's, or compiles what is not there."""
    try:
        yield
    except OSError as error:
        raise Refused(f"a source of {path} cannot be read: {error}", help="configure the build again") from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Refused(
            f"{path} holds a command that is not understood: {error!r}", help="configure the build again"
        ) from error


def _file(entry: Mapping[str, Any]) -> Path:
    return Path(str(entry["directory"]), str(entry["file"])).resolve()


def _command(entry: Mapping[str, Any]) -> str:
    return str(entry["command"]) if "command" in entry else shlex.join(entry["arguments"])


def _output(entry: Mapping[str, Any], command: str, build: Path) -> str:
    """Return the target's name; CMake states it since 3.20; else it comes from the command's own ``-o``."""
    if "output" in entry:
        path = Path(entry["output"])
        return path.relative_to(build.resolve()).as_posix() if path.is_absolute() else path.as_posix()
    words = shlex.split(command)
    return words[words.index("-o") + 1]


def _folders(command: str, directory: Path, options: Sequence[str] = ("-I", "-iquote", "-isystem")) -> list[Path]:
    """Return the directories that these options name, as one word or as two."""
    named = []
    for word, following in pairwise([*shlex.split(command), ""]):
        option = next((option for option in options if word.startswith(option)), None)
        if option:
            named.append(word.removeprefix(option) or following)
    return [(directory / name).resolve() for name in named]


def _outcomes(build: Path, name: str, asked: Sequence[Arch]) -> dict[Arch, frozenset[LoadOutcome]]:
    """Return the outcomes of each GPU in an object file; empty if it is missing, damaged or older than its command."""
    path = build / name
    try:
        if not asked or path.stat().st_mtime < (build / COMMANDS).stat().st_mtime:
            return {}
        (file,) = examine(path, gpus=asked).files
    except (OSError, BinaryError, ValueError):  # a value: it has no device code
        return {}
    rows = file.loading
    return {gpu: frozenset(row.outcome for row in rows if row.gpu == gpu) for gpu in asked}


# --- the tree's text -------------------------------------------------------------------------------------------------


def _converts(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    if "e2m1x" not in text:
        return False
    try:
        return bool(scan(lex(text)).encodes)
    except LexError:  # it is not known that it does not
        return True


def _reached(
    source: Path, folders: Sequence[Path], roots: Sequence[Path], includes: dict[Path, tuple[str, ...]]
) -> set[Path]:
    """Return the files of the trees that a source includes, itself among them, whatever the preprocessor would skip."""
    found: set[Path] = set()
    pending = [source]
    inside = [folder for folder in folders if any(folder.is_relative_to(root) for root in roots)]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        if path not in includes:
            includes[path] = tuple(_INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))
        pending += _existing(includes[path], [path.parent, *inside])
    return found


def _existing(names: Iterable[str], folders: Sequence[Path]) -> list[Path]:
    places = ((folder / name for folder in folders) for name in names)
    return [found.resolve() for place in places if (found := next((p for p in place if p.is_file()), None))]


def _short(path: Path, roots: Sequence[Path]) -> str:
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return path.relative_to(root).as_posix() if root else str(path)
