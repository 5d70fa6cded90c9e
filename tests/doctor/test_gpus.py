"""The driver and its GPUs, by a library with libcuda's functions."""

from __future__ import annotations

from pathlib import Path

from host_on_disk import libcuda, machine

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10
from fp4patch.doctor import gpus
from fp4patch.doctor.gpus import Driver, Gpu, ask_driver


def test_no_driver_is_fine_and_said(tmp_path: Path) -> None:
    found = ask_driver(machine(tmp_path).libcuda)
    assert found is None
    (finding,) = gpus.examine(found, "13.0")
    assert finding.level is Level.GREEN
    assert "no GPU" in finding.found


def test_the_library_is_asked(tmp_path: Path) -> None:
    libcuda(tmp_path, driver=13000)
    driver = ask_driver(machine(tmp_path).libcuda)
    assert driver == Driver("13.0", (Gpu("NVIDIA GB10", GB10),))
    assert gpus.sm12x(driver) == (GB10,)
    assert [finding.level for finding in gpus.examine(driver, "13.0")] == [Level.GREEN, Level.GREEN]


def test_a_driver_older_than_pytorchs_cuda_is_red(tmp_path: Path) -> None:
    libcuda(tmp_path, driver=12080)
    finding = gpus.examine(ask_driver(machine(tmp_path).libcuda), "13.0")[0]
    assert finding.level is Level.RED
    assert "580" in finding.remedy


def test_a_driver_that_does_not_start_is_red(tmp_path: Path) -> None:
    libcuda(tmp_path, init=999)
    (finding,) = gpus.examine(ask_driver(machine(tmp_path).libcuda), "")
    assert finding.level is Level.RED
    assert "999" in finding.found


def test_a_driver_without_gpus_is_yellow(tmp_path: Path) -> None:
    libcuda(tmp_path, init=100)
    findings = gpus.examine(ask_driver(machine(tmp_path).libcuda), "")
    assert [finding.level for finding in findings] == [Level.GREEN, Level.YELLOW]
