"""Results of vLLM's build for an arch list, by running the tree's own CMake functions.

The whole CMakeLists.txt is evaluated by ``cmake -P``, with the tree's own functions, up to its end.
Commands that need a compiler, a network or a build directory, and the usual ones that write, are replaced: they do
nothing, or record (stand_ins.cmake). That makes a tree evaluable without a build. What the tree's CMake does beside
that is confined by the kernel (core/sandbox.py).

PyTorch's part, from TORCH_CUDA_ARCH_LIST to the ``-gencode`` flags in CMAKE_CUDA_FLAGS, is done here: ``12.1a`` is
compute_121a and sm_121a. PyTorch releases whose select_compute_arch.cmake does not support ``f`` stop at ``12.1f``
before any of this.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from packaging.version import Version

from fp4patch.adapters.kept import KeptResults
from fp4patch.adapters.result import ON_AARCH64, BuildRow, JitTargets, Parts
from fp4patch.catalog.target import Build
from fp4patch.core import process
from fp4patch.core.arch import GB10, GPUS, Arch, Reach, made_by
from fp4patch.core.cuda import refused
from fp4patch.core.errors import ToolchainError
from fp4patch.core.lex_error import LexError
from fp4patch.core.process import processors
from fp4patch.core.wording import install
from fp4patch.cxx.shape import functions
from fp4patch.cxx.tokens import Kind, lex

REMEDY = f"{install('doctor')}, or put a newer cmake on PATH"
TIMEOUT = 120
"""Seconds; a run takes about a tenth of one."""
_DETECTED = {gpu: "12.1(2.0)" if gpu == GB10 else gpu.torch for gpu in GPUS}
"""What PyTorch makes of a detected GPU."""
_PROCESSORS = {"x86_64": "", "aarch64": ON_AARCH64}
"""Processors of hosts, GB10's the second, each with what stands before the names of its targets and sources. A build
that does not ask for the processor is evaluated for the first alone."""


_Source = tuple[list[tuple[str, str]], set[str]]


def _read(file: Path) -> _Source:
    """Return the functions that a source declares, each after a macro around it, and those that it defines."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""  # the build may generate it
    return _functions(text)


@lru_cache(1024)
def _functions(text: str) -> _Source:
    """Return the functions of a source's text, which the sides of a comparison and mutants of the build share."""
    try:
        source = lex(text)
        found = list(functions(source))
        conditionals = source.conditionals
    except LexError:
        return [], set()  # the compiler reports it
    declared = [
        (token.text, function.name)
        for function in found
        if not function.is_definition
        for conditional in conditionals
        for branch in conditional.branches
        if branch.opening.end <= function.offset < branch.end
        for token in branch.condition
        if token.kind is Kind.NAME
    ]
    return declared, {function.name for function in found if function.is_definition}


def _undefined(root: Path, parts: Parts, read: Callable[[Path], _Source]) -> str:
    """Return what an extension calls under a macro of its build, and none of its sources defines; else nothing.

    Such a library is built and cannot be imported.
    """
    for name in (name for name, what in parts if what == "source"):
        macros = {value.partition("=")[0] for value in parts.get((name, "definition"), ())}
        sources = {source: read(root / source) for source in parts[name, "source"] if source.endswith((".cu", ".cpp"))}
        defined = set[str]().union(*(own for _, own in sources.values()))
        for source, (declared, _) in sources.items():
            lost = (f"{symbol} under {m}" for m, symbol in declared if m in macros and symbol not in defined)
            if called := next(lost, ""):
                return f"{name} cannot be imported: {source} calls {called}, and no source has it"
    return ""


def evaluate(
    root: Path,
    build: Build,
    questions: Sequence[tuple[str, str]],
    *,
    traced: Collection[str] = (),
    kept: KeptResults | None = None,
) -> tuple[BuildRow, ...]:
    """Return the result of the tree's build for each CUDA release and arch list."""
    read = cache(_read)
    lists = dict.fromkeys((cuda, a) for cuda, asked in questions for a in ([asked] if asked else _DETECTED.values()))
    with ThreadPoolExecutor(processors()) as pool:
        made = pool.map(lambda one: _of_list(root, build, one, read, traced, kept), lists)
        rows = dict(zip(lists, made, strict=True))
    on = {cuda: {gpu: rows[cuda, a] for gpu, a in _DETECTED.items()} for cuda, asked in questions if not asked}
    return tuple(rows[cuda, asked] if asked else _detected(on[cuda]) for cuda, asked in questions)


