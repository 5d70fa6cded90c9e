"""Device code for an arm64 host, as the stage ``cross`` compiles it on x86-64, and by the compiler for arm64 itself."""

import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from fp4patch.proof.toolchain import find_toolchain

pytestmark = pytest.mark.skipif(
    os.environ.get("FP4PATCH_TEST_MACHINE") != "arm64" or platform.machine() == "aarch64",
    reason="`make arm64` on x86-64 runs the compiler for arm64, in emulation",
)
ARM = "aarch64-linux-gnu-g++"
COMPILER = r"nvidia-(?:cuda-(?:nvcc|cccl|crt|runtime)|nvvm)=="
# `char` is unsigned on arm64, and `long double` has other bits: code for an x86-64 host differs.
SOURCE = """
#include <cuda_fp4.h>
struct Host { char c; long double d; };
__global__ void encode(float2 *in, __nv_fp4x2_e2m1 *out, char *c) {
  out[0] = __nv_fp4x2_e2m1(in[0]);
  if (c[0] < 0) out[1] = out[0];
  c[1] = sizeof(Host) + alignof(long double);
}
int encode_once() { return encode<<<1, 1>>>(nullptr, nullptr, nullptr), cudaGetLastError(); }
"""


def test_the_compilers_of_both_processors_make_the_same_device_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = [need.partition(";")[0] for need in metadata.requires("fp4patch") or () if re.match(COMPILER, need)]
    wheels = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_aarch64", f"--target={tmp_path / 'arm64'}"]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *wheels, *dict.fromkeys(pinned)], check=True)
    (there,) = (tmp_path / "arm64/nvidia").glob("cu*/bin/nvcc")
    assert int.from_bytes(there.read_bytes()[18:20], "little") == 183  # e_machine of aarch64
    here = find_toolchain().root / "bin/nvcc"
    (tmp_path / "kernel.cu").write_text(SOURCE)
    monkeypatch.setenv("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu")
    made = {
        name: compiled(tmp_path, nvcc, host)
        for name, nvcc, host in (("cross", here, ARM), ("arm64", there, ARM), ("x86-64", here, "g++"))
    }
    assert made["cross"] == made["arm64"]
    assert made["cross"] != made["x86-64"]


def compiled(folder: Path, nvcc: Path, host: str) -> bytes:
    command: list[str | Path] = [
        nvcc,
        "-ccbin",
        host,
        "-w",
        "-arch=sm_121a",
        "-cubin",
        "kernel.cu",
        "-o",
        "kernel.cubin",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "kernel.cubin").read_bytes()
