"""Device code for GB10 does not depend on the machine that compiles: what an arm64 nvcc makes, an x86-64 one makes.

So the proof of an image for arm64 can be had on an x86-64 machine. FP4PATCH_TEST_ARM64=1 runs it: minutes of
emulation, by qemu-aarch64-static and g++-aarch64-linux-gnu (Debian's qemu-user-static and g++-aarch64-linux-gnu).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.proof.toolchain import Toolchain

PACKAGES = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
PROBE = Path(__file__).parents[2] / "patches/cutlass/e2m1-guard/probes/float-to-e2m1-array.cu"
SYSROOT = "/usr/aarch64-linux-gnu"

pytestmark = pytest.mark.skipif(
    not os.environ.get("FP4PATCH_TEST_ARM64"), reason="FP4PATCH_TEST_ARM64 is not set; emulation takes minutes"
)


@pytest.fixture(scope="module")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the same toolkit out of the package index's wheels for arm64; its programs run by emulation."""
    assert platform.machine() == "x86_64", "emulation is for x86-64 machines"
    folder = tmp_path_factory.mktemp("arm64")
    pins = [f"{package}=={version(package)}" for package in PACKAGES]
    platforms = [f"--platform={name}" for name in ("manylinux_2_17_aarch64", "manylinux2014_aarch64")]
    download = ["download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={folder}", *platforms, *pins]
    subprocess.run([sys.executable, "-m", "pip", *download], check=True)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
    root = folder / "nvidia" / "cu13"
    for program in (root / "bin/nvcc", root / "bin/ptxas", root / "nvvm/bin/cicc"):
        emulated(program)
    return root


def emulated(program: Path) -> None:
    """Put a script in the program's place that runs it by emulation; it finds its toolkit by its own name."""
    qemu = shutil.which("qemu-aarch64-static")
    assert qemu, "there is no qemu-aarch64-static: apt install qemu-user-static"
    real = program.with_name(f"{program.name}.arm64")
    program.rename(real)
    real.chmod(0o755)
    assert int.from_bytes(real.read_bytes()[18:20], "little") == 183, "EM_AARCH64"
    program.write_text(f'#!/bin/sh\nexec {qemu} -L {SYSROOT} -0 "$0" "{real}" "$@"\n')
    program.chmod(0o755)


@pytest.mark.parametrize(("variant", "arch"), [("next2", "sm_121a"), ("next3", "sm_121")])
def test_the_cubin_of_a_patched_probe_is_the_same_byte_for_byte(
    arm64: Path,
    toolchain: Toolchain,
    pristine_tree: Callable[[str, str], Path],
    tmp_path: Path,
    variant: str,
    arch: str,
) -> None:
    cross = shutil.which("aarch64-linux-gnu-g++")
    assert cross, "there is no aarch64-linux-gnu-g++: apt install g++-aarch64-linux-gnu"
    tree = tmp_path / "cutlass"
    shutil.copytree(pristine_tree("cutlass", "4.2.1") / "include", tree / "include")
    assert cli.run(["apply", "--variant", variant, str(tree)]) == 0
    shutil.copy(PROBE, tmp_path / "probe.cu")

    def cubin(nvcc: Path, host: str, name: str) -> bytes:
        options = ["-cubin", f"-arch={arch}", "-std=c++17", "-O3", "-DVALUES=8", f"-I{tree}/include"]
        out = tmp_path / name
        command = [str(nvcc), "-ccbin", host, *options, "-o", str(out), "probe.cu"]
        subprocess.run(command, cwd=tmp_path, env=dict(toolchain.environ), check=True)
        return out.read_bytes()

    here = cubin(toolchain.nvcc, str(toolchain.host_compiler), "x86-64.cubin")
    there = cubin(arm64 / "bin/nvcc", cross, "arm64.cubin")
    assert here[:4] == b"\x7fELF"
    assert here == there
