"""Executing real machine code of small probes: what it comes to.

They convert bfloat16, of which there are 65,536, so that every input takes no time.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cubins import compile_cuda, disassembled

from fp4patch.catalog.probe import Argument, Executes, Launches
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof import machine_code
from fp4patch.proof.execution import sweep
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.executor import execute
from fp4patch.proof.execution.result import Executed, summary
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SideName

A120, A121 = Arch(12, 0, "a"), Arch(12, 1, "a")
EIGHT = Executes(input="bfloat16", lanes=8)
ENCODERS = Path(__file__).parents[2] / "encoders"
CACHE = cache_dir() / "executions"
NANS = 8 * 127
INSTRUCTION = """
__device__ unsigned int instruction(float const (&v)[8]) {
  unsigned int packed;
  asm("{ .reg .b8 a, b, c, d;"
      "cvt.rn.satfinite.e2m1x2.f32 a, %2, %1; cvt.rn.satfinite.e2m1x2.f32 b, %4, %3;"
      "cvt.rn.satfinite.e2m1x2.f32 c, %6, %5; cvt.rn.satfinite.e2m1x2.f32 d, %8, %7; mov.b32 %0, {a, b, c, d}; }"
      : "=r"(packed)
      : "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6]), "f"(v[7]));
  return packed;
}
"""
KERNEL = """
struct alignas(16) Load {{ unsigned short value[8]; }};
extern "C" __global__ void probe(Load const* source, unsigned int* packed) {{
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Load const in = source[i];
  float v[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = __uint_as_float(in.value[k] << 16);
  packed[i] = {called};
}}
"""
ALL = ", ".join(f"v[{k}]" for k in range(8))

Build = Callable[..., ProbeCode]


@pytest.fixture
def build(toolchain: Toolchain, tmp_path: Path) -> Build:
    """A subject of the probe ``lib/eight`` that calls an encoder of ours, ``instruction``, or any expression.

    ``more`` follows the call.
    """

    def get(called: str, arch: Arch, side: SideName, promise: Promise, more: str = "") -> ProbeCode:
        source = INSTRUCTION if called == "instruction" else ""
        if (ENCODERS / f"{called}.cuh").is_file():
            source, called = (ENCODERS / f"{called}.cuh").read_text(), f"fp4patch_{called}::e2m1_x8({ALL})"
        elif called == "instruction":
            called = "instruction(v)"
        source += KERNEL.format(called=called + more)
        cubin = compile_cuda(toolchain, source, tmp_path / "probe.cubin", "-O3", "-cubin", f"-arch={arch}").read_bytes()
        text = disassembled(toolchain, cubin)
        listing = machine_code.unit_listing(text, cubin)
        return ProbeCode("lib/eight", EIGHT, arch, side, cubin, listing, promise)

    return get


@pytest.fixture
def ran(toolchain: Toolchain) -> Callable[..., Executed]:
    return lambda *subjects, cache=CACHE, **how: Executed(
        execute(subjects, toolchain=toolchain, store=Store(cache), threads=2, **how)
    )


def verdicts(executed: Executed) -> list[Verdict]:
    return [one.verdict for one in executed.executions]


def test_software_and_instruction_give_what_is_specified_and_the_second_look_runs_nothing(
    build: Build, ran: Callable[..., Executed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = build("instruction", A120, "pristine", Promise.EXACT_BUT_NAN_SIGN)
    exact = build("half_pair", A121, "patched", Promise.EXACT)
    found = ran(card, exact, cache=tmp_path / "cache")
    assert verdicts(found) == [Verdict.PASS] * 2
    assert [one.instruction for one in found.executions] == [True, False]
    assert [summary(run) for run in found.executions] == ["65,536 inputs, 0 wrong"] * 2
    assert "no proof of silicon" in found.notes[0]
    monkeypatch.setattr(sweep, "run", None)
    again = ran(card, exact, cache=tmp_path / "cache")
    assert again == found


def test_the_same_code_runs_once(build: Build, ran: Callable[..., Executed], tmp_path: Path) -> None:
    one = build("half_pair", A120, "patched", Promise.EXACT)
    steps: list[str] = []
    found = ran(one, replace(one, arch=A121), cache=tmp_path / "cache", progress=lambda step: steps.append(step.what))
    assert verdicts(found) == [Verdict.PASS] * 2
    assert len(steps) == 1


def test_upstreams_branches_run_on_a_sample_and_a_patchs_on_every_input(
    build: Build, ran: Callable[..., Executed]
) -> None:
    loop = " + ([&] { float x = v[0]; while (x > 1.f && x < 3e38f) x *= 0.37f; return x == 0.87654321f; }())"  # never
    patched = build("half_pair", A121, "patched", Promise.EXACT, loop)
    assert patched.listing
    assert patched.listing.branches
    sample, every = "138,688 records of 8, 0 wrong", "65,536 inputs, 0 wrong"
    of_both = replace(EIGHT, sampled="with-branches")
    for does, of_patch in ((replace(EIGHT, sampled="pristine-with-branches"), every), (of_both, sample)):
        code = replace(patched, does=does)
        found = ran(replace(code, side="pristine"), code)
        assert verdicts(found) == [Verdict.PASS] * 2
        assert [summary(run) for run in found.executions] == [sample, of_patch]


def test_a_nans_sign_is_a_difference_that_the_variant_declares_or_not(
    build: Build, ran: Callable[..., Executed]
) -> None:
    for promise, verdict in ((Promise.EXACT_BUT_NAN_SIGN, Verdict.PASS), (Promise.EXACT, Verdict.FAIL)):
        (found,) = ran(build("threshold", A121, "patched", promise)).executions
        assert found.verdict is verdict
        assert (found.ran.wrong, found.ran.signs) == (0, NANS)


def test_a_wrong_nibble_fails_with_the_input_that_shows_it(build: Build, ran: Callable[..., Executed]) -> None:
    found = ran(build("(unsigned int)(v[7] > 1.0f) << 28", A121, "patched", Promise.EXACT_BUT_NAN_SIGN))
    assert verdicts(found) == [Verdict.FAIL]
    assert "inputs differ" in summary(found.executions[0])


def test_an_instruction_that_is_not_known_is_unsupported_by_name(build: Build, ran: Callable[..., Executed]) -> None:
    found = ran(build("__float_as_uint(__sinf(v[0]))", A121, "patched", Promise.EXACT))
    assert verdicts(found) == [Verdict.UNSUPPORTED]
    assert verdicts(found)[0].failed
    assert "MUFU.SIN" in found.executions[0].problem


def test_a_kernel_that_stores_elsewhere_fails(build: Build, ran: Callable[..., Executed]) -> None:
    found = ran(build("0; packed[i + 1] = 0", A121, "patched", Promise.EXACT))
    assert verdicts(found) == [Verdict.FAIL]
    assert "stray store" in found.executions[0].problem


def test_a_whole_kernel_is_compared_with_upstreams_for_the_card(build: Build, ran: Callable[..., Executed]) -> None:
    does = Launches(
        arguments=(Argument(type="bfloat16", count=512), Argument(type="uint32", count=64, out=True)), block=64
    )

    def whole(called: str, arch: Arch, side: SideName) -> ProbeCode:
        return replace(build(called, arch, side, Promise.EXACT), does=does)

    card, same = whole("instruction", A120, "pristine"), whole("half_pair", A121, "patched")
    found = ran(card, same)
    assert verdicts(found) == [Verdict.PASS, Verdict.PASS]
    for one in found.executions:
        assert one.ran.wrong == 0
        assert 400 < one.ran.inputs <= 512, "two launches of 256 bytes; some are what was there before"
    wrong = ran(card, whole("(unsigned int)(v[7] > 1.0f) << 28", A121, "patched")).executions[1]
    assert (wrong.verdict, wrong.ran.wrong > 0) == (Verdict.FAIL, True)
    # Without upstream's code there is nothing to compare with, which is no pass.
    alone = ran(same).executions[0]
    assert (alone.verdict, alone.ran.inputs) == (Verdict.FAIL, 0)
    assert "nothing to compare with" in alone.problem
