"""Results of vLLM's build for an arch list, by running the tree's own CMake functions.

The whole CMakeLists.txt is evaluated by ``cmake -P``, with the tree's own functions, up to its end.
Commands that need a compiler, a network or a build directory, and the usual ones that write, are replaced: they do
nothing, or record (stand_ins.cmake). That makes a tree evaluable without a build. It is not a protection: the tree's
CMake runs as a build would run it, and can start processes and write files.

PyTorch's part, from TORCH_CUDA_ARCH_LIST to the ``-gencode`` flags in CMAKE_CUDA_FLAGS, is done here: ``12.1a`` is
compute_121a and sm_121a. PyTorch releases whose select_compute_arch.cmake does not support ``f`` stop at ``12.1f``
before any of this.
"""

import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from fp4patch.adapters.result import BuildRow, JitTargets
from fp4patch.catalog.target import Build
from fp4patch.core import process
from fp4patch.core.arch import GB10, GPUS, Arch, Reach, reach
from fp4patch.core.errors import ToolchainError
from fp4patch.core.extra import install
from fp4patch.core.process import processors

READS = "CMakeLists.txt"

INSTALL = install("doctor")
TIMEOUT = 120
"""Seconds; a run takes about a tenth of one."""
_DETECTED = {GB10: "12.1(2.0)"}
"""What PyTorch 2.11 and before make of a detected GPU; of others its capability."""
_FROM_LEAST = (Reach.NOTHING, Reach.PTX, Reach.BARE, Reach.SUFFIXED)


@dataclass(frozen=True)
class EvaluatedBuild:
    """Result of one configuration of the tree. Architectures as in TORCH_CUDA_ARCH_LIST, sorted."""

    everywhere: tuple[str, ...]
    """The global CUDA_ARCHS: what sources without a list of their own are compiled for."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For each .cu file the GPU code in it (``sm_…``)."""
    ptx: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For each .cu file the PTX in it (``compute_…``)."""
    error: str = ""
    """The tree's own fatal error, if it stopped."""
    libraries: dict[str, tuple[tuple[str, ...], frozenset[str]]] = field(default_factory=dict)
    """For each extension its sources, and the macros that the build defines for them."""

    def of(self, pattern: str) -> tuple[str, ...]:
        """Return the architectures of the sources whose path matches; all of those must agree."""
        found = {archs for source, archs in self.sources.items() if re.search(pattern, source)}
        assert len(found) <= 1, f"{pattern}: {found}"
        return found.pop() if found else ()


def evaluate(root: Path, build: Build, questions: Sequence[tuple[str, str]]) -> tuple[BuildRow, ...]:
    """Return the result of the tree's build for each CUDA release and arch list."""
    with ThreadPoolExecutor(processors()) as pool:
        return tuple(pool.map(lambda question: _row(root, build, *question), questions))


def _row(root: Path, build: Build, cuda: str, asked: str) -> BuildRow:
    if asked:
        return _of_list(root, build, cuda, asked)
    # Not set: PyTorch detects the machine's GPU.
    rows = {gpu: _of_list(root, build, cuda, _DETECTED.get(gpu, gpu.torch)) for gpu in GPUS}
    on = {
        gpu: JitTargets({"kernels": row.kernels}, row.stops or row.lacks) for gpu, row in rows.items() if not row.error
    }
    kernels = sorted({arch for row in rows.values() for arch in row.kernels})
    error = next((row.error for row in rows.values() if row.error), "")
    reaches = {g: Reach.NOTHING if row.lacks else row.reaches[g] for g, row in rows.items() if g in row.reaches}
    return BuildRow(cuda, asked, tuple(kernels), on={} if error else on, reaches=reaches, error=error)


def _of_list(root: Path, build: Build, cuda: str, asked: str) -> BuildRow:
    with tempfile.TemporaryDirectory(prefix="fp4patch-") as scratch:
        made = configure(root, cuda, asked, Path(scratch))
    chosen = [source for source in made.sources if re.search(build.kernels, source)]
    kernels = [set(made.sources[source]) for source in chosen]
    # A GPU is supported as its least supported kernel is, each by whichever of the kernel's targets it loads.
    support = {gpu: {_support(made, source, gpu, build) for source in chosen} for gpu in GPUS if chosen}
    reaches = {gpu: min(found, key=_FROM_LEAST.index) for gpu, found in support.items()}
    common = set.intersection(*kernels) if kernels else set[str]()
    some = set[str]().union(*kernels) - common
    targets = tuple(sorted(common)), tuple(sorted(some))
    row = BuildRow(cuda, asked, *targets, code=made.sources, ptx=made.ptx, reaches=reaches, error=made.error)
    requested = [arch.torch for arch in Arch.parse_list(asked, ptx=True)]
    row = replace(row, lacks=undefined(root, made))
    return row.reached(requested if made.error else {*common, *(a for archs in made.sources.values() for a in archs)})


def _support(made: EvaluatedBuild, source: str, gpu: Arch, build: Build) -> Reach:
    found = reach(map(Arch.parse, made.sources[source]), gpu)
    if build.converts:
        return found
    if found is Reach.BARE:
        return Reach.SUFFIXED
    compiled = any(Arch.parse(arch).compiles_on(gpu) for arch in made.ptx.get(source, ()))
    return Reach.PTX if found is Reach.NOTHING and compiled else found


