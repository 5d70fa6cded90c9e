"""Targets and backends that a log states: commands of nvcc, CMake's configuration, and the choice of a server.

What a log states is not what a library has: the findings say what was asked for, and are no verdict on a file.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import PTX, Arch, elements, made_by, nearest
from fp4patch.core.wording import counted, listed

# Example: -gencode arch=compute_120f,code=sm_120f
# Example: --generate-code=arch=compute_90a,code=[sm_90a
# Example: -gencode;arch=compute_80,code=sm_80
_GENCODE = re.compile(
    r"--?gen(?:code|erate-code)[ =;]*\"?arch=compute_(\w+),\s*\\?\"?code=\\?\"?\[?((?:(?:sm|compute)_\w+,?)+)"
)
# Example: ptxas --dont-merge-basicblocks -arch=sm_120f
_ASSEMBLED = re.compile(r"ptxas\"? [^\n]*?-arch[= ](sm_\d{2,3}[af]?)\b")
# Example: Compiling entry function '_Z6kernelv' for 'sm_120f'
_VERBOSE = re.compile(r"Compiling entry function '\S+' for '(sm_\d{2,3}[af]?)'")
# Example: -- CUDA supported target architectures: 12.0
_OF_CMAKE = re.compile(
    r"^\W*(CUDA (?:supported )?target architectures|Autodetected CUDA architecture\(s\)|CMAKE_CUDA_ARCHITECTURES)"
    r"(?::STRING)?[:=] *(\d[^\n]*)$",
    re.MULTILINE,
)
# Example: Building SM12x NVFP4 for archs: 12.0f
_BUILDING = re.compile(r"Building (\S[^\n]*?) for archs: *([\d.af;+PTX]+)")
# Example: Using 'MARLIN' NvFp4 MoE backend
_EXPERTS = re.compile(r"Using '(\w+)' (?:NvFp4|NVFP4|Mxfp4|MXFP4) MoE backend")
# Example: Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM
_DENSE = re.compile(r"Using ([\w-]+) for (?:NVFP4|MXFP4) GEMM")
_IN_16_BITS = re.compile(r"marlin|humming|w4a16|emulation", re.IGNORECASE)


def read(text: str, gpus: Sequence[Arch], *, named: bool) -> Iterator[Finding]:
    """Yield a finding for each kind of statement of a log. ``named``: somebody asked about these GPUs."""
    yield from _commands(text, gpus, named)
    yield from _configuration(text, gpus, named)
    for subject, pattern in (("experts", _EXPERTS), ("dense layers", _DENSE)):
        for name in dict.fromkeys(pattern.findall(text)):
            in_16_bits = _IN_16_BITS.search(name)
            what = "multiplies in FP4, if the checkpoint has activations of 4 bits"
            what = "multiplies in 16 bits, as a checkpoint of W4A16 asks" if in_16_bits else what
            level = Level.YELLOW if in_16_bits else Level.GREEN
            remedy = "for one of W4A4, docs/moe-backends.md has the order in which vLLM chooses" if in_16_bits else ""
            yield Finding(level, subject, f"the program chose {name}, which {what}", remedy)


def _commands(text: str, gpus: Sequence[Arch], named: bool) -> Iterator[Finding]:
    """Yield what the commands of nvcc and ptxas in the log compile for."""
    code, ptx = Counter[Arch](), Counter[Arch]()
    for virtual, targets in _GENCODE.findall(text):
        for target in elements(targets):
            if arch := made_by(virtual, target):
                (code if target.startswith("sm_") else ptx)[arch] += 1
    for target in (*_ASSEMBLED.findall(text), *_VERBOSE.findall(text)):
        if arch := made_by(target, target):
            code[arch] += 1
    if code or ptx:
        parts = [f"{arch} ({counted(number, 'time')})" for arch, number in sorted(code.items())]
        parts += [f"PTX of {arch} ({counted(number, 'time')})" for arch, number in sorted(ptx.items())]
        yield _of_targets("targets", f"commands of nvcc name {listed(parts)}", list(code), list(ptx), gpus, named)


def _configuration(text: str, gpus: Sequence[Arch], named: bool) -> Iterator[Finding]:
    """Yield what CMake states of a whole build, and of its FP4 kernels."""
    stated = dict(_OF_CMAKE.findall(text))
    stated |= {name: value for name, value in _BUILDING.findall(text) if re.search(r"fp4", name, re.IGNORECASE)}
    for name, value in stated.items():
        code, ptx = list[Arch](), list[Arch]()
        for element in elements(value):
            plain = re.sub(r"\(\d\.\d\)|-real|-virtual|\+PTX", "", element)
            try:
                arch = Arch.parse(plain)
            except ValueError:
                continue
            code += [] if element.endswith("-virtual") else [arch]
            ptx += [arch] if element.endswith((PTX, "-virtual")) else []
        if code or ptx:
            yield _of_targets("CMake", f"{name}: {value.strip()}", code, ptx, gpus, named)


def _of_targets(
    subject: str, what: str, code: Sequence[Arch], ptx: Sequence[Arch], gpus: Sequence[Arch], named: bool
) -> Finding:
    chosen = {gpu: nearest(gpu, code, ptx) for gpu in gpus}
    told = "; ".join(f"{gpu} loads {_loads(arch, code)}" for gpu, arch in chosen.items())
    suffixed = [bool(arch and arch.suffix and arch in code) for arch in chosen.values()]
    well = all(suffixed) if named else any(suffixed)
    remedy = "" if well else "`fp4patch doctor FILE` on what was built tells what it has"
    return Finding(Level.GREEN if well else Level.NONE, subject, f"{what}: {told}", remedy)


def _loads(arch: Arch | None, code: Sequence[Arch]) -> str:
    if arch is None:
        return "nothing of it"
    return f"{arch}{'' if arch.suffix else ', without FP4 instructions'}" if arch in code else f"PTX of {arch}"
