"""The driver and its GPUs: what nvidia-smi prints, and a library with libcuda's functions where it is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from host_on_disk import machine, program

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GPUS, Arch
from fp4patch.doctor import gpus
from fp4patch.proof.gpu import Driver, Gpu

LIBCUDA = """
#include <string.h>
int cuDriverGetVersion(int *version) { *version = DRIVER; return 0; }
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetName(char *name, int room, int device) { strncpy(name, "NVIDIA GB10", room); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 12 : which == 76; return 0; }
"""


def libcuda(tmp_path: Path, *, driver: int = 13000, init: int = 0) -> None:
    (tmp_path / "libcuda.c").write_text(LIBCUDA)
    subprocess.run(
        ["g++", "-xc", "-shared", "-fPIC", f"-DDRIVER={driver}", f"-DINIT={init}", "libcuda.c", "-o", "libcuda.so.1"],
        cwd=tmp_path,
        check=True,
    )


def smi(tmp_path: Path, *lines: str, status: int = 0) -> None:
    text = "\n".join(lines)
    banner = "| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0     |"
    program(
        tmp_path / "tools/nvidia-smi",
        f"case \"$1\" in --query*) cat <<'END'\n{text}\nEND\nexit {status};; *) echo '{banner}';; esac",
    )


def test_no_driver_is_fine_and_said(tmp_path: Path) -> None:
    found = gpus.driver(machine(tmp_path))
    assert found is None
    (finding,) = gpus.examine(found, "13.0")
    assert finding.level is Level.GREEN
    assert "no GPU" in finding.found


def test_reads_what_nvidia_smi_prints_on_gb10_and_on_a_card(tmp_path: Path) -> None:
    here = machine(tmp_path)
    smi(
        tmp_path,
        "NVIDIA GB10, 12.1, 580.95.05, [N/A]",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 12.0, 580.95.05, 97887 MiB",
        "NVIDIA H200, 9.0, 580.95.05, 143771 MiB",
    )
    found = gpus.driver(here)
    assert found is not None
    assert (found.version, found.cuda) == ("580.95.05", "13.0")
    assert [(gpu.arch, gpu.memory) for gpu in found.gpus] == [
        (Arch(12, 1), ""),
        (Arch(12, 0), "97887 MiB"),
        (Arch(9, 0), "143771 MiB"),
    ]
    assert gpus.sm12x(found) == GPUS
    findings = gpus.examine(found, "13.0")
    assert {finding.level for finding in findings} == {Level.GREEN}
    assert ["shares the memory of the machine" in finding.found for finding in findings] == [False, True, False, False]


def test_without_nvidia_smi_the_library_is_asked(tmp_path: Path) -> None:
    libcuda(tmp_path, driver=12080)
    found = gpus.driver(machine(tmp_path))
    assert found == Driver("", "12.8", (Gpu("NVIDIA GB10", Arch(12, 1), ""),))


def test_a_driver_older_than_pytorchs_cuda_is_red(tmp_path: Path) -> None:
    libcuda(tmp_path, driver=12080)
    finding = gpus.examine(gpus.driver(machine(tmp_path)), "13.0")[0]
    assert finding.level is Level.RED
    assert "580" in finding.remedy


def test_a_driver_that_does_not_start_is_red(tmp_path: Path) -> None:
    libcuda(tmp_path, init=999)
    (finding,) = gpus.examine(gpus.driver(machine(tmp_path)), "")
    assert finding.level is Level.RED
    assert "999" in finding.found


def test_an_nvidia_smi_that_fails_is_red_in_its_own_words(tmp_path: Path) -> None:
    here = machine(tmp_path)
    smi(tmp_path, "Failed to initialize NVML: Driver/library version mismatch", status=18)
    (finding,) = gpus.examine(gpus.driver(here), "")
    assert finding.level is Level.RED
    assert "version mismatch" in finding.found


def test_a_driver_without_gpus_is_yellow(tmp_path: Path) -> None:
    here = machine(tmp_path)
    smi(tmp_path, "No devices were found")
    assert [finding.level for finding in gpus.examine(gpus.driver(here), "")] == [Level.GREEN, Level.YELLOW]