def _detected(rows: Mapping[Arch, BuildRow]) -> BuildRow:
    """Return the result where no list is set: PyTorch detects the GPU of each machine."""
    if lost := next((row for row in rows.values() if row.error), None):
        return replace(lost, asked="")
    cuda, kernels = rows[GB10].cuda, {arch for row in rows.values() for arch in row.kernels}
    reaches = {gpu: Reach.NOTHING if row.lacks else row.reaches[gpu] for gpu, row in rows.items()}
    on = {gpu: JitTargets({"kernels": row.kernels}, row.stops or row.lacks) for gpu, row in rows.items()}
    return BuildRow(cuda, "", tuple(sorted(kernels)), on=on, reaches=reaches)


def _of_list(
    root: Path,
    build: Build,
    question: tuple[str, str],
    read: Callable[[Path], _Source],
    traced: Collection[str],
    kept: KeptResults | None,
) -> BuildRow:
    cuda, asked = question
    name = (*question, cmake_identity(), *sorted(traced))
    made = kept.row(*name) if kept else None
    if made is None:
        with tempfile.TemporaryDirectory(prefix="fp4patch-") as scratch:
            made = configure(root, cuda, asked, Path(scratch), traced=traced)
        if kept:
            kept.put_row(made, *name)
    requested = [arch.torch for arch in Arch.parse_list(asked, ptx=True)]
    archs = requested if made.error else {arch for archs in made.code.values() for arch in archs}
    nothing = dict.fromkeys(GPUS, Reach.NOTHING)
    if stops := refused(Version(cuda), map(Arch.parse, sorted(archs))):
        return replace(made, stops=stops, error="", reaches=nothing)
    row = replace(made, lacks=_undefined(root, made.parts, read)).of(build.kernels, build)
    return row if row.reaches else replace(row, reaches=nothing)


def cmake_identity() -> str:
    """Return what tells this machine's cmake from another one."""
    program = cmake()
    if program is None or not Path(program).is_file():
        return ""
    found = Path(program).stat()
    return f"{program} {found.st_size} {found.st_mtime_ns}"


def cmake() -> str | None:
    """Return the cmake on this machine: the package index's, or the system's; None if there is none."""
    try:
        import cmake as wheel  # noqa: PLC0415 - optional: users need it for this question alone
    except ImportError:
        return shutil.which("cmake")
    return str(Path(wheel.CMAKE_BIN_DIR) / "cmake")


def gencode(arch_list: str) -> str:
    """PyTorch's flags for TORCH_CUDA_ARCH_LIST, whose separators are semicolons or spaces; ``+PTX`` adds PTX.

    ``12.1(2.0)`` is compute_20 and sm_121. Without the variable PyTorch makes this of a detected 12.1.
    """
    flags = []
    for arch in re.split(r"[;\s]+", arch_list.strip()):
        number, _, virtual = arch.removesuffix("+PTX").replace(".", "").rstrip(")").partition("(")
        flags.append(f"-gencode arch=compute_{virtual or number},code=sm_{number}")
        if arch.endswith("+PTX"):
            flags.append(f"-gencode arch=compute_{number},code=compute_{number}")
    return " ".join(flags)


