"""The encoders, and NVIDIA's own conversion, as host code on all 2^32 inputs; and sweeps that must not pass."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from remembered import remembered

from fp4patch.catalog.rule import Promise
from fp4patch.proof.execution.result import Sweep, SweepRow
from fp4patch.proof.specification import InputClass, interval_lines
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[3] / "encoders"
RIGHT = (ENCODERS / "half_pair.cuh").read_text()
PROGRAM = Path(__file__).with_name("host_sweep.cpp").read_text()


def host_sweep(header: str, call: str, *, flags: tuple[str, ...] = ()) -> Sweep:
    """Return the result of ``call``, C++ of a float ``x`` that the text of a header makes callable."""
    files = {
        "sweep.cpp": PROGRAM,
        "subject.inc": f"{header}\nstatic inline unsigned int encode(float x) {{ return {call}; }}\n",
        "intervals.inc": interval_lines(),
    }
    command = ("g++", "-std=c++17", "-O3", "-march=native", "-fopenmp", *flags, "sweep.cpp", "-o", "sweep")

    def printed() -> str:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).write_text(text)
            subprocess.run(command, cwd=folder, check=True)
            return subprocess.run([f"{folder}/sweep"], capture_output=True, text=True, check=True).stdout

    rows = tuple(SweepRow.parse(line) for line in remembered((*command, *files.values()), printed).splitlines())
    return Sweep(1, rows)


@pytest.mark.parametrize("name", ["half_pair", "predicate_sum", "threshold"])
def test_every_encoder_keeps_its_promise_on_all_inputs(name: str) -> None:
    promise = Promise.EXACT if name == "half_pair" else Promise.EXACT_BUT_NAN_SIGN
    report = host_sweep((ENCODERS / f"{name}.cuh").read_text(), f"fp4patch_{name}::e2m1(x)")
    assert (report.keeps(promise), report.inputs) == (True, 1 << 32)
    if promise is Promise.EXACT:
        assert not [row for row in report.rows if row.mismatches]
    else:
        # Every NaN with its sign set, and nothing else: so the stricter promise would be broken.
        wrong = {row.cls: row.mismatches for row in report.rows if row.mismatches}
        assert wrong == {InputClass.NEGATIVE_NAN: (1 << 23) - 1}
        assert not report.keeps(Promise.EXACT)


def test_nvidias_own_conversion_agrees_with_the_specification_on_every_input(toolchain: Toolchain) -> None:
    include = toolchain.root / "include"
    header = f"#include <cuda_fp4.h>  // of {toolchain.info.nvcc}, {toolchain.fingerprint}\n"
    call = "__nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest)"
    report = host_sweep(header, call, flags=(f"-I{include}", f"-I{include / 'cccl'}"))
    assert (report.keeps(Promise.EXACT), report.inputs) == (True, 1 << 32)


def test_a_wrong_input_a_lost_sign_and_a_nan_that_becomes_zero_are_found_and_named() -> None:
    """One of all inputs; minus zero; and every NaN, as summing (ax > threshold) makes it."""
    call = "x == 0.0f || x != x ? 0u : fp4patch_half_pair::e2m1(x) ^ (x == 0x1.234568p+1f ? 1u : 0u)"
    report = host_sweep(RIGHT, call)
    assert not report.keeps(Promise.EXACT_BUT_NAN_SIGN)
    wrong = {row.cls: row for row in report.rows if row.mismatches}
    assert {*wrong} == {InputClass.FINITE, InputClass.NEGATIVE_ZERO, InputClass.NAN, InputClass.NEGATIVE_NAN}
    (mismatch,) = wrong[InputClass.FINITE].first
    assert (wrong[InputClass.FINITE].mismatches, wrong[InputClass.FINITE].magnitudes) == (1, 1)
    assert (mismatch.input, mismatch.expected, mismatch.got) == (0x4011A2B4, 4, 5)
    assert (wrong[InputClass.NEGATIVE_ZERO].mismatches, wrong[InputClass.NEGATIVE_ZERO].magnitudes) == (1, 0)
    assert all(row.breaks(Promise.EXACT_BUT_NAN_SIGN) for row in wrong.values())
    assert wrong[InputClass.NAN].magnitudes == wrong[InputClass.NEGATIVE_NAN].magnitudes == (1 << 23) - 1


def test_inputs_that_were_not_run_are_a_failure() -> None:
    assert not Sweep(1, ()).keeps(Promise.EXACT)
