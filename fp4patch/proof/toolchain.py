"""Find one CUDA toolkit and one disassembler that is not older.

Order: CUDA_HOME or CUDA_PATH; the toolkit wheels in this Python (``pip install 'fp4patch[cuda]'``); ``nvcc`` on PATH;
/usr/local/cuda, where a DGX Spark has it, on PATH only in login shells. A toolkit that the user names is used or
refused, never silently ignored. The wheels come before PATH because their versions are pinned, and numbers can be
compared.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fp4patch.core import process
from fp4patch.core.cuda import RELEASE
from fp4patch.core.errors import ToolchainError
from fp4patch.core.wording import install
from fp4patch.proof.result import ToolchainInfo

INSTALL = install("cuda")
USUAL = Path("/usr/local/cuda")
_REMEDY = f"install the pinned toolkit ({INSTALL}), or name another with CUDA_HOME"

# host_config.h refuses a newer g++ than this; the limit moves with the toolkit, so it is read from that file.
_NEWEST_GCC = re.compile(r"^\s*#\s*if\s+__GNUC__\s*>\s*(\d+)", re.MULTILINE)

# The only environment variables that a compiler gets. Others can change the result unnoticed:
# NVCC_APPEND_FLAGS, CPATH, and every variable of nvcc.profile, which nvcc takes from the environment: INCLUDES,
# PTXAS_FLAGS and others.
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")

_WHAT_COMPILES = ("bin/nvcc", "bin/nvcc.profile", "bin/cudafe++", "bin/ptxas", "nvvm/bin/cicc")
_BEGINNING = 1 << 16  # bytes: a whole script, and enough of a program to identify it together with its size


@dataclass(frozen=True)
class Toolchain:
    """A compiler and a disassembler, one root each, that were checked to work together."""

    root: Path
    nvcc: Path
    host_compiler: Path
    nvdisasm: Path
    flags: tuple[str, ...]
    """Flags of every nvcc command line: the host compiler, and ``-L`` if the toolkit's profile is wrong."""
    environ: Mapping[str, str]
    """The environment to compile in."""
    fingerprint: str
    """Identity of the programs beyond their versions: a script instead of a program, or its profile, may add flags."""
    info: ToolchainInfo


def find_toolchain(
    *, environ: Mapping[str, str] | None = None, site_packages: Sequence[Path] | None = None, usual: Path = USUAL
) -> Toolchain:
    """Find and check a toolkit; ToolchainError names the missing parts, and the remedy.

    ``site_packages`` are the directories that may hold NVIDIA's wheels; by default those that this Python imports from.
    """
    environ = os.environ if environ is None else environ
    wheels = wheel_roots([Path(entry) for entry in sys.path if entry] if site_packages is None else site_packages)
    root = _root(environ, wheels, usual)
    nvcc = root / "bin/nvcc"
    ptxas = root / "bin/ptxas"
    cicc = root / "nvvm/bin/cicc"
    for tool in (nvcc, ptxas, cicc):
        if not os.access(tool, os.X_OK):
            raise ToolchainError(f"the CUDA toolkit in {root} has no {tool.relative_to(root)}", help=_REMEDY)
    programs = (place / "bin/nvdisasm" for place in dict.fromkeys((root, *wheels)))
    disassemblers = {tool: version_of(tool) for tool in programs if os.access(tool, os.X_OK)}
    nvdisasm, disassembler = max(disassemblers.items(), key=lambda item: release(item[1]), default=(root, ""))
    assembler = version_of(ptxas)
    if not disassembler or release(disassembler) < release(assembler):
        raise ToolchainError(
            f"there is no nvdisasm as new as ptxas {assembler}, whose code an older one may misread",
            help=f"{INSTALL} brings one",
        )
    host, host_version = _host_compiler(environ, root)
    # The profile of CUDA 13.0 and 13.1, installed as wheels, names lib64.
    library = ("-L", str(root / "lib")) if (root / "lib").is_dir() and not (root / "lib64").is_dir() else ()
    return Toolchain(
        root=root,
        nvcc=nvcc,
        host_compiler=host,
        nvdisasm=nvdisasm,
        flags=("-ccbin", str(host), *library),
        environ={name: environ[name] for name in _PASSED_ON if name in environ},
        fingerprint=_fingerprint([*(root / name for name in _WHAT_COMPILES), nvdisasm, host]),
        info=ToolchainInfo(
            nvcc=version_of(nvcc),
            ptxas=assembler,
            nvdisasm=disassembler,
            host_compiler=f"{host.name} {host_version}",
            cuda_root=str(root),
            disassembler=str(nvdisasm),
        ),
    )


def wheel_roots(folders: Sequence[Path]) -> list[Path]:
    """Return the toolkits that wheels unpacked below these directories, the newest first: ``nvidia/cu13``."""
    patterns = ("nvidia/cu[0-9]*", "nvidia/cuda_nvcc")
    roots = (root.resolve() for folder in folders for pattern in patterns for root in folder.glob(pattern))
    found = {root for root in roots if (root / "bin").is_dir()}
    return sorted(found, key=lambda root: int(re.sub(r"\D", "", root.name) or 0), reverse=True)