def configure(tree: Path, cuda: str, arch_list: str, scratch: Path, *, traced: Collection[str] = ()) -> BuildRow:
    """Evaluate the tree's CMakeLists.txt for a CUDA release and a TORCH_CUDA_ARCH_LIST; ``scratch`` is a directory.
    ``traced``: files of which CMake writes which commands it executes.

    Raises ToolchainError where this machine's cmake is missing, does not run, or is too old for the tree.
    """
    program = cmake()
    if program is None:
        raise ToolchainError("there is no cmake", help=REMEDY)
    record, script = scratch / "record", scratch / "build.cmake"
    cutlass = scratch / "cutlass-include"
    (cutlass / "cutlass").mkdir(parents=True, exist_ok=True)
    (cutlass / "cutlass" / "cutlass.h").touch()
    settings = {
        "RUN_RECORD": record,
        "RUN_CUDA": cuda,
        "CMAKE_CUDA_COMPILER_VERSION": cuda,
        "RUN_FLAGS": gencode(arch_list),
        "VLLM_TARGET_DEVICE": "cuda",
        "VLLM_PYTHON_EXECUTABLE": "/bin/sh",
        "CMAKE_SOURCE_DIR": tree,
        "CMAKE_CURRENT_SOURCE_DIR": tree,
        "CMAKE_CURRENT_BINARY_DIR": scratch,
        "CMAKE_BINARY_DIR": scratch,
        "CUTLASS_INCLUDE_DIR": cutlass,
        "NVCC_EXECUTABLE": "nvcc",
    }
    stand_ins = resources.files(__package__).joinpath("stand_ins.cmake").read_text(encoding="utf-8")
    lines = [f"set({key} {_quoted(str(value))})" for key, value in settings.items()]
    lines += [stand_ins, f"_include({_quoted(f'{tree}/CMakeLists.txt')})", "_record_variables()"]
    script.write_text("\n".join([*lines, ""]))
    paths = {str(scratch): "build", str(tree.resolve()): "tree", str(tree): "tree"}
    row = BuildRow(cuda, arch_list, ())
    trace = scratch / "trace"
    options = [f"--trace-source={name}" for name in sorted({Path(path).name for path in traced})]
    options += ["--trace-format=json-v1", f"--trace-redirect={trace}"] if traced else []
    for processor, prefix in _PROCESSORS.items():
        record.write_text("")
        try:
            command: list[str | Path] = [program, *options, f"-DRUN_PROCESSOR={processor}", "-P", script]
            done = process.run_confined(command, scratch, limit=TIMEOUT, folder=tree)
        except TimeoutError as error:
            return BuildRow(cuda, arch_list, (), error=f"cmake {error.strerror}")
        except OSError as error:
            raise ToolchainError(f"{program} {error.strerror}", help=REMEDY) from error
        told = record.read_text(encoding="utf-8", errors="replace")
        row = _recorded(row, told, paths, prefix)
        row = replace(row, ran=_ran(tree, trace, row.ran), reads=row.reads | _reads(tree, told))
        if done.status:
            _blame_cmake(program, told, done.err)
            return replace(row, error=_reason(done.err))
        if "\nprocessor\n" not in told:
            break
    return row


# Example: "file":"/tree/CMakeLists.txt","frame":1,"line":7
_TRACED = re.compile(r'"file":"([^"\\]*)",.*?"line":(\d+)')


def _ran(tree: Path, trace: Path, before: Mapping[str, frozenset[int]]) -> Mapping[str, frozenset[int]]:
    """Return the lines at which a command of the tree's began that CMake executed, and those of another run."""
    found = {path: set(lines) for path, lines in before.items()}
    for file, line in set(
        _TRACED.findall(trace.read_text(encoding="utf-8", errors="replace")) if trace.is_file() else ()
    ):
        if Path(file).is_relative_to(tree):
            found.setdefault(Path(file).relative_to(tree).as_posix(), set()).add(int(line))
    return {path: frozenset(lines) for path, lines in found.items()}


def _reads(tree: Path, record: str) -> frozenset[str]:
    """Return the files of a tree that its CMake read as data."""
    named = (Path(tree, line.removeprefix("reads ")) for line in record.splitlines() if line.startswith("reads "))
    return frozenset(path.relative_to(tree).as_posix() for path in named if path.is_relative_to(tree))


def _blame_cmake(program: str, record: str, said: str) -> None:
    """Raise ToolchainError where an evaluation failed for this machine's CMake, and not for the tree."""
    own = re.search(r"^cmake (.*)$", record, re.MULTILINE)
    wanted = re.search(r"^wants (.*)$", record, re.MULTILINE)
    if own is None:
        words = said.strip().splitlines() or ["no output"]
        raise ToolchainError(f"{program} does not run: {words[0]}", help=REMEDY)
    if wanted:
        why = f"CMake {own[1]}, which is too old for this tree; {wanted[1]} is needed"
        raise ToolchainError(f"{program} is {why}", help=REMEDY)


