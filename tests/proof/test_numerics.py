"""The specification against independent witnesses, over all 2^32 inputs; and sweeps that must not pass."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.cache import cache_dir
from fp4patch.core.errors import ProofError
from fp4patch.core.verdict import Verdict
from fp4patch.proof import numerics
from fp4patch.proof.cache import Cache
from fp4patch.proof.gpu import Gpu, find_gpu
from fp4patch.proof.inputs import InputClass, NumericsReport
from fp4patch.proof.numerics import (
    DEFINES,
    Subject,
    device_sweep,
    encoder_subjects,
    host_sweep,
    host_sweeps,
    program,
    read_device,
)
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[2] / "encoders"
PROMISES = {
    "half_pair": Promise.EXACT,
    "predicate_sum": Promise.EXACT_BUT_NAN_SIGN,
    "threshold": Promise.EXACT_BUT_NAN_SIGN,
}
NANS = (InputClass.NAN, InputClass.NEGATIVE_NAN)

# All 2^32 take a second or two where only the compiler's speed matters: this encoder is right, and cheap.
RIGHT = (ENCODERS / "half_pair.cuh").read_text()


# --- on the host -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROMISES)
def test_every_encoder_keeps_its_promise_on_all_inputs(name: str) -> None:
    report = host_sweep(ENCODERS / f"{name}.cuh", promise=PROMISES[name], cache=Cache(cache_dir() / "executions"))
    assert report.verdict is Verdict.PASS
    assert report.inputs == 1 << 32
    assert report.subject == name
    assert "g++" in report.where
    found = {row.cls: row.mismatches for row in report.rows}
    if PROMISES[name] is Promise.EXACT:
        assert set(found.values()) == {0}
    else:
        # Every NaN with its sign set, and nothing else: so the stricter promise would be broken.
        assert {cls: count for cls, count in found.items() if count} == {InputClass.NEGATIVE_NAN: (1 << 23) - 1}
        assert dataclasses.replace(report, promise=Promise.EXACT).verdict is Verdict.FAIL


@pytest.mark.parametrize("by_nvcc", [False, True])
def test_a_program_is_compiled_and_run_once_and_again_when_a_file_that_it_reads_differs(
    by_nvcc: bool, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[str]()

    def noting(command: Sequence[str], *words: Any, real: Callable[..., str] = numerics._run) -> str:
        ran.append(Path(command[0]).name)
        return real(command, *words)

    monkeypatch.setattr(numerics, "_run", noting)
    one = (Subject("half_pair", 1, "fp4patch_half_pair::e2m1(v[0]) ^ wrong(v[0])"),)

    def swept(tree: str, *, cached: bool) -> Verdict:
        ran.clear()
        (report,) = host_sweeps(
            f"{RIGHT}\n#include <wrong.h>\n",
            one,
            toolchain=toolchain if by_nvcc else None,
            include=[tmp_path / tree / "before", tmp_path / tree / "include"],
            cache=Cache(tmp_path / "cache"),
        )
        assert ran == ["g++"][by_nvcc:] + ([] if cached else ["nvcc" if by_nvcc else "g++", "sweep"])
        return report.verdict

    def header(file: str, wrong_at: str) -> None:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"inline bool wrong(float x) {{ return x == {wrong_at}; }}\n")
        os.utime(path, (0, 0))

    header("a/include/wrong.h", "9.0f && x == 1.0f")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    time.sleep(0.02)  # a file as new as the compilation itself may have changed during it
    assert swept("a", cached=False) is Verdict.PASS
    assert swept("a", cached=True) is Verdict.PASS
    assert swept("b", cached=True) is Verdict.PASS
    header("b/include/wrong.h", "1.0f")
    assert swept("b", cached=False) is Verdict.FAIL
    assert swept("b", cached=True) is Verdict.FAIL
    assert swept("a", cached=True) is Verdict.PASS
    if by_nvcc:  # which takes three seconds each time
        return
    header("a/before/wrong.h", "1.0f")
    assert swept("a", cached=False) is Verdict.FAIL


def wrong(encode: str) -> NumericsReport:
    text = RIGHT + "\nnamespace wrong { inline unsigned int e2m1(float x) {\n" + encode + "\n} }\n"
    return host_sweep("#include <cmath>\n" + text, "wrong::e2m1", promise=Promise.EXACT_BUT_NAN_SIGN)


def test_one_wrong_input_of_all_is_found_and_named() -> None:
    report = wrong("return fp4patch_half_pair::e2m1(x) ^ (x == 0x1.234568p+1f ? 1u : 0u);")
    assert report.verdict is Verdict.FAIL
    (row,) = [row for row in report.rows if row.mismatches]
    (mismatch,) = row.first
    assert (row.cls, row.mismatches, row.magnitudes) == (InputClass.FINITE, 1, 1)
    pattern = int(np.float32(float.fromhex("0x1.234568p+1")).view(np.uint32))
    assert (mismatch.input, mismatch.expected, mismatch.got) == (pattern, 4, 5)


def test_a_lost_sign_of_zero_is_found() -> None:
    report = wrong("return x == 0.0f ? 0u : fp4patch_half_pair::e2m1(x);")
    assert [row.cls for row in report.rows if row.mismatches] == [InputClass.NEGATIVE_ZERO]
    assert report.verdict is Verdict.FAIL


def test_a_nan_that_becomes_zero_breaks_even_the_weaker_promise() -> None:
    # The result of summing (ax > threshold).
    report = wrong("return std::isnan(x) ? 0u : fp4patch_half_pair::e2m1(x);")
    assert {row.cls: row.magnitudes for row in report.rows if row.mismatches} == dict.fromkeys(NANS, (1 << 23) - 1)
    assert report.verdict is Verdict.FAIL


def test_inputs_that_were_not_run_are_a_failure() -> None:
    report = NumericsReport("nothing", "nowhere", 1, (), Promise.EXACT, 0.0)
    assert report.verdict is Verdict.FAIL


def test_an_encoder_that_does_not_compile_is_refused_with_the_compilers_words() -> None:
    with pytest.raises(ProofError, match="does not compile for the host") as caught:
        host_sweep("int", "no::such_function")
    assert "error" in caught.value.help


def test_a_missing_compiler_is_refused() -> None:
    with pytest.raises(ProofError, match="there is no no-such-compiler"):
        host_sweep(ENCODERS / "half_pair.cuh", compiler="no-such-compiler")


# --- on a GPU --------------------------------------------------------------------------------------------------------

WRITTEN = """\
device NVIDIA H200 sm_90
subject half_pair x1
0 1 0 0
1 1 0 0
2 4278190078 245282 245282 3e7f0080:0:1
3 2 0 0
4 8388607 0 0
5 8388607 0 0
subject threshold x2
0 2 0 0
1 2 0 0
2 8556380156 0 0
3 4 0 0
4 16777214 0 0
5 16777214 16777214 0 ff800001:7:f
"""
WRITTEN_BY = (Subject("half_pair x1", 1, ""), Subject("threshold x2", 2, ""))


def test_what_a_sweep_on_a_gpu_wrote_is_read() -> None:
    # As an early half_pair really came out on that GPU: its single value rounded the lower byte too.
    single, double = read_device(WRITTEN, WRITTEN_BY, promise=Promise.EXACT_BUT_NAN_SIGN, seconds=1.0)
    assert single.where == "NVIDIA H200 sm_90"
    assert single.verdict is Verdict.FAIL
    assert single.rows[2].first[0].input == 0x3E7F_0080
    assert double.verdict is Verdict.PASS
    assert double.inputs == 2 << 32


@pytest.mark.parametrize("kept", [1, 4, 8, 10])
def test_a_sweep_that_ended_early_never_passes(kept: int) -> None:
    cut = "".join(WRITTEN.splitlines(keepends=True)[:kept])
    try:
        reports = read_device(cut, WRITTEN_BY, promise=Promise.EXACT_BUT_NAN_SIGN, seconds=1.0)
    except ProofError as error:
        assert "ended after" in error.message  # noqa: PT017 - either is right, a pass is not
    else:
        assert reports[-1].verdict is Verdict.FAIL


def test_lanes_that_do_not_divide_the_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="3 lanes"):
        Subject("three", 3, "0")


def test_the_sweep_compiles_for_the_software_path(tmp_path: Path, toolchain: Toolchain) -> None:
    encoder = ENCODERS / "half_pair.cuh"
    for name, text in program("device.cu", encoder.read_text(), encoder_subjects(encoder)).items():
        (tmp_path / name).write_text(text)
    command = [str(toolchain.nvcc), *toolchain.flags, "-std=c++17", "-cubin", "-arch=sm_90", "-Werror=all-warnings"]
    done = subprocess.run(
        [*command, *DEFINES, "device.cu", "-o", "sweep.cubin"],
        cwd=tmp_path,
        env=dict(toolchain.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sweep.cubin").stat().st_size > 0


def test_no_gpu_is_an_answer() -> None:
    gpu = find_gpu()
    assert gpu is None or gpu.arch >= Arch(5, 0)


@pytest.mark.skipif(find_gpu() is None, reason="no CUDA GPU in this machine")
@pytest.mark.parametrize("name", PROMISES)
def test_every_encoder_keeps_its_promise_on_the_gpu_in_every_lane(name: str, toolchain: Toolchain) -> None:
    gpu = find_gpu()
    assert isinstance(gpu, Gpu)
    encoder = ENCODERS / f"{name}.cuh"
    subjects = encoder_subjects(encoder)
    reports = device_sweep(encoder.read_text(), subjects, toolchain=toolchain, gpu=gpu, promise=PROMISES[name])
    assert [report.verdict for report in reports] == [Verdict.PASS] * len(subjects)
