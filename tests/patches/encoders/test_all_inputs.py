"""The encoders, and NVIDIA's own conversion, as host code on all 2^32 inputs; and sweeps that must not pass."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from host_sweep import host_sweep

from fp4patch.catalog.rule import Promise
from fp4patch.core.verdict import Verdict
from fp4patch.proof.sweep_result import InputClass, NumericsReport
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[3] / "encoders"
RIGHT = (ENCODERS / "half_pair.cuh").read_text()
NANS = (InputClass.NAN, InputClass.NEGATIVE_NAN)


@pytest.mark.parametrize("name", ["half_pair", "predicate_sum", "threshold"])
def test_every_encoder_keeps_its_promise_on_all_inputs(name: str) -> None:
    promise = Promise.EXACT if name == "half_pair" else Promise.EXACT_BUT_NAN_SIGN
    report = host_sweep((ENCODERS / f"{name}.cuh").read_text(), f"fp4patch_{name}::e2m1(x)", promise=promise)
    assert (report.verdict, report.inputs) == (Verdict.PASS, 1 << 32)
    if promise is Promise.EXACT:
        assert not [row for row in report.rows if row.mismatches]
    else:
        # Every NaN with its sign set, and nothing else: so the stricter promise would be broken.
        wrong = {row.cls: row.mismatches for row in report.rows if row.mismatches}
        assert wrong == {InputClass.NEGATIVE_NAN: (1 << 23) - 1}
        assert dataclasses.replace(report, promise=Promise.EXACT).verdict is Verdict.FAIL


def test_nvidias_own_conversion_agrees_with_the_specification_on_every_input(toolchain: Toolchain) -> None:
    include = toolchain.root / "include"
    header = f"#include <cuda_fp4.h>  // of {toolchain.info.nvcc}, {toolchain.fingerprint}\n"
    call = "__nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest)"
    report = host_sweep(header, call, flags=(f"-I{include}", f"-I{include / 'cccl'}"))
    assert (report.verdict, report.inputs) == (Verdict.PASS, 1 << 32)


def wrong(call: str) -> NumericsReport:
    return host_sweep(RIGHT, call, promise=Promise.EXACT_BUT_NAN_SIGN)


def test_one_wrong_input_of_all_is_found_and_named() -> None:
    report = wrong("fp4patch_half_pair::e2m1(x) ^ (x == 0x1.234568p+1f ? 1u : 0u)")
    assert report.verdict is Verdict.FAIL
    (row,) = [row for row in report.rows if row.mismatches]
    (mismatch,) = row.first
    assert (row.cls, row.mismatches, row.magnitudes) == (InputClass.FINITE, 1, 1)
    assert (mismatch.input, mismatch.expected, mismatch.got) == (0x4011A2B4, 4, 5)


def test_a_lost_sign_of_zero_is_found() -> None:
    report = wrong("x == 0.0f ? 0u : fp4patch_half_pair::e2m1(x)")
    assert [row.cls for row in report.rows if row.mismatches] == [InputClass.NEGATIVE_ZERO]
    assert report.verdict is Verdict.FAIL


def test_a_nan_that_becomes_zero_breaks_even_the_weaker_promise() -> None:
    report = wrong("x != x ? 0u : fp4patch_half_pair::e2m1(x)")  # as summing (ax > threshold) does
    assert {row.cls: row.magnitudes for row in report.rows if row.mismatches} == dict.fromkeys(NANS, (1 << 23) - 1)
    assert report.verdict is Verdict.FAIL


def test_inputs_that_were_not_run_are_a_failure() -> None:
    assert NumericsReport("nothing", "nowhere", 1, (), Promise.EXACT, 0.0).verdict is Verdict.FAIL
