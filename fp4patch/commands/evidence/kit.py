"""The program that runs conversions on a GPU: its tables, its machine code, and the binaries for x86-64 and aarch64.

It loads the driver's library when it starts. So it needs no CUDA toolkit, and the host code has no part of CUDA in it.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from fp4patch.catalog.rule import Promise
from fp4patch.commands.evidence.forms import Form, digests, tables
from fp4patch.commands.evidence.gpu_file import KitInfo
from fp4patch.console import write
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.wording import listed
from fp4patch.proof.machine_code import kernel_of
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.text import functions

NAME = "fp4patch-evidence"
MACHINES = ("x86_64", "aarch64")
_PARTS = ("evidence.c", "conversion.h", "check.cu", "build.sh")
_ALIGNED = 64


@dataclass(frozen=True, eq=False)
class Kernel:
    """One probe's kernel, compiled for one target from the patched tree."""

    tree: str
    """Target and version: ``cutlass 4.2.1``."""
    probe: str
    arch: Arch
    cubin: bytes
    form: Form
    promise: Promise


def build(folder: Path, kernels: Sequence[Kernel], info: KitInfo, toolchain: Toolchain) -> dict[str, str]:
    """Write the program and its source, and return the reason for each kind of machine that has no program.

    ProofError if a part does not compile.
    """
    source = folder / "source"
    for name in _PARTS:
        write(source / name, (resources.files(__package__) / "program" / name).read_text(encoding="utf-8"))
    write(source / "tables.h", tables())
    archs: dict[int, Arch] = {}  # one without a suffix for each generation, which runs on all GPUs of its kernels
    for kernel in sorted(kernels, key=lambda kernel: kernel.arch):
        archs.setdefault(kernel.arch.major, kernel.arch.gpu)
    checkers = {arch: _checker(source, arch, toolchain) for arch in archs.values()}
    code, text = _tables(kernels, checkers, info)
    write(source / "cubins.bin", code)
    write(source / "kit.h", text)
    return {machine: why for machine in MACHINES if (why := _program(folder, machine, toolchain))}


def _checker(source: Path, arch: Arch, toolchain: Toolchain) -> bytes:
    product = source / "check.cubin"
    flags = (*toolchain.flags, "-std=c++17", "-O3", "-cubin", f"-arch={arch}")
    command: list[str | Path] = [toolchain.nvcc, *flags, "-o", product.name, "check.cu"]
    done = process.run(command, limit=process.LIMIT, folder=source, environ=toolchain.environ)
    if done.status:
        raise ProofError(f"the comparison does not compile for {arch}", help=done.said)
    content = product.read_bytes()
    product.unlink()
    return content


def _tables(kernels: Sequence[Kernel], checkers: dict[Arch, bytes], info: KitInfo) -> tuple[bytes, str]:
    """Return the machine code as one file, and ``kit.h``."""
    cubins: dict[tuple[Arch, bytes], int] = {}
    for kernel in sorted(kernels, key=lambda kernel: (kernel.arch.major, kernel.arch.suffix != "a", kernel.arch)):
        cubins.setdefault((kernel.arch, kernel.cubin), len(cubins))
    code = bytearray()
    lines = ["// Made by fp4patch evidence.", "static const struct cubin cubins[] = {"]
    lines += [_entry(arch, content, code) for arch, content in cubins]
    lines += ["};", "static const struct cubin checkers[] = {"]
    lines += [_entry(arch, content, code) for arch, content in checkers.items()]
    lines += ["};", "static const struct subject subjects[] = {"]
    ordered = sorted(kernels, key=lambda kernel: (cubins[kernel.arch, kernel.cubin], kernel.tree, kernel.probe))
    lines += [_subject(kernel, cubins[kernel.arch, kernel.cubin]) for kernel in ordered]
    archs = listed(list(dict.fromkeys(str(kernel.arch) for kernel in ordered)))
    title = f"fp4patch {info.fp4patch}: {info.title}"
    lines += ["};", f"#define KIT_TITLE {json.dumps(title)}", f"#define KIT_ARCHS {json.dumps(archs)}"]
    lines += [f"#define KIT_JSON {json.dumps(json.dumps(asdict(info)))}", ""]
    return bytes(code), "\n".join(lines)


def _entry(arch: Arch, content: bytes, code: bytearray) -> str:
    at = len(code)
    code += content + bytes(-len(content) % _ALIGNED)
    suffix = f"'{arch.suffix}'" if arch.suffix else "0"
    digest = hashlib.sha256(content).hexdigest()
    return f'  {{"{arch}", {arch.major}, {arch.minor}, {suffix}, {at}, "{digest}"}},'


def _subject(kernel: Kernel, cubin: int) -> str:
    symbol = kernel_of(kernel.probe, functions(kernel.cubin))
    exact = int(kernel.promise is Promise.EXACT)
    names = ", ".join(json.dumps(text) for text in (kernel.tree, kernel.probe, symbol, kernel.form.name))
    return f"  {{{names}, {cubin}, {exact}, {kernel.form.initializer}, {digests()[kernel.form.name]:#x}ull}},"


def _program(folder: Path, machine: str, toolchain: Toolchain) -> str:
    """Build the program for a kind of machine; return the reason if there is no compiler for it."""
    cross = f"{machine}-linux-gnu-gcc"
    compiler = str(toolchain.host_compiler) if machine == platform.machine() else shutil.which(cross)
    if compiler is None:
        return f"there is no {cross} here; on such a machine, sh source/build.sh builds the program"
    product = folder.resolve() / f"{NAME}-{machine}"
    command: list[str | Path] = ["sh", folder / "source" / "build.sh", product]
    done = process.run(command, limit=process.LIMIT, environ=os.environ | {"CC": compiler})
    if done.status:
        raise ProofError(f"the program does not compile for {machine}", help=done.said)
    return ""