def _reason(said: str) -> str:
    """Return the first error in CMake's words, in one line, without the place."""
    # Example: CMake Error at CMakeLists.txt:9 (message):\n  no CUDA\n\n
    found = re.search(r"^CMake Error[^\n]*\n+(.*?)(?:\n\s*\n|^Call Stack|\Z)", said, re.DOTALL | re.MULTILINE)
    return " ".join((found[1] if found else said).split())


def _quoted(value: str) -> str:
    """Return a CMake argument that is taken as it is: a path may hold anything."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def _recorded(row: BuildRow, record: str, paths: Mapping[str, str], prefix: str) -> BuildRow:
    """Return the row with what a record has too, under names with the prefix. In values, each of ``paths`` is replaced:
    both sides of a comparison have their own."""
    code: dict[str, dict[str, set[str]]] = {"sm": {}, "compute": {}}
    parts: dict[tuple[str, str], set[str]] = {}
    for line in record.splitlines():
        kind, _, rest = line.partition(" ")
        if kind != "call":
            continue
        command, _, listed = rest.partition(" ")
        for name, what, value in _parts(command, listed.split(";")):
            subject = prefix + name
            for virtual, target, kind_of_code in _GENCODE.findall(value):
                arch = made_by(virtual, target) or Arch.parse(target)
                code[kind_of_code].setdefault(subject, set()).add(arch.torch)
            other = " ".join(_GENCODE.sub("", value).split())
            for path, stands_for in paths.items():
                other = other.replace(path, stands_for)
            if other and not _ARCHS.fullmatch(other):
                parts.setdefault((subject, what), set()).add(other)
    made, ptx = ({source: tuple(sorted(archs)) for source, archs in code[kind].items()} for kind in ("sm", "compute"))
    of_build = {key: tuple(sorted(values)) for key, values in parts.items()}
    missing = {prefix + source: () for source in row.code}  # of this processor's build, unless they are made
    return replace(row, code=row.code | missing | made, ptx=row.ptx | ptx, parts={**row.parts, **of_build})


# Example: -gencode arch=compute_120f,code=sm_120f
_GENCODE = re.compile(r"-gencode[ =]arch=compute_(\d+[af]?),code=((sm|compute)_\d+[af]?)")
# Example: 8.0,9.0a+PTX
_ARCHS = re.compile(r"\d+\.\d[af]?(\+PTX)?(,\d+\.\d[af]?(\+PTX)?)*")
"""A list of architectures, which a generator of kernels gets."""
_SCOPES = frozenset(("PRIVATE", "PUBLIC", "INTERFACE", "APPEND", "PROPERTY", "PROPERTIES", "MODULE", "BEFORE", "AFTER"))
_WHAT = {
    **dict.fromkeys(("Python_add_library", "add_library", "add_executable", "target_sources"), "source"),
    **dict.fromkeys(("target_compile_definitions", "add_compile_definitions", "add_definitions"), "definition"),
    **dict.fromkeys(("target_compile_options", "add_compile_options"), "option"),
    **dict.fromkeys(("target_link_libraries", "link_libraries"), "library"),
}
"""Names of what a command gives a target; of other commands their own."""
_PROPERTIES = ("set_property", "set_source_files_properties", "set_target_properties")
# Example: add_definitions
_OF_DIRECTORY = re.compile(r"add_(compile|link)_|add_definitions|include_dir|link_|set_directory")


def _parts(command: str, arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield target or source, kind and value of each thing that a command adds to the build."""
    what = _WHAT.get(command, command)
    if command in _PROPERTIES:
        if command == "set_property":
            arguments = arguments[1:]
        at = next((n for n, word in enumerate(arguments) if word in _SCOPES), len(arguments))
        of_them = " ".join(value for value in arguments[at:] if value not in _SCOPES)
        yield from ((subject, "property", of_them) for subject in arguments[:at])
        return
    subject, values = ("", arguments) if _OF_DIRECTORY.match(command) else (arguments[0], arguments[1:])
    for value in values:
        # Example: $<$<COMPILE_LANGUAGE:CUDA>:-DENABLE_NVFP4_SM120=1>
        if macro := re.fullmatch(r"(\$<\$<COMPILE_LANGUAGE:CUDA>:)?-D(.*?)>?", value):
            yield subject, "definition", macro[2]
        elif value and value not in _SCOPES:
            yield subject, what, value
