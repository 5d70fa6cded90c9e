"""Causes that doctor finds in logs; those that can be made here are made by the pinned compiler."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cubins import CONVERTS, MULTIPLIES

from fp4patch import cli
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.doctor.messages import Message, examine, messages, text_of
from fp4patch.proof.toolchain import Toolchain
from tools.pages.messages import page

BARE = CONVERTS.replace("defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && ", "")
BARE_MMA = MULTIPLIES.replace("defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && ", "")


@pytest.mark.parametrize(
    ("source", "flags", "title"),
    [
        (BARE, "-gencode arch=compute_121,code=sm_121", "Instruction 'cvt with .e2m1x2'"),
        (BARE, "-arch=sm_121a", "Instruction 'cvt with .e2m1x2'"),
        (BARE_MMA, "-gencode arch=compute_120,code=sm_120", "Instruction 'mma with block scale'"),
        (BARE, "-gencode arch=compute_129a,code=sm_129a", "Unsupported gpu architecture"),
    ],
)
def test_the_message_of_the_compiler_is_found_in_its_own_log(
    toolchain: Toolchain, tmp_path: Path, source: str, flags: str, title: str
) -> None:
    (tmp_path / "x.cu").write_text(source)
    command = [str(toolchain.root / "bin/nvcc"), "-c", *flags.split(), "x.cu", "-o", "x.o"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode
    (tmp_path / "build.log").write_text(f"[1/2] {' '.join(command)}\n{ran.stdout}{ran.stderr}ninja: build stopped\n")
    first, *others = examine("build.log", text_of(str(tmp_path / "build.log"))).findings
    assert first.cause.startswith(title)
    assert first.found.startswith((ran.stdout + ran.stderr).splitlines()[0])
    assert {finding.subject for finding in others} <= {"targets"}


def causes(text: str, tmp_path: Path, *gpus: Arch) -> list[Finding]:
    (tmp_path / "a.log").write_text(f"begin\n{text}\nend\n")
    return list(examine("a.log", text_of(str(tmp_path / "a.log")), gpus).findings)


@pytest.mark.parametrize("message", messages(), ids=lambda one: one.title)
def test_each_message_is_found_by_its_title_and_no_other_is(message: Message, tmp_path: Path) -> None:
    beside = "Building NVFP4 for archs: 12.0f\n" * bool(message.beside)
    finding, *statements = causes(f"\x1b[31merror: {message.title}\x1b[0m\n{beside}", tmp_path)
    assert (finding.cause, finding.subject) == (message.title, "line 2")
    assert "\x1b" not in finding.found
    assert "{" not in finding.found.removeprefix(message.title) + finding.remedy
    assert all(statement.subject in ("targets", "CMake") for statement in statements)


PTXAS = "ptxas /tmp/tmpxft_00003b36-6_y.ptx, line 30; error   : {0} not supported on .target '{1}'"
WARNING = "UserWarning: Found GPU0 {0} which is of {1}\n"
RANGE = "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n    ({0}) - ({1})\n"
LIST = "The following list shows the CCs this version of PyTorch was built for and the hardware CCs it supports:\n"
SUPPORTS = "- {0}.0 which supports hardware CC >={0}.0,<{1}.0\n"
DUMP = "CUDA Exception: Warp Out-of-range Address\nKernel: {0}_128x128x128_0_0  <<<(64,1,1),(128,1,1)>>>\n"
SYMBOL = "ImportError: /opt/vllm/vllm/_C.abi3.so: undefined symbol: {0}"
ADMITS = "cutlass.cute.nvgpu.common.OpError: OpError: expects arch to be one of [{0}], but got Arch.sm_121a"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        # The target that is named is the one of the remedy, and of another target the fault is another.
        (PTXAS.format("Instruction 'cvt with .e2m1x2'", "sm_120"), "arch=compute_120a,code=sm_120a"),
        (PTXAS.format("Instruction 'cvt with .e2m1x2'", "sm_121"), "arch=compute_121a,code=sm_121a"),
        (PTXAS.format("Instruction 'cvt with .e2m1x2'", "sm_100"), "arch=compute_100a,code=sm_100a"),
        (PTXAS.format("Instruction 'cvt with .e2m1x2'", "sm_90"), "without sm_90"),
        (PTXAS.format("Instruction 'cvt with .ue8m0x2'", "sm_89"), "without sm_89"),
        (PTXAS.format("Instruction 'mma with with FP6/FP4 floating point type'", "sm_120"), "compute_120a"),
        (PTXAS.format("Instruction 'mma with block scale'", "sm_100a"), "multiplies FP4 by tcgen05"),
        (PTXAS.format("Instruction 'tcgen05.mma'", "sm_120a"), "with any suffix and any release"),
        (PTXAS.format("Instruction 'wgmma.fence'", "sm_121a"), "'wgmma.fence' is of another family"),
        (PTXAS.format("Feature '.rs'", "sm_121a"), "stochastic rounding"),
        (PTXAS.format("Instruction 'redux.f32'", "sm_90"), ""),
        ("ptxas app.ptx, line 969; error : Unexpected instruction types specified for '_mma'", "4.5.0"),
        ("ptxas a.ptx, line 5; error   : Unexpected instruction types specified for 'cvt'", ""),
        (
            "ptxas fatal   : Program with .target 'sm_120a' cannot be compiled to future architecture",
            "its own GPU alone",
        ),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "CUDA 12.8 or later"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_120f'", "CUDA 12.9 or later"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_121a'", "13.0 for GB10"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_70'", "CUDA 13 dropped"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_20'", "export TORCH_CUDA_ARCH_LIST=12.1a"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_103a'", "does not know compute_103a"),
        # PyTorch: the range decides whether it is a false alarm.
        (WARNING.format("NVIDIA GB10", "cuda capability 12.1.") + RANGE.format("8.0", "12.0"), "a false alarm"),
        (
            WARNING.format("NVIDIA GB10", "cuda capability 12.1.") + RANGE.format("5.0", "9.0"),
            "up to compute capability 9.0",
        ),
        (WARNING.format("NVIDIA GeForce GTX 1070 Ti", "cuda capability 6.1.") + RANGE.format("7.0", "12.0"), ""),
        (
            WARNING.format("NVIDIA GB10", "compute capability (CC) 12.1.")
            + "Your installed torch==2.13.0+cu130 does not include kernels for this GPU.\n",
            "torch 2.13.0+cu130 has no code for 12.1",
        ),
        (
            WARNING.format("NVIDIA GeForce RTX 5090", "compute capability (CC) 12.0.")
            + LIST
            + SUPPORTS.format(8, 9)
            + SUPPORTS.format(9, 10),
            "nothing of this PyTorch loads on a GPU of 12.0",
        ),
        (
            WARNING.format("NVIDIA GB10", "compute capability (CC) 12.1.")
            + LIST
            + SUPPORTS.format(9, 10)
            + SUPPORTS.format(12, 13),
            "a false alarm",
        ),
        (WARNING.format("Tesla V100-PCIE-32GB", "compute capability (CC) 7.0.") + LIST + SUPPORTS.format(12, 13), ""),
        (
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch",
            "no code for sm_120",
        ),
        ("Tesla K40m with CUDA capability sm_35 is not compatible with the current PyTorch installation.", ""),
        # FlashInfer and the CuTe DSL: who is asked decides.
        ("WARNING: Failed to get device capability: SM 12.x requires CUDA >= 12.9.", "nvcc in CUDA_HOME"),
        ("RuntimeError: SM 120 requires CUDA >= 12.8", "toolkit of CUDA 12.8 or later"),
        ("RuntimeError: SM 10.x requires CUDA >= 12.8", ""),
        ("RuntimeError: FlashInfer requires GPUs with sm75 or higher", "CUDA_HOME"),
        ("RuntimeError: FlashInfer requires sm75+", ""),
        (
            "RuntimeError: No supported CUDA architectures found for major versions [12].",
            "export FLASHINFER_CUDA_ARCH_LIST",
        ),
        ("RuntimeError: No supported CUDA architectures found for major versions [9, 10, 11, 12].", "there is no GPU"),
        (
            "RuntimeError: No supported CUDA architectures found for major versions [10].",
            "no list of architectures helps",
        ),
        ("RuntimeError: No supported CUDA architectures found for major versions [9, 10].", "9, 10 alone"),
        ("Error in function 'TllmGenFmhaRunner' at trtllm/fmha/fmhaRunner.cuh:37: Unsupported architecture", "SM100"),
        ("RuntimeError: Unsupported SM 121", "none for 121"),
        ("ValueError: Unsupported SM major version: 12", "none for 12"),
        ("ValueError: Unsupported SM major version: 7", ""),
        ("Unsupported SMC call, try updating your firmware", ""),
        (ADMITS.format("Arch.sm_120a"), "pip install -U nvidia-cutlass-dsl"),
        (ADMITS.format("Arch.sm_100a, Arch.sm_100f, Arch.sm_103a"), "no release helps"),
        (ADMITS.format("Arch.sm_90a"), "does not have this operation"),
        ("expects arch to be at least sm_90, but got sm_86", ""),
        # Kernels.
        (
            "RuntimeError: [FP4 gemm Runner] Failed to run cutlass FP4 gemm on sm120. Error: Error Internal",
            "code for sm_120a, which does not load",
        ),
        ("RuntimeError: Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal", "101,376 bytes"),
        ("Got cutlass error: Error Internal at: 420", "code for sm_120a on GB10"),
        ("Error Internal Server Error: 500", ""),
        (
            'error: static assertion failed with "Could not build a collective for given parameters."',
            "tag Sm120",
        ),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "and not the kernel"),
        (DUMP.format("cudnn_generated_fort_native_sm120_matMul"), "names cuDNN's kernel cudnn_generated"),
        (DUMP.format("marlin_moe_wna16"), "names the kernel marlin_moe_wna16"),
        (
            "CUDA Exception: Warp Illegal Address\nThe exception was triggered at PC 0x7f31  marlin.h:12\n"
            "#0  0x00007f31abb9 in void Marlin<1, 2>(int4 const*)<<<(1,1,1),(64,1,1)>>> ()\n",
            "names the kernel Marlin",
        ),
        # A symbol has its own cause.
        (SYMBOL.format("_Z20cutlass_moe_mm_sm100RN2at6TensorERKS0_S3_bb"), "vLLM 0.11.1"),
        (SYMBOL.format("_Z24silu_and_mul_nvfp4_quantRN2at6TensorES1_S1_S1_"), "August 2025"),
        (SYMBOL.format("_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_"), "build 0.17.0"),
        (SYMBOL.format("_ZN5torch3jit17parseSchemaOrNameERKSsb"), "another release of PyTorch"),
        (SYMBOL.format("_ZN3c104cuda14ExchangeDeviceEa"), "another release of PyTorch"),
        (SYMBOL.format("_Z28cutlass_scaled_fp4_mm_sm120aRN2at6TensorE"), "left the source out"),
        (SYMBOL.format("ncclCommWindowRegister"), ""),
        (
            "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
            "compiled for CUDA 12",
        ),
        (
            "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
            "compiled for CUDA 13",
        ),
        ("OSError: libcuda.so.1: cannot open shared object file: No such file or directory", "--gpus all"),
        ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", ""),
        # Builds and servers.
        (
            "-- Building NVFP4 for archs: 12.0f\n-- Not building NVFP4 as no compatible archs were found.",
            "those for SM12x are built",
        ),
        (
            "-- Building SM12x NVFP4 for archs: 12.0f\n"
            "-- Not building SM10x/11x NVFP4/MXFP4 as no compatible archs were found.",
            "those for SM12x are built",
        ),
        ("-- Not building NVFP4 as no compatible archs were found.", "has no target with FP4 kernels"),
        (
            "-- Building NVFP4 for archs: 10.0a\n-- Not building NVFP4 as no compatible archs were found.",
            "has no target with FP4 kernels",
        ),
        (
            "-- Building SM10x/11x NVFP4/MXFP4 for archs: 10.0f\n"
            "-- Not building SM12x NVFP4 as no compatible archs were found.",
            "has no target with FP4 kernels",
        ),
        ("-- Not building Machete kernels as no compatible archs found in CUDA target architectures", ""),
        (
            "NotImplementedError: No compiled get_cutlass_moe_mm_data: no cutlass_scaled_mm kernel for CUDA device "
            "capability: 120. Required capability: 90 or 100",
            "no such kernel for 120",
        ),
        (
            "No compiled nvfp4 mm kernel for SM 121. Recompile with CUDA >= 12.8 and CC >= 100.",
            "no such kernel for 121",
        ),
        ("No compiled cutlass_scaled_mm for CUDA device capability: 75", ""),
        ("WARNING: You need pytorch with cu130 or higher to use optimized CUDA operations.", "whl/cu130"),
        ("The NVIDIA driver on your system is too old (found version 12080).", "CUDA 13.0 needs 580"),
        ("-- Autodetected CUDA architecture(s):  12.1(2.0)", "export TORCH_CUDA_ARCH_LIST=12.1a"),
        ("-- Autodetected CUDA architecture(s):  8.0 8.0", ""),
        (
            "Unknown CUDA Architecture Name 12.1(2.0) in CUDA_SELECT_NVCC_ARCH_FLAGS",
            "export TORCH_CUDA_ARCH_LIST=12.1a",
        ),
        ("Unknown CUDA Architecture Name 12.1a in CUDA_SELECT_NVCC_ARCH_FLAGS", "use a newer PyTorch"),
        # Kernels for other GPUs, and lines that look like them.
        (
            "Assertion error (/deepgemm/csrc/apis/hyperconnection.hpp:56): Unsupported architecture",
            "VLLM_USE_DEEP_GEMM=0",
        ),
        ("RuntimeError: Assertion error (.../utils/layout.hpp:56): Unknown recipe", "VLLM_USE_DEEP_GEMM=0"),
        ("Assertion error (/src/csrc/main.hpp:56): Unsupported architecture", ""),
        (
            "Sparse Attention Forward Kernel is only supported on SM90a and SM100f architectures.",
            "SM90a and SM100f, and",
        ),
        ("Attention Kernel is only supported on SM120a architectures.", ""),
        ("mm_fp4 does not support backend 'trtllm' with capability 121", "backend trtllm is for other GPUs than 121"),
        ("mm_fp4 does not support backend 'cutlass' with capability 89", ""),
        (
            "[TensorRT-LLM Error][CutlassFp4GemmRunner][GEMM Dispatch] Arch unsupported for CUTLASS FP4 GEMM",
            "0.20 or later",
        ),
        ("FP4 Gemm not supported before Blackwell, nor GeForce Blackwell", "0.20 or later"),
        ("RuntimeError: row_col_rht_gemm_ntt_w_sfc.cu:1200: CUDA Error: invalid argument", "disable_rht=True"),
        ("RuntimeError: cast_transpose.cu:120: CUDA Error: invalid argument", ""),
        (
            "CUDA error (/x/third_party/flash-attention/hopper/flash_fwd_launch_template.h:188): invalid argument",
            "FlashAttention 3",
        ),
        ("CUDA error (/x/flash-attention/csrc/flash_fwd_launch_template.h:188): invalid argument", ""),
        (
            "ValueError: NvFp4 MoE backend 'FLASHINFER_TRTLLM' does not support the deployment configuration since "
            "kernel does not support current device cuda.",
            "leave the backend to vLLM",
        ),
        ("NvFp4 MoE backend 'X' does not support the deployment configuration since the layout is another.", ""),
        ("ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!", "install the sglang-kernel"),
    ],
)
def test_a_line_of_a_report_gets_its_own_cause_and_one_that_looks_like_it_another(
    line: str, told: str, tmp_path: Path
) -> None:
    first = causes(line, tmp_path)[0]
    assert told in f"{first.found} {first.remedy}"
    assert (first.level is Level.NONE) == (not told)
    assert (first.level is Level.YELLOW) == ("false alarm" in told or "are built" in told)


def test_the_core_dump_decides_and_not_the_stack_of_python(tmp_path: Path) -> None:
    stack = "  File fused_marlin_moe.py, line 9\nCUDA error: an illegal memory access was encountered\n"
    found = causes(stack + DUMP.format("cudnn_generated_fort_native_sm120_matMul"), tmp_path)
    assert [finding.cause.partition(",")[0] for finding in found] == [
        "an illegal memory access was encountered",
        "CUDA Exception: Warp Out-of-range Address",
    ]
    assert "Marlin's, and not the kernel" in found[0].found


def test_a_log_of_another_language_or_of_no_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\xff\xfe\0" * 2000 + b"\nno kernel image is available\n" + b"[" * 9000)
    (finding,) = examine("a.log", text_of(str(tmp_path / "a.log"))).findings
    assert finding.subject == "line 2"


@pytest.mark.parametrize(
    ("name", "content", "is_read"),
    [
        ("a.log", "nvcc -arch=sm_121a -c x.cu\r\n".encode("utf-16"), True),  # PowerShell's redirection
        ("a.out.2", b"\xef\xbb\xbfnvcc -arch=sm_121a -c x.cu\n", True),
        ("nohup", b"nvcc -arch=sm_121a -c x.cu\n", True),
        ("report.md", b"    nvcc -arch=sm_121a \\\n  -c x.cu\n", True),
        ("nohup", b"nvcc -arch=sm_121a -c x.cu\n\0\0", False),
        ("nohup", b"", False),
        ("a.json", b"nvcc -arch=sm_121a -c x.cu\n", False),
    ],
)
def test_a_text_is_a_log_by_its_name_or_its_content(
    name: str, content: bytes, is_read: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    status = cli.run(["doctor", "--for", "gb10", str(tmp_path / name)])
    assert (status == 0, "sm_121 loads sm_121a" in capsys.readouterr().out) == (is_read, is_read)


def test_a_build_file_with_the_suffix_of_a_log_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "CMakeLists.txt").write_text("set(CMAKE_CUDA_ARCHITECTURES 120f)\n")
    assert cli.run(["doctor", "--for", "gb10", str(tmp_path / "CMakeLists.txt")]) == 1
    assert "CMAKE_CUDA_ARCHITECTURES 120f (CMakeLists.txt:1): sm_121 gets sm_120f" in capsys.readouterr().out


def test_the_first_cause_comes_first_and_a_false_alarm_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1. (8.0) - (12.0)\n"
    text += "an illegal instruction was encountered\n"
    (tmp_path / "run.log").write_text(text + "no kernel image is available for execution on the device\n")
    assert cli.run(["doctor", str(tmp_path / "run.log")]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()[:5]) for line in shown if re.match(r"[✗!] line", line)] == [
        "✗ line 2: an illegal",
        "✗ line 3: no kernel",
        "! line 1: Found GPU0",
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"all went well\n")))
    assert cli.run(["doctor", "--json", "-"]) == 1  # nothing was judged
    (log,) = json.loads(capsys.readouterr().out)["logs"]
    assert (log["name"], [finding["level"] for finding in log["findings"]]) == ("-", ["not-judged"])


def test_the_page_is_made_of_the_table() -> None:
    assert (Path(__file__).parents[2] / "docs/messages.md").read_text(encoding="utf-8") == page()


def test_a_log_without_a_known_message_says_what_it_states() -> None:
    flags = "nvcc -gencode=arch=compute_121a,code=sm_121a -c a.cu -o a.o\n"
    served = "Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN']\n"
    first, *others = examine("build.log", flags + served).findings
    assert first.found == "it has none of the known messages, and states targets and experts"
    assert (first.level, first.remedy, len(others)) == (Level.NONE, "", 2)
    (alone,) = examine("build.log", "nothing to do\n").findings
    assert (alone.found, bool(alone.remedy)) == ("it has none of the known messages", True)
