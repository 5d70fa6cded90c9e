"""The driver and its GPUs, by a library with libcuda's functions."""

from pathlib import Path

import pytest
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


@pytest.mark.parametrize(
    ("driver", "init", "levels", "says"),
    [
        (12080, 0, [Level.RED, Level.GREEN], "PyTorch was built with CUDA 13.0"),
        (13000, 999, [Level.RED], "cuInit failed with 999"),
        (13000, 100, [Level.GREEN, Level.YELLOW], "the driver finds no GPU"),
    ],
)
def test_a_driver_that_is_too_old_or_does_not_start_is_red_and_one_without_gpus_yellow(
    tmp_path: Path, driver: int, init: int, levels: list[Level], says: str
) -> None:
    libcuda(tmp_path, driver=driver, init=init)
    findings = gpus.examine(ask_driver(machine(tmp_path).libcuda), "13.0")
    assert [finding.level for finding in findings] == levels
    (bad,) = (finding for finding in findings if finding.level is not Level.GREEN)
    assert says in bad.found
    assert bad.remedy


def test_a_container_with_the_kernels_driver_and_without_libcuda_is_red(tmp_path: Path) -> None:
    (finding,) = gpus.examine(None, "13.0", loaded=True)
    assert (finding.level, "NVIDIA_DRIVER_CAPABILITIES" in finding.remedy) == (Level.RED, True)
