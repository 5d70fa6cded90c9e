"""Print the object files of a configured build that see a patch or convert to E2M1, one name per line, for ninja.

    python fp4_objects.py BUILD GPUS RECORD TREE...

BUILD was configured by CMake with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; GPUS is for example sm_120,sm_121; RECORD is the
JSON file to write. Exit 1, before anything is compiled: a conversion would not run on one of the GPUs, the build leaves
the FP4 kernels out, or a source includes a file that is not there. The commands are those that CMake made, and what a
source includes is read from the trees, whatever the preprocessor would skip.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from fp4patch.core.arch import Arch, Reach, reach, requested
from fp4patch.core.lex_error import LexError
from fp4patch.core.results import State
from fp4patch.core.tree_path import CXX
from fp4patch.cxx.tokens import lex
from fp4patch.edits.asm import scan
from fp4patch.tree.status import status

COMMANDS = "compile_commands.json"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
# `-gencode arch=compute_121a,code=sm_121a`, `--generate-code=arch=compute_90,code=[compute_90,sm_90]`, `-arch=sm_121a`.
GENCODE = re.compile(r"code=(\[[^\]]*\]|\S+)")
SM = re.compile(r"sm_\d+[af]?")
ARCH = re.compile(r"(?:^|\s)-arch[= ](sm_\d+[af]?)(?=\s|$)")


class UnfitError(Exception):
    """What is wrong with the build, one thing per line."""


@dataclass(frozen=True)
class Command:
    """One compilation of the build."""

    source: Path
    output: str
    """Name in the build: a target of ninja."""
    text: str
    directory: Path

    @property
    def architectures(self) -> tuple[Arch, ...]:
        """Architectures for which it requests machine code; PTX is left out."""
        named = [name for code in GENCODE.findall(self.text) for name in SM.findall(code)] + ARCH.findall(self.text)
        return tuple(Arch.parse(name) for name in dict.fromkeys(named))

    def folders(self, *options: str) -> list[Path]:
        """Return the directories that these options name, as one word or as two."""
        named = []
        for word, following in pairwise([*shlex.split(self.text), ""]):
            if option := next((option for option in options if word.startswith(option)), None):
                named.append(word.removeprefix(option) or following)
        return [(self.directory / name).resolve() for name in named]


@dataclass(frozen=True)
class ObjectFile:
    """One object file that includes patched code or a conversion to E2M1."""

    name: str
    source: str
    architectures: tuple[str, ...]
    converts: bool
    """True if the file, or a file that it includes, has a statement that converts to E2M1."""
    itself: bool
    """True if the statement is in a file of the source's own tree, and not only in a library's header."""
    sees: tuple[str, ...]
    """Patched or converting files that it is or includes."""

    def misses(self, gpu: Arch) -> bool:
        """Return whether its conversions would not run on a GPU.

        A source that only includes a library's header need not convert, and one that is compiled only for other
        architectures is meant for those.
        """
        archs = [Arch.parse(arch) for arch in self.architectures]
        if not self.converts:
            return False
        if of_family := [arch for arch in archs if arch.major == gpu.major]:
            return reach(of_family, gpu) is not Reach.SUFFIXED
        # FP4 instructions begin with SM100: code compiled only for such targets of another family is meant for it.
        return self.itself and not (archs and all(arch.major >= 10 and arch.suffix for arch in archs))


def commands_of(build: Path) -> list[Command]:
    """Return the compilations of a build."""
    entries = json.loads((build / COMMANDS).read_text(encoding="utf-8"))
    return [
        Command(
            source=Path(entry["directory"], entry["file"]).resolve(),
            output=Path(entry["directory"], entry["output"]).resolve().relative_to(build.resolve()).as_posix(),
            text=entry["command"],
            directory=Path(entry["directory"]),
        )
        for entry in entries
    ]


def object_files(commands: Sequence[Command], trees: Sequence[Path]) -> Iterator[ObjectFile]:
    """Yield the object files of CUDA sources in these trees that see what is patched there, or what converts there."""
    states = status(trees)
    roots = [state.root for state in states]
    patched = {state.root / file.path for state in states for file in state.files if file.state is State.APPLIED}
    converting = {path for root in roots for path in root.rglob("*") if path.suffix in CXX and converts(path)}
    marked = {path for path in patched if path.suffix in CXX} | converting
    for command in commands:
        root = next((root for root in roots if command.source.is_relative_to(root)), None)
        if root is None or command.source.suffix != ".cu":
            continue
        folders = command.folders("-I", "-iquote", "-isystem")
        inside = [folder for folder in folders if any(folder.is_relative_to(root) for root in roots)]
        if seen := sorted(reached(command.source, inside) & marked):
            yield ObjectFile(
                name=command.output,
                source=command.source.relative_to(root).as_posix(),
                architectures=tuple(map(str, command.architectures)),
                converts=any(path in converting for path in seen),
                itself=any(path in converting and path.is_relative_to(root) for path in seen),
                sees=tuple(map(str, seen)),
            )


def converts(path: Path) -> bool:
    """Return whether a file has a statement that converts to E2M1; of a text that is not understood it is assumed."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    try:
        return "e2m1x" in text and bool(scan(lex(text)).encodes)
    except LexError:
        return True


