"""Programs for arm64, GB10's host, made by a cross compiler and run in emulation where this machine is another."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

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
