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
from test_grids import GRIDS, kernel, launch

from fp4patch.sass import grid
from fp4patch.sass.program import for_this_processor

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


def test_a_cross_compiler_is_not_asked_for_this_processor(emulated: None) -> None:
    assert for_this_processor(COMPILER) == (() if COMPILER != "gcc" else ("-march=native",))