def reached(source: Path, folders: Sequence[Path]) -> set[Path]:
    """Return the files that a source includes, itself among them."""
    found: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += existing((name for _, name in includes(path)), [path.parent, *folders])
    return found


@cache
def includes(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the names that a file includes, each after the mark that opens it."""
    return tuple(INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))


def existing(names: Iterable[str], folders: Sequence[Path]) -> list[Path]:
    """Return the first file of each name in these directories."""
    places = ((folder / name for folder in folders) for name in names)
    return [found.resolve() for place in places if (found := next((p for p in place if p.is_file()), None))]


def check_conversions(files: Sequence[ObjectFile], gpus: Sequence[Arch]) -> None:
    """UnfitError, with every object file whose conversions would not run on one of these GPUs."""
    missed = [
        f"{file.source} is compiled for {', '.join(file.architectures) or 'no architecture'}, "
        f"and {gpu} loads none of these that has FP4 instructions"
        for file in files
        for gpu in gpus
        if file.misses(gpu)
    ]
    if missed:
        missed.append("build for 12.1a and 12.0a (TORCH_CUDA_ARCH_LIST), with the variant's patches applied")
        raise UnfitError("\n".join(missed))
    if not any(file.converts for file in files):
        raise UnfitError("no object file converts to E2M1: this build leaves the FP4 kernels out")


def check_includes(commands: Sequence[Command]) -> None:
    """UnfitError, with every file that a source includes in quotes and that no directory of its command has.

    The build would stop there, maybe after hours. Headers in angle brackets may be the compiler's own, and files that
    only an ``-isystem`` directory has are not read.
    """
    missing: dict[str, str] = {}
    done: set[tuple[Path, tuple[Path, ...]]] = set()
    system = {folder for command in commands for folder in command.folders("-isystem")}
    for command in commands:
        own = tuple(folder for folder in command.folders("-I", "-iquote") if folder not in system)
        pending = [command.source]
        while pending:
            path = pending.pop()
            if (path, own) in done:
                continue
            done.add((path, own))
            pending += existing((name for _, name in includes(path)), [path.parent, *own])
            for mark, name in includes(path):
                if mark == '"' and not existing([name], [path.parent, *own, *system]):
                    absent = ", ".join(str(folder) for folder in own if not folder.is_dir())
                    because = f"; of its directories, there is no {absent}" if absent else ""
                    missing.setdefault(name, f"{path} includes {name}, which is not there{because}")
    if missing:
        advice = "a tree is not whole: archives of the package index hold CUTLASS's include and tools/util alone"
        raise UnfitError("\n".join([*missing.values(), f"{advice}; name a clone of the release"]))


def main(build: Path, gpus: str, record: Path, *trees: Path) -> None:
    """Check the build, write the record, and print a table on stderr and the names on stdout."""
    commands = commands_of(build)
    files = sorted(object_files(commands, trees), key=lambda file: file.name)
    record.write_text(json.dumps([asdict(file) for file in files], indent=2) + "\n", encoding="utf-8")
    for file in files:
        row = f"{file.source}  {' '.join(file.architectures)}  {'converts' if file.converts else 'sees a patch'}"
        print(row, file=sys.stderr)
    check_includes(commands)
    check_conversions(files, requested(gpus, "for example sm_121"))
    print(*(file.name for file in files), sep="\n")


if __name__ == "__main__":
    build, gpus, record, *trees = sys.argv[1:]
    try:
        main(Path(build), gpus, Path(record), *map(Path, trees))
    except UnfitError as error:
        sys.exit(str(error))
