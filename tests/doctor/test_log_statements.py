"""What logs state: the compiler's own dry run, lines of ninja, CMake and servers, and lines that look like them."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor import log_commands
from fp4patch.doctor.log_statements import read
from fp4patch.proof.toolchain import Toolchain

RTX = Arch(12, 0)


def stated(text: str, *gpus: Arch) -> list[tuple[str, str, Level]]:
    found = read(text, text, gpus or (RTX, GB10), named=bool(gpus))
    return [(finding.subject, finding.found, finding.level) for finding in found]


@pytest.mark.parametrize(
    ("flags", "gpu", "loads", "level"),
    [
        ("-gencode=arch=compute_120f,code=sm_120", GB10, "sm_120f", Level.GREEN),
        ("-gencode=arch=compute_120,code=sm_120f", GB10, "sm_120, without FP4 instructions", Level.NONE),
        ("-gencode=arch=compute_120a,code=sm_120a", GB10, "nothing of it", Level.NONE),
        ("-gencode=arch=compute_120a,code=sm_120a", RTX, "sm_120a", Level.GREEN),
        ("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_121a,code=sm_121a", GB10, "sm_121a", Level.GREEN),
        ("-arch=sm_121", GB10, "sm_121, without FP4 instructions", Level.NONE),
        ("-arch sm_121a", GB10, "sm_121a", Level.GREEN),
        ("--gpu-architecture=sm_120", GB10, "sm_120, without FP4 instructions", Level.NONE),
        ("-arch=compute_121a -code=sm_121a", GB10, "sm_121a", Level.GREEN),
        ("-code=sm_80,compute_80 -arch=compute_80", GB10, "PTX of sm_80", Level.NONE),
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
    ("flags", "told", "of_step"),
    [
        ("", "PTX of sm_75", "the compiler's default"),  # nvcc 13's
        ("-dlto -arch=sm_121a", "what the linker makes of it (LTO-IR)", "sm_121a"),
        ("-arch=native", "PTX of sm_75", "what -arch=native comes to"),  # there is no GPU here
    ],
)
def test_steps_decide_where_nvcc_prints_them_and_not_its_command(
    toolchain: Toolchain, tmp_path: Path, flags: str, told: str, of_step: str
) -> None:
    (tmp_path / "x_fp4.cu").write_text("__global__ void kernel(int *out) { *out = 1; }\n")
    nvcc = [str(toolchain.root / "bin/nvcc"), "--dryrun", "-c", "x_fp4.cu", "-o", "x.o", *flags.split()]
    dry = subprocess.run(nvcc, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    command = f"$ {' '.join(nvcc)}\n"
    assert [one.source for one in log_commands.read(command + dry)] == ["x_fp4.cu"]
    assert [text.endswith(f"sm_121 loads {told}") for _, text, _ in stated(command + dry, GB10)] == [True]
    assert [of_step in text for _, text, _ in stated(command, GB10)] == [True]


NINJA = """\
#14 92.1 [1/4] ccache /usr/bin/nvcc -DX=\\"1\\" "--generate-code=arch=compute_90a,code=[sm_90a]" -c /w/a.cu -o a.o
[2/4] cd /w && :/opt/cuda-13.0/bin/nvcc -I/x {0} -x cu -c csrc/nvfp4_quant_kernels.cu -o q.o && echo done
[3/4] "nvcc" "--gpu-architecture=sm_87" "-c" "-o" "D:\\a\\b.o" "kernels\\b.cu"
[4/4] /usr/local/cuda/bin/nvcc -arch=sm_121a \\
    -c c.cu -o c.o
{1}
[5/5] /usr/local/cuda/bin/nvcc -arch=sm_120a a.o q.o -o program
nvcc fatal   : no -arch=sm_121 in a.cu
c++ -arch x86_64 -c e.cpp -o e.o
"""
LISTED = "CalledProcessError: Command '['/usr/bin/nvcc', '-gencode', '{0}', '-c', 'd.cu']' returned non-zero"


def test_sources_for_fp4_decide_about_a_build_of_many() -> None:
    pair = "arch=compute_120f,code=sm_120f"
    log = NINJA.format(f"-gencode {pair}", LISTED.format("arch=compute_90a,code=sm_90a"))
    (_, whole, level), (subject, of_fp4, _) = stated(log, GB10)
    assert "sm_90a (2 times), sm_120f (1 time), sm_121a (1 time)" in whole
    assert "sm_121 loads nothing of it (2 of 5), sm_120f (1 of 5), PTX of sm_87 (1 of 5) and sm_121a (1 of 5)" in whole
    assert (subject, of_fp4) == ("FP4 sources", "nvfp4_quant_kernels.cu: sm_121 loads sm_120f")
    assert level is Level.GREEN
    log = NINJA.format("-gencode arch=compute_120,code=sm_120", LISTED.format(pair))
    (_, whole, level), (_, of_fp4, _) = stated(log, GB10)
    assert (level, of_fp4.partition(": ")[2]) == (Level.NONE, "sm_121 loads sm_120, without FP4 instructions")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-- Using CMAKE_CUDA_ARCHITECTURES=120a CMAKE_CUDA_ARCHITECTURES_NATIVE=120a-real", "sm_120 loads sm_120a;"),
        (
            "#9 1.2 -- Using CMAKE_CUDA_ARCHITECTURES=80-real;121a-real CMAKE_CUDA_ARCHITECTURES_NATIVE=",
            "loads sm_121a",
        ),
        ("-- GPU architectures: 120", "sm_121 loads sm_120, which has FP4 where a source has a list of its own"),
        ('+ export TORCH_CUDA_ARCH_LIST="12.1a"', "TORCH_CUDA_ARCH_LIST: 12.1a: sm_120 loads nothing of it"),
        (
            "$ cmake -B build -DCMAKE_CUDA_ARCHITECTURES=120 ..",
            "CMAKE_CUDA_ARCHITECTURES: 120: sm_120 loads sm_120, which",
        ),
        (
            "system_info: n_threads = 16 | CUDA : ARCHS = 750,1200 | USE_GRAPHS = 1 | BLACKWELL_NATIVE_FP4 = 1 | CPU",
            "with FP4 kernels of SM12x: sm_120 has code of its own; sm_121 has none",
        ),
        ("system_info: n_threads = 16 | CUDA : ARCHS = 890 | USE_GRAPHS = 1", "without FP4 kernels of SM12x"),
        ("INFO Using NvFp4LinearBackend.MARLIN for NVFP4 GEMM", "chose MARLIN, which multiplies in 16 bits"),
        ("INFO Using NvFp4LinearBackend.FLASHINFER_CUTLASS for NVFP4 GEMM", "multiplies in FP4"),
        ("clang++ -x cuda --cuda-gpu-arch=sm_120a x.cu -o x", "sm_120 loads sm_120a;"),
        (
            "/tmp/.cache/flashinfer/0.6.6/120a/generated/single_decode/single_decode.cu:100: RuntimeError",
            "FlashInfer 0.6.6's modules: 120a: sm_120 loads sm_120a; sm_121 loads nothing of it",
        ),
        ("Target CUDA archs (resolved) : {(12, '0f')}", "FlashInfer's targets: 12.0f: sm_120 loads sm_120f; sm_121"),
        ("Target CUDA archs (resolved) : set()", ""),
        ("I compile by `nvcc -arch=sm_120a x.cu -o x`, and it fails", "sm_120 loads sm_120a;"),
        ("/x/backends/nvidia/bin/ptxas -v --gpu-name=sm_121a /tmp/a.ptx -o /tmp/a.o", "sm_121 loads sm_121a"),
        # CUTLASS's own list in the log of another project, and texts that set nothing.
        ("-- CUDA Compilation Architectures: 70;72;120a;121a", ""),
        ("set TORCH_CUDA_ARCH_LIST, for example to 12.1a", ""),
        ("clang++ -arch arm64 -c x.cpp -o x.o", ""),
        ("nvcc --version", ""),
        ("nvcc '' -arch=sm_121 x.cu", ""),
        ("which nvcc # has -arch=sm_121", ""),
        (
            "-- CUDA supported target architectures: 12.0",
            "sm_120 loads sm_120, which has FP4 where a source has a list",
        ),
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
