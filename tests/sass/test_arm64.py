"""Translated machine code as a program for arm64, GB10's host: it stores the bytes that a GPU stored.

It takes what ``tests/engine/emulation.sh`` installs, which ``make arm64`` requires.
"""

import hashlib
from pathlib import Path

import pytest
from arm64 import COMPILER
from test_golden import PROGRAMS, SAMPLES, listing, outputs
from test_grids import GRIDS, kernel, launch

from fp4patch.sass import grid
from fp4patch.sass.program import for_this_processor


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


def test_a_cross_compiler_is_not_asked_for_this_processor(emulated: None) -> None:
    assert for_this_processor(COMPILER) == (() if COMPILER != "gcc" else ("-march=native",))
