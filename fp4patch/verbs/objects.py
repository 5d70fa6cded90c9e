"""``fp4patch objects``: of a configured build, the object files that a patch or a conversion to E2M1 reaches.

Before anything is compiled: the commands are those that CMake made (``CMAKE_EXPORT_COMPILE_COMMANDS``), and what a
source includes is read from the tree. So a build that would lose the suffix is told in seconds, and the object files
worth compiling first are known by name.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.errors import Refused, UsageError
from fp4patch.model.arch import Arch
from fp4patch.model.objects import ObjectFile
from fp4patch.model.problem import Problem
from fp4patch.patching.asm import scan
from fp4patch.patching.cxx import lex
from fp4patch.patching.lex_error import LexError
from fp4patch.patching.transaction import OnWait, Transaction

COMMANDS = "compile_commands.json"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
# `-gencode arch=compute_121a,code=sm_121a`, `--generate-code=arch=compute_90,code=[compute_90,sm_90]`.
_GENCODE = re.compile(r"code=(\[[^\]]*\]|\S+)")
_SM = re.compile(r"sm_\d+[af]?")
_ARCH = re.compile(r"(?:^|\s)-arch[= ](sm_\d+[af]?)(?=\s|$)")
_SOURCES = frozenset({".cu", ".cuh", ".h", ".hpp", ".inl", ".cpp", ".cc"})


def objects(build: Path, trees: Sequence[Path], *, on_wait: OnWait) -> tuple[ObjectFile, ...]:
    """The object files of the build in ``build`` that see what is patched in these trees, or what converts there.

    Raises Refused where the build has no compile commands, or none for a file of these trees.
    """
    commands = _commands(build)
    identified = identify_all(trees, load())
    with Transaction([tree.root for tree in identified], on_wait) as tx:
        patched = {
            tree.root / path for tree in identified if (receipt := tx.receipt(tree.root)) for path in receipt.files
        }
    roots = [tree.root for tree in identified]
    converting = {path for root in roots for path in _sources(root) if _converts(path)}
    marked = {path for path in patched if path.suffix in _SOURCES} | converting
    includes: dict[Path, tuple[str, ...]] = {}
    found = []
    with _understood(build / COMMANDS):
        ours = [entry for entry in commands if any(_file(entry).is_relative_to(root) for root in roots)]
        for entry in ours:
            source, command = _file(entry), _command(entry)
            seen = sorted(_reached(source, _folders(command, Path(entry["directory"])), roots, includes) & marked)
            if seen and source.suffix == ".cu":
                root = next(root for root in roots if source.is_relative_to(root))
                found.append(
                    ObjectFile(
                        name=_output(entry, command, build),
                        source=source.relative_to(root).as_posix(),
                        architectures=architectures(command),
                        converts=any(path in converting for path in seen),
                        sees=tuple(_short(path, roots) for path in seen),
                    )
                )
    if not ours:
        raise Refused(
            f"no command in {build / COMMANDS} compiles a file of {', '.join(map(str, roots))}",
            help="name the tree that this build was configured from",
        )
    return tuple(sorted(found, key=lambda one: one.name))


def gpus(text: str) -> tuple[Arch, ...]:
    """``sm_120,sm_121``; UsageError if one of them is no architecture."""
    try:
        return tuple(Arch.parse(name) for name in text.split(","))
    except ValueError as error:
        raise UsageError(str(error), help="for example --for sm_121") from error


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
            "this build would not have its FP4 conversions where they are asked for",
            problems=problems,
            help="build for 12.1a and 12.0a (TORCH_CUDA_ARCH_LIST) with the variant's patches applied",
        )


def architectures(command: str) -> tuple[Arch, ...]:
    """What a command line of nvcc asks for machine code for; PTX is left out."""
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
    """The target's name; CMake states it since 3.20, and the command's own ``-o`` says it else."""
    if "output" in entry:
        path = Path(entry["output"])
        return path.relative_to(build.resolve()).as_posix() if path.is_absolute() else path.as_posix()
    words = shlex.split(command)
    return words[words.index("-o") + 1]


def _folders(command: str, directory: Path) -> list[Path]:
    words = shlex.split(command)
    named = [word[2:] or following for word, following in zip(words, [*words[1:], ""], strict=True) if word[:2] == "-I"]
    named += [following for word, following in pairwise(words) if word == "-isystem"]
    return [(directory / name).resolve() for name in named]


# --- the tree's text -------------------------------------------------------------------------------------------------


def _sources(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.suffix in _SOURCES and path.is_file())


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
    """The files of the trees that a source includes, itself among them, whatever the preprocessor would skip."""
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
