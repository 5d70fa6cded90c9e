"""Small device code for the tests of doctor, compiled by the pinned toolkit."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from fp4patch.core.process import Runner
from fp4patch.core.store import Store, cache_dir, scratch
from fp4patch.proof.machine_code import disassemble
from fp4patch.proof.toolchain import Toolchain

CONVERTS = """
extern "C" __global__ void nvfp4_quantize(const float* in, unsigned* out) {
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH__ >= 1000
  unsigned byte;
  asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; cvt.u32.u8 %0, b;}"
      : "=r"(byte) : "f"(in[2 * threadIdx.x + 1]), "f"(in[2 * threadIdx.x]));
  out[threadIdx.x] = byte;
#else
  out[threadIdx.x] = 0;
#endif
}
"""
"""Code that converts if the target has the instruction, and does something else if it does not: the usual accident."""

MULTIPLIES = """
extern "C" __global__ void nvfp4_multiply(const unsigned* a, const unsigned* b, const unsigned* scales, float* out) {
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH__ >= 1200
  float d[4] = {};
  asm volatile("{.reg .b16 z; mov.b16 z, 0;"
      "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {z, z}, {%11}, {z, z};}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales[0]), "r"(scales[1]));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
#endif
}
"""
"""A kernel that multiplies in FP4 on SM12x."""

LOSES = """
#include <cstdio>
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH__ < 1200 && __CUDA_ARCH__ >= 1000
#define HAS 1
#endif
__device__ unsigned convert(float a, float b) {
  unsigned byte = 0;
#ifdef HAS
  asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; cvt.u32.u8 %0, b;}" : "=r"(byte) : "f"(a), "f"(b));
#elif defined(PRINTS)
  printf("architecture-specific instruction; try sm_100a\\n");
#endif
  return byte;
}
extern "C" __global__ void scale(const float* in, unsigned* out) {
  unsigned byte = convert(in[0], in[1]);
#if defined(HAS) || !defined(PRINTS)
  out[threadIdx.x] = byte;
#endif
}
extern "C" __global__ void copy(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
"""
"""``scale`` converts for SM100 alone; elsewhere it prints if ``PRINTS`` is defined, and else stores
zeros. ``copy`` never converts."""


def compile_cuda(
    toolchain: Toolchain, source: str, to: Path, *flags: str, pinned: Mapping[str, Path] = MappingProxyType({})
) -> Path:
    """Compile a text with ``nvcc``; ``flags`` select the output (``-cubin``, ``-fatbin``, ``-c``).

    The output is kept in the user's cache, by everything that decides it, if the text needs no files but the toolkit's
    and those of ``pinned``: include directories of releases, by names that no other release has.
    """
    unit = to.with_suffix(".cu")
    unit.write_text(source)
    command = [str(toolchain.nvcc), *toolchain.flags, "-std=c++17", *flags]
    known = repr((command, sorted(pinned), source, to.name, toolchain.fingerprint, toolchain.info))
    known = known.replace(str(toolchain.root), "toolkit")  # each checkout has its own, of the same wheels
    kept = cache_dir() / "tests" / hashlib.sha256(known.encode()).hexdigest()
    if kept.is_file():
        shutil.copyfile(kept, to)
        return to
    command += [*(f"-I{folder}" for folder in pinned.values()), "-o", str(to), str(unit)]
    subprocess.run(command, check=True, capture_output=True, env=dict(toolchain.environ))
    if (pinned or '#include "' not in source) and not any(flag.startswith("-I") for flag in flags):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with scratch(kept.parent, "made-") as folder:
            shutil.copyfile(to, folder / kept.name).replace(kept)
    return to


def disassembled(toolchain: Toolchain, cubin: bytes) -> str:
    """Return what ``nvdisasm -c`` writes of a cubin, from the user's cache if it did once."""
    store = Store(cache_dir() / "executions")
    return disassemble(cubin, toolchain=toolchain, runner=Runner(toolchain.environ), store=store)


def assemble(toolchain: Toolchain, ptx: str, arch: str, to: Path) -> Path:
    """Assemble a text with ``ptxas`` to a cubin."""
    text = to.with_suffix(".ptx")
    text.write_text(ptx)
    ptxas = toolchain.root / "bin/ptxas"
    subprocess.run([str(ptxas), "-arch", arch, "-o", str(to), str(text)], check=True, capture_output=True)
    return to


def targets(*names: str) -> Sequence[str]:
    """Return ``-gencode`` for each: ``120f`` for a cubin, ``compute_90`` for PTX."""
    flags = []
    for name in names:
        number = name.removeprefix("compute_")
        code = name if name.startswith("compute_") else f"sm_{name}"
        flags += ["-gencode", f"arch=compute_{number},code={code}"]
    return flags


def listing(toolchain: Toolchain, cubin: Path) -> dict[str, list[str]]:
    """Return each function's instructions by nvdisasm, one string each: opcode and operands."""
    run = subprocess.run([str(toolchain.nvdisasm), "-json", str(cubin)], check=True, capture_output=True, text=True)
    return {
        function["function-name"]: [
            f"{line['opcode']} {line.get('operands', '')}".strip() for line in function["sass-instructions"]
        ]
        for function in json.loads(run.stdout)[1]
    }


def wheel_of(path: Path, members: dict[str, bytes]) -> Path:
    """A wheel with these members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tar_of(members: dict[str, bytes], mode: str = "w") -> bytes:
    """The bytes of a tar with these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()
