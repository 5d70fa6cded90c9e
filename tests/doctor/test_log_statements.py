"""What logs state: the compiler's own dry run, lines of ninja, CMake and servers, and lines that look like them."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor.log_statements import read
from fp4patch.proof.toolchain import Toolchain

RTX = Arch(12, 0)


def stated(text: str, *gpus: Arch) -> list[tuple[str, str, Level]]:
    found = read(text, gpus or (RTX, GB10), named=bool(gpus))
    return [(finding.subject, finding.found, finding.level) for finding in found]


@pytest.mark.parametrize(
    ("flags", "gpu", "loads", "level"),
    [
        ("-gencode=arch=compute_120f,code=sm_120", GB10, "sm_120f", Level.GREEN),
        ("-gencode=arch=compute_120,code=sm_120f", GB10, "sm_120, without FP4 instructions", Level.NONE),
        ("-gencode=arch=compute_120a,code=sm_120a", GB10, "nothing of it", Level.NONE),
        ("-gencode=arch=compute_120a,code=sm_120a", RTX, "sm_120a", Level.GREEN),
        ("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_121a,code=sm_121a", GB10, "sm_121a", Level.GREEN),
    ],
)
def test_a_dry_run_of_nvcc_and_what_ptxas_tells_say_what_is_loaded(
    toolchain: Toolchain, tmp_path: Path, flags: str, gpu: Arch, loads: str, level: Level
) -> None:
    (tmp_path / "x.cu").write_text("__global__ void kernel(int *out) { *out = 1; }\n")
    nvcc = [str(toolchain.root / "bin/nvcc"), "-c", "x.cu", "-o", "x.o", *flags.split()]
    dry = subprocess.run([*nvcc, "--dryrun"], cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    ((subject, found, judged),) = stated(dry, gpu)
    assert (subject, judged) == ("targets", level)
    # Of a dry run, ptxas's own option for compute_120 with sm_120f is sm_120.
    assert found.endswith(f": {gpu} loads {loads}")
    verbose = [*nvcc, "-Xptxas", "-v"]
    told = subprocess.run(verbose, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    ((_, found, judged),) = stated(f"[3/7] {' '.join(nvcc)}\n{told}", gpu)
    assert (found.endswith(f": {gpu} loads {loads}"), judged) == (True, level)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-- CUDA supported target architectures: 12.0", "sm_120 loads sm_120, without FP4 instructions"),
        ("-- CUDA target architectures: 12.1a", "sm_121 loads sm_121a"),
        ("-- Autodetected CUDA architecture(s):  8.0 8.0", "sm_121 loads nothing of it"),
        ("CMAKE_CUDA_ARCHITECTURES:STRING=120-virtual", "sm_121 loads PTX of sm_120"),
        ("-- Building SM12x NVFP4 for archs: 12.0f", "sm_121 loads sm_120f"),
        ("-- Added CUDA NVCC flags for: -gencode;arch=compute_121a,code=sm_121a", "sm_121 loads sm_121a"),
        ("nvcc '--generate-code=arch=compute_120a,code=[compute_120a,sm_120a]' -c a.cu", "sm_120 loads sm_120a"),
        (
            "INFO Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN'].",
            "chose MARLIN, which multiplies in 16",
        ),
        ("INFO Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of potential backends: [].", "multiplies in FP4"),
        ("INFO Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM", "multiplies in FP4"),
        ("INFO Using flashinfer-cutlass for NVFP4 GEMM", "multiplies in FP4"),
        ("INFO Using MarlinNvFp4LinearKernel for NVFP4 GEMM", "multiplies in 16 bits"),
        ("INFO Using FlashInferCuteDslW4A16NvFp4LinearKernel for NVFP4 GEMM", "multiplies in 16 bits"),
        # What no GPU gets FP4 of, and what is no statement.
        ("-- Building Marlin kernels for archs: 8.0;12.0", ""),
        ("-- CUDA target architectures: ", ""),
        ("set -gencode in your flags, for example", ""),
        ("ptxas -arch=sm_20 a.ptx", ""),
        ("ptxas -arch=sm_1 a.ptx", ""),
        ("INFO Using FLASHINFER attention backend", ""),
        ("nvcc -gencode arch=compute_${A},code=sm_${A} -c a.cu", ""),
    ],
)
def test_a_line_is_read_for_what_it_states(line: str, found: str) -> None:
    told = stated(f"begin\n{line}\nend\n")
    assert [found in text for _, text, _ in told] == ([True] if found else [])
