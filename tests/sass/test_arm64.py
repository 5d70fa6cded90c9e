"""Translated machine code as a program for arm64, GB10's host: it stores the bytes that a GPU stored.

It takes what ``tests/engine/emulation.sh`` installs, which ``make arm64`` requires.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from test_golden import PROGRAMS, SAMPLES, SM_90, listing, outputs
from test_grids import GRIDS, kernel, launch

from fp4patch.catalog.probe import Executes
from fp4patch.core.process import Runner
from fp4patch.proof.execution import sweep
from fp4patch.sass import grid
from fp4patch.sass.program import for_this_processor
from fp4patch.sass.translate import translate

# What the program of a sweep counts on x86-64: inputs, and NaNs that keep their sign, at the corners and in the sweep.
SWEPT = {
    "encoder.threshold": (Executes(input="float32", lanes=8), (90112, 2439), (1 << 22, 8191)),
    "cutlass-4.7.0.next3.encode-half-x8": (Executes(input="float16", lanes=8), (73728, 0), (1 << 13, 0)),
}
COMPILER = "gcc" if platform.machine() == "aarch64" else "aarch64-linux-gnu-gcc"


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip where a program for arm64 cannot be made and run."""
    if COMPILER != "gcc":
        monkeypatch.setenv("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu")
    (tmp_path / "none.c").write_text("int main(void) { return (char)-1 < 0; }\n")  # char is unsigned there
    made = shutil.which(COMPILER) and subprocess.run([COMPILER, "none.c", "-o", "none"], cwd=tmp_path, check=False)
    try:
        works = bool(made) and not subprocess.run([tmp_path / "none"], check=False).returncode
    except OSError:
        works = False
    if not works:
        assert os.environ.get("FP4PATCH_TEST_MACHINE") != "arm64", f"{COMPILER} or emulation is missing"
        pytest.skip(f"there is no {COMPILER}, or what it makes does not run here")


@pytest.mark.parametrize("name", GRIDS)
def test_lifted_warps_give_on_arm64_what_the_gpu_gave(name: str, emulated: None, tmp_path: Path) -> None:
    lifted = kernel(name)
    program = grid.build(tmp_path, lifted, compiler=COMPILER)
    assert int.from_bytes(program.read_bytes()[18:20], "little") == 183  # e_machine of aarch64
    stored, _ = grid.run(program, lifted, launch(GRIDS[name], 1))
    assert [hashlib.sha256(one).hexdigest() for one in stored] == GRIDS[name]["written"]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith(("opcodes.", "encoder."))])
def test_lifted_opcodes_give_on_arm64_what_the_gpu_gave(name: str, emulated: None, tmp_path: Path) -> None:
    """NaNs, rounding, integers out of range: here processors differ, and C leaves some undefined."""
    made = outputs(name, tmp_path, listing(name), ("sample", SAMPLES), compiler=COMPILER)
    assert made == [PROGRAMS[name]["sample"]]


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_counts_on_arm64_what_it_counts_on_x86_64(
    name: str, emulated: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executes, corners, swept = SWEPT[name]
    monkeypatch.setattr(sweep, "_WIDE", ())  # it is this machine's, which the cross compiler does not compile for
    program = sweep.build(tmp_path, translate(listing(name), arch=SM_90), executes, compiler=COMPILER)
    found = sweep.run(Runner(dict(os.environ)), program, threads=2, stride=1 << 10)
    assert [(one.inputs, one.signs, one.wrong) for one in found] == [(*corners, 0), (*swept, 0)]


def test_a_cross_compiler_is_not_asked_for_this_processor(emulated: None) -> None:
    assert for_this_processor(COMPILER) == (() if COMPILER != "gcc" else ("-march=native",))
