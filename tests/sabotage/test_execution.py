"""Sabotage that only the execution of machine code shows: launch state, poison, scales, their order, exchanged values.

Each mutant is compiled by the real compiler from the real probe and executed as ``verify`` does it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cubins import compile_cuda, disassembled

from fp4patch.catalog.manifest import load
from fp4patch.catalog.probe import CARD, Executes, Quantizes
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.process import Runner
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof import machine_code
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.executor import execute
from fp4patch.proof.execution.result import Execution
from fp4patch.proof.probe import Compiler
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side, SourceView

ARCH = Arch(12, 1, "a")
ENCODERS = Path(__file__).parents[2] / "encoders"


def run(toolchain: Toolchain, does: Executes | Quantizes, code: bytes, upstream: bytes = b"") -> Execution:
    """Execute a mutant, beside upstream's code if there is some."""
    subjects = []
    for content, side, arch in ((upstream, "pristine", CARD), (code, "patched", ARCH)):
        if content:
            listing = machine_code.unit_listing(disassembled(toolchain, content), content)
            subjects.append(ProbeCode("lib/mutant", does, arch, side, content, listing, Promise.EXACT))  # type: ignore[arg-type]  # sides
    # A changed kernel, lifter or comparison is executed anew.
    return execute(subjects, toolchain=toolchain, store=Store(cache_dir() / "executions"))[-1]


# --- one value, or eight, of a thread --------------------------------------------------------------------------------

HALF_PAIR = (ENCODERS / "half_pair.cuh").read_text(encoding="utf-8")
PROBE = """
#include <cstdint>
struct alignas(16) Load {{ unsigned short value[8]; }};
extern "C" __global__ void probe(Load const* source, unsigned int* packed) {{
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Load const in = source[i];
  float v[8];
  for (int k = 0; k < 8; ++k) v[k] = __uint_as_float(in.value[k] << 16);
  unsigned int result = fp4patch_half_pair::e2m1_x8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
  {sabotage}
  packed[i] = result;
}}
"""
SABOTAGED = {
    "the stack pointer": 'asm volatile("{ .local .b32 slot; .reg .b64 a; mov.u64 a, slot; .reg .b32 l, h;'
    ' mov.b64 {l, h}, a; xor.b32 %0, %0, l; }" : "+r"(result));',
    "a block's index": "if (blockIdx.x > 1) result ^= 1;",
    "one block of a million": "if (blockIdx.x == 777777) result ^= 1;",
    "the block's size": "if (blockDim.x == 256) result ^= 8;",
    "the grid's size": "result ^= gridDim.x == 12345;",
    "the thread's index": "if (threadIdx.x == 1000) result ^= 0x70000000;",
    "an address": "result ^= reinterpret_cast<uintptr_t>(packed) >> 36 == 5;",
    "another thread's record": "result ^= source[i ^ (blockIdx.x > 3)].value[0] - in.value[0];",
    "a thread that stores nothing": "if (threadIdx.x == 1001) return;",
    "one value in one lane": "result ^= in.value[5] == 0x3f12 ? 0x100000 : 0;",
}


def cubin(toolchain: Toolchain, folder: Path, source: str) -> bytes:
    return compile_cuda(toolchain, source, folder / "probe.cubin", "-O3", "-cubin", f"-arch={ARCH}").read_bytes()


def compiled(toolchain: Toolchain, folder: Path, sabotage: str) -> bytes:
    return cubin(toolchain, folder, HALF_PAIR + PROBE.format(sabotage=sabotage))


EIGHT = Executes(input="bfloat16", lanes=8)


@pytest.mark.parametrize("what", SABOTAGED)
def test_a_conversion_that_depends_on_something_else_is_found(what: str, toolchain: Toolchain, tmp_path: Path) -> None:
    found = run(toolchain, EIGHT, compiled(toolchain, tmp_path, SABOTAGED[what]))
    assert found.verdict is Verdict.FAIL, what


def test_without_sabotage_it_passes(toolchain: Toolchain, tmp_path: Path) -> None:
    found = run(toolchain, EIGHT, compiled(toolchain, tmp_path, ""))
    assert found.verdict is Verdict.PASS
    assert found.problem == ""


# --- blocks with scales, and decoding --------------------------------------------------------------------------------