def undefined(root: Path, made: EvaluatedBuild) -> str:
    """Return what an extension calls under a macro of its build, and none of its sources defines; else nothing.

    Such a library is built and cannot be imported.
    """
    for name, (sources, macros) in made.libraries.items():
        texts = {source: _text(root / source) for source in sources}
        for source, text in texts.items():
            for macro in macros:
                for inside in re.findall(
                    rf"^#\s*if\b[^\n]*\b{macro}\b[^\n]*\n(.*?)^#\s*endif", text, re.MULTILINE | re.DOTALL
                ):
                    for symbol in _DECLARED.findall(inside):
                        defines = re.compile(rf"\b{symbol}\s*\([^;{{}}]*\)\s*\{{")
                        if not any(defines.search(other) for other in texts.values()):
                            what = f"{source} calls {symbol} under {macro}, and no source has it"
                            return f"{name} cannot be imported: {what}"
    return ""


_DECLARED = re.compile(r"^(?:extern\s+)?void\s+(\w+)\s*\([^;{}]*\)\s*;", re.MULTILINE)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # of a source that the build generates


def cmake() -> str | None:
    """Return the cmake on this machine: the package index's, or the system's; None if there is none."""
    try:
        import cmake as wheel  # noqa: PLC0415 - optional: users need it for this question alone
    except ImportError:
        return shutil.which("cmake")
    return str(Path(wheel.CMAKE_BIN_DIR) / "cmake")


def gencode(arch_list: str) -> str:
    """PyTorch's flags for TORCH_CUDA_ARCH_LIST, whose separators are semicolons or spaces; ``+PTX`` adds PTX.

    ``12.1(2.0)`` is compute_20 and sm_121. Without the variable PyTorch 2.11 and before make this of a detected 12.1.
    """
    flags = []
    for arch in re.split(r"[;\s]+", arch_list.strip()):
        number, _, virtual = arch.removesuffix("+PTX").replace(".", "").rstrip(")").partition("(")
        flags.append(f"-gencode arch=compute_{virtual or number},code=sm_{number}")
        if arch.endswith("+PTX"):
            flags.append(f"-gencode arch=compute_{number},code=compute_{number}")
    return " ".join(flags)


def configure(tree: Path, cuda: str, arch_list: str, scratch: Path) -> EvaluatedBuild:
    """Evaluate the tree's CMakeLists.txt for a CUDA release and a TORCH_CUDA_ARCH_LIST; ``scratch`` is a directory.

    Raises ToolchainError where this machine's cmake is missing, does not run, or is too old for the tree.
    """
    program = cmake()
    if program is None:
        raise ToolchainError("there is no cmake", help=INSTALL)
    name = re.sub(r"[^\w.]", "_", f"{cuda}-{arch_list}")
    record, script = scratch / f"{name}.record", scratch / f"{name}.cmake"
    record.unlink(missing_ok=True)
    record.touch()
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
    script.write_text("\n".join([*lines, stand_ins, f"_include({_quoted(f'{tree}/CMakeLists.txt')})", ""]))
    try:
        done = process.run([program, "-P", script], limit=TIMEOUT, folder=tree)
    except TimeoutError as error:
        return EvaluatedBuild((), error=f"cmake {error.strerror}")
    except OSError as error:
        raise ToolchainError(f"{program} {error.strerror}", help=INSTALL) from error
    told = record.read_text(encoding="utf-8", errors="replace")
    if done.status:
        _blame_cmake(program, told, done.err)
    return _read(told, _reason(done.err) if done.status else "")


_TOO_OLD = re.compile(r"is not known to this version of CMake|greater than this version|You are running version")
"""CMake's messages about a policy or a version that is newer than CMake itself."""


def _blame_cmake(program: str, record: str, said: str) -> None:
    """Raise ToolchainError where an evaluation failed for this machine's CMake, and not for the tree."""
    own = re.search(r"^cmake (.*)$", record, re.MULTILINE)
    wanted = re.search(r"^wants (.*)$", record, re.MULTILINE)
    if own is None:
        words = said.strip().splitlines() or ["no output"]
        raise ToolchainError(f"{program} does not run: {words[0]}", help=INSTALL)
    if wanted or _TOO_OLD.search(said):
        needed = f"; {wanted[1]} is needed" if wanted else ""
        raise ToolchainError(f"{program} is CMake {own[1]}, which is too old for this tree{needed}", help=INSTALL)


def _reason(said: str) -> str:
    """Return the first error in CMake's words, in one line, without the place."""
    found = re.search(r"^CMake Error[^\n]*\n+(.*?)(?:\n\s*\n|^Call Stack|\Z)", said, re.DOTALL | re.MULTILINE)
    return " ".join((found[1] if found else said).split())


def _quoted(value: str) -> str:
    """Return a CMake argument that is taken as it is: a path may hold anything."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def _read(record: str, error: str) -> EvaluatedBuild:
    everywhere: tuple[str, ...] = ()
    sources: dict[str, set[str]] = {}
    ptx: dict[str, set[str]] = {}
    libraries: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}
    for line in record.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, listed = rest.partition(" ")
        if kind == "library":
            libraries[name] = tuple(one for one in listed.split(";") if one.endswith((".cu", ".cpp"))), frozenset()
        elif kind == "options" and name in libraries:
            macros = frozenset(re.findall(r"-D(\w+)", listed))
            libraries[name] = libraries[name][0], libraries[name][1] | macros
        if kind == "global":
            everywhere = tuple(sorted(rest.split(";")))
        elif kind == "source":
            source, _, code = rest.rsplit(maxsplit=2)
            kind, _, number = code.partition("_")
            if kind in ("sm", "compute"):
                made = sources if kind == "sm" else ptx
                made.setdefault(source, set()).add(Arch.parse(number).torch)
    return EvaluatedBuild(everywhere, _sorted(sources), _sorted(ptx), error, libraries)


def _sorted(made: dict[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {source: tuple(sorted(archs)) for source, archs in made.items()}
