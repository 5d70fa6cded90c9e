"""The encoders, and NVIDIA's own conversion, as host code on all 2^32 inputs; and sweeps that must not pass."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from remembered import remembered

from fp4patch.proof.specification import interval_lines
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[3] / "encoders"
RIGHT = (ENCODERS / "half_pair.cuh").read_text()
NANS = (1 << 23) - 1
"""Numbers of NaN with one sign."""
PROGRAM = Path(__file__).with_name("host_sweep.cpp").read_text()


def host_sweep(header: str, call: str, *, flags: tuple[str, ...] = ()) -> tuple[int, int, str]:
    """Return what is wrong with ``call``, C++ of a float ``x`` that the text of a header makes callable.

    How many inputs are wrong, how many in more than the sign, and the first ones of each interval.
    """
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

    rows = [line.split(" ", 3) for line in remembered((*command, *files.values()), printed).splitlines()]
    inputs, wrong, magnitudes = (sum(int(row[at]) for row in rows) for at in range(3))
    assert inputs == 1 << 32
    return wrong, magnitudes, " ".join(row[3] for row in rows if len(row) > 3)


@pytest.mark.parametrize("name", ["half_pair", "predicate_sum", "threshold"])
def test_every_encoder_keeps_its_promise_on_all_inputs(name: str) -> None:
    wrong = host_sweep((ENCODERS / f"{name}.cuh").read_text(), f"fp4patch_{name}::e2m1(x)")
    # Every NaN with its sign set, and nothing else: so the stricter promise would be broken.
    signs = (NANS, 0, "ff800001:7:f ff800002:7:f")
    assert wrong == ((0, 0, "") if name == "half_pair" else signs)


def test_nvidias_own_conversion_agrees_with_the_specification_on_every_input(toolchain: Toolchain) -> None:
    include = toolchain.root / "include"
    header = f"#include <cuda_fp4.h>  // of {toolchain.info.nvcc}, {toolchain.fingerprint}\n"
    call = "__nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest)"
    assert host_sweep(header, call, flags=(f"-I{include}", f"-I{include / 'cccl'}")) == (0, 0, "")


def test_a_wrong_input_a_lost_sign_and_a_nan_that_becomes_zero_are_found_and_named() -> None:
    """One of all inputs; minus zero; and every NaN, as summing (ax > threshold) makes it."""
    call = "x == 0.0f || x != x ? 0u : fp4patch_half_pair::e2m1(x) ^ (x == 0x1.234568p+1f ? 1u : 0u)"
    first = "4011a2b4:4:5 7f800001:7:0 7f800002:7:0 80000000:8:0 ff800001:7:0 ff800002:7:0"
    assert host_sweep(RIGHT, call) == (2 + 2 * NANS, 1 + 2 * NANS, first)