VLLM = "csrc/quantization/fp4/nvfp4_utils.cuh"
BLOCK = "vllm/half-block-to-nvfp4"
MATRIX = "vllm/half-matrix-to-nvfp4"
POWER = "vllm/bf16-block-to-mxfp4"
WRITE = "if (SFout) *SFout = fp8SFVal;"
NOT_ZERO = "SFValue != 0.0f\n                      ? reciprocal"
SIXTH = "SFScaleVal * (vecMax * reciprocal_approximate_ftz(6.0f))"
MUTANTS: dict[str, tuple[str, str, str]] = {
    "a scale's code off by one": (BLOCK, WRITE, "if (SFout) *SFout = fp8SFVal + (fp8SFVal == 0x3b);"),
    "a scale one float off": (BLOCK, SIXTH, "SFScaleVal * (vecMax * 0.16666669f)"),
    "a scale rounded down": (BLOCK, SIXTH, "SFScaleVal * (vecMax * 0.16666667f) * 0.99999994f"),
    "a factor one float off": (BLOCK, "fp2Vals[i].y *= outputScale;", "fp2Vals[i].y *= outputScale * 1.0000001f;"),
    "no maximum of the other thread": (BLOCK, "__shfl_xor_sync(0xffffffffu, localMax, 1)", "localMax"),
    "the maximum of another block": (BLOCK, "localMax, 1)", "localMax, 2)"),
    "a block of zeros not looked at": (BLOCK, NOT_ZERO, "true ? reciprocal"),
    "a block scaled otherwise": (BLOCK, "float SFValue;", "if (blockIdx.x == 77) vecMax = 1.f; float SFValue;"),
    "rows and columns swapped": (MATRIX, "(outerMIdx << 4) | (innerMIdx << 2)", "(innerMIdx << 7) | (outerMIdx << 2)"),
    "tiles of fewer columns": (MATRIX, "int32_t kTileIdx = kIdx >> 2;", "int32_t kTileIdx = kIdx >> 3;"),
    "scales of the second tile of rows": (MATRIX, "mIdx >> 7;", "mIdx >> 8;"),
    "a power of two too large": (POWER, "(1u << 21)", "(1u << 22)"),
    "no smallest power": (POWER, "(biased_exp > 2u) ? (biased_exp - 2u) : 0u", "biased_exp - 2u"),
}


@pytest.fixture(scope="module")
def built(toolchain: Toolchain, pristine_tree: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """The probe's execution, of a vLLM with ``before`` replaced in a header: ``built(probe, before, after)``."""
    catalog = load()
    probes = {p.id: (p, Path(patch.directory) / p.source) for patch in catalog.patches.values() for p in patch.probes}

    def made(probe: str, before: str, after: str, arch: Arch) -> bytes:
        tree = tmp_path_factory.mktemp("vllm")
        shutil.copytree(pristine_tree("vllm", "0.33.0") / "csrc", tree / "csrc")
        header = tree / VLLM
        text = header.read_text()
        assert not before or text.count(before) == 1
        header.write_text(text.replace(before, after) if before else text)
        target = catalog.target("vllm")
        side = Side(SourceView(tree), target, tmp_path_factory.mktemp("side"))
        compiler = Compiler(toolchain, target, Runner(toolchain.environ), Store(cache_dir() / "compilations"))
        compiled = compiler.compile(*probes[probe], arch, side)
        assert not compiled.error, compiled.error
        return compiled.content

    def get(probe: str, before: str = "", after: str = "") -> Execution:
        does = probes[probe][0].quantizes
        assert does
        return run(toolchain, does, made(probe, before, after, ARCH), made(probe, "", "", CARD))

    return get


@pytest.mark.parametrize("what", MUTANTS)
def test_wrong_scales_and_their_order_are_found(what: str, built: Callable[..., Execution]) -> None:
    found = built(*MUTANTS[what])
    assert found.verdict is Verdict.FAIL, what
    assert found.problem or found.ran.first


@pytest.mark.parametrize("probe", [BLOCK, MATRIX, POWER])
def test_upstreams_own_blocks_pass(probe: str, built: Callable[..., Execution]) -> None:
    found = built(probe)
    assert (found.verdict, found.problem) == (Verdict.PASS, "")
    assert found.ran.inputs > 8000


def test_decoding_that_is_wrong_for_one_code_in_one_lane_is_found(toolchain: Toolchain, tmp_path: Path) -> None:
    decode = """
#include <cuda_fp16.h>
extern "C" __global__ void probe(unsigned int const* packed, uint4* values) {{
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned int const in = packed[i];
  unsigned int out[4];
  for (int k = 0; k < 4; ++k)
    asm("{{ .reg .b8 b; cvt.u8.u32 b, %1; cvt.rn.f16x2.e2m1x2 %0, b; }}" : "=r"(out[k]) : "r"(in >> 8 * k & 255));
  {sabotage}
  values[i] = make_uint4(out[0], out[1], out[2], out[3]);
}}
"""
    does = Executes(input="e2m1", lanes=8, output="float16")
    verdicts = []
    for sabotage in (
        "",
        "if ((in >> 20 & 15) == 9) out[2] ^= 0x80000000u;",
        "if ((in & 0xf000f0) == 0x300020) out[0] ^= 1;",
    ):
        verdicts.append(run(toolchain, does, cubin(toolchain, tmp_path, decode.format(sabotage=sabotage))).verdict)
    assert verdicts == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]