def named_roots(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the toolkits that the user names, each with the variable."""
    named = [(name, environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    return [(variable, Path(value).expanduser().resolve()) for variable, value in named]


def roots_on_path(path: str) -> Iterator[Path]:
    """Yield the toolkit of each nvcc and ptxas in the directories of PATH; a script that leads to none is left out."""
    for folder in filter(None, path.split(os.pathsep)):
        for tool in ("nvcc", "ptxas"):
            if os.access(program := Path(folder) / tool, os.X_OK) and (root := _root_of(program)):
                yield root


def _root(environ: Mapping[str, str], wheels: Sequence[Path], usual: Path) -> Path:
    """Return the toolkit that is to be used: one that is named, of a wheel, on PATH, or the usual one.

    ToolchainError where there is none, or where one that is named has no compiler.
    """
    for variable, root in named_roots(environ):
        if not os.access(root / "bin/nvcc", os.X_OK):
            message = f"{variable} is {root}, where there is no bin/nvcc"
            raise ToolchainError(message, help=f"correct or unset {variable}, or {INSTALL}")
        return root
    for root in chain(wheels, roots_on_path(environ.get("PATH", os.defpath)), [usual]):
        if os.access(root / "bin/nvcc", os.X_OK):
            return root
    where = f"in this Python's packages, on PATH or in {usual}"
    raise ToolchainError(f"there is no CUDA compiler: no nvcc of a toolkit {where}", help=_REMEDY)


def _root_of(program: Path) -> Path | None:
    """Return the toolkit of an nvcc or ptxas; it may be a symlink, and nvcc a script that calls another."""
    real = program.resolve()
    if program.name != "nvcc" or (real.parent.parent / "nvvm").is_dir():
        return real.parent.parent
    # A dry run prints the variables of nvcc.profile, of which TOP is the root.
    told = _output([str(program), "--dryrun", "-cubin", "-x", "cu", os.devnull])
    top = re.search(r"^#\$ TOP=(.+)$", told, re.MULTILINE)
    root = Path(top[1].strip()).resolve() if top else None
    return root if root and (root / "bin/nvcc").is_file() else None


def _fingerprint(programs: Sequence[Path]) -> str:
    """SHA-256 over each program's size and beginning; one that is not there counts as such."""
    digest = hashlib.sha256()
    for program in programs:
        beginning, size = b"", -1
        with contextlib.suppress(OSError), program.open("rb") as file:
            beginning, size = file.read(_BEGINNING), os.fstat(file.fileno()).st_size
        digest.update(b"%d:%d:" % (size, len(beginning)) + beginning)
    return digest.hexdigest()


def _host_compiler(environ: Mapping[str, str], root: Path) -> tuple[Path, str]:
    """Return the host compiler that nvcc is to use, and its version."""
    name = environ.get("NVCC_CCBIN") or "g++"
    compiler = shutil.which(name, path=environ.get("PATH", os.defpath))
    if compiler is None:
        raise ToolchainError(
            f"there is no {name}, which nvcc takes for the host",
            help="install one (Debian, Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`), or set NVCC_CCBIN",
        )
    version = _output([compiler, "-dumpfullversion", "-dumpversion"]).strip()
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise ToolchainError(f"{compiler} does not state its version", help="set NVCC_CCBIN to a g++")
    newest = newest_gcc(root)
    if newest is not None and int(version.partition(".")[0]) > newest:
        raise ToolchainError(
            f"{compiler} is version {version}, and the CUDA toolkit in {root} allows g++ {newest} at most",
            help=f"install g++-{newest} and set NVCC_CCBIN=g++-{newest}",
        )
    return Path(compiler), version


def newest_gcc(root: Path) -> int | None:
    """Return the newest g++ that this toolkit's headers accept; None if they do not state it."""
    header = root / "include/crt/host_config.h"
    limit = _NEWEST_GCC.search(header.read_text(encoding="utf-8", errors="replace")) if header.is_file() else None
    return int(limit[1]) if limit else None


def version_of(tool: Path) -> str:
    """Return the release that nvcc, ptxas or a disassembler prints: ``13.0.88``. ToolchainError if it prints none."""
    stated = RELEASE.search(_output([str(tool), "--version"]).encode())
    if stated is None:
        raise ToolchainError(f"{tool} does not state its version", help=_REMEDY)
    return stated[1].decode()


def _output(command: list[str]) -> str:
    try:
        done = process.run(command)
    except OSError as error:
        raise ToolchainError(f"{command[0]} {error.strerror}", help=_REMEDY) from error
    return done.out + done.err


def release(version: str) -> tuple[int, ...]:
    """Return ``(13, 0)`` of ``13.0.88``: parts of one release fit each other."""
    return tuple(int(part) for part in version.split(".")[:2])
