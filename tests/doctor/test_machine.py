"""This machine as a whole: every part is examined, none may fail the others, and the requested GPUs decide."""

from dataclasses import replace
from pathlib import Path

import pytest
from host_on_disk import libcuda, machine, toolkit, torch, triton
from rich.console import Console

from fp4patch.binaries.findings import Level
from fp4patch.commands.doctor_text import report_text
from fp4patch.core.arch import Arch
from fp4patch.doctor.host import Host
from fp4patch.doctor.machine import examine
from fp4patch.doctor.result import DoctorReport


def test_the_real_machine_is_examined_with_a_remedy_for_all_that_is_not_green() -> None:
    found = examine(Host.here())
    assert {"driver", "memory"} <= {finding.subject for finding in found.findings}
    for finding in found.findings:
        assert finding.found
        assert "\n" not in finding.found + finding.remedy
        assert finding.remedy or finding.level is Level.GREEN


@pytest.fixture
def spark(tmp_path: Path) -> Host:
    """Make a DGX Spark with a Triton that does not support it."""
    site = tmp_path / "site"
    site.mkdir()
    torch(site, "2.9.1+cu130", "13.0", "sm_80 sm_90 sm_100 sm_120")
    triton(site, ptxas="12.8.93")
    toolkit(tmp_path / "root/usr/local/cuda", "13.0.88")
    libcuda(tmp_path)
    return machine(tmp_path)


@pytest.mark.parametrize(("asked", "level"), [([], Level.RED), ([Arch(12, 0)], Level.GREEN)])
def test_the_machines_own_gpu_decides_where_none_is_asked_about(spark: Host, asked: list[Arch], level: Level) -> None:
    found = examine(spark, asked)
    (triton_,) = (f for f in found.findings if f.subject.startswith("Triton"))
    assert triton_.level is level


def test_the_nvcc_in_the_usual_place_is_compared_with_pytorchs_cuda(spark: Host, tmp_path: Path) -> None:
    toolkit(tmp_path / "root/opt/cuda-12.9", "12.9.86")
    old = replace(spark, environ=dict(spark.environ) | {"CUDA_HOME": str(tmp_path / "root/opt/cuda-12.9")})
    subjects = {finding.subject: finding.level for finding in examine(old).findings}
    assert subjects["PyTorch's CUDA"] is Level.RED
    assert "PyTorch's CUDA" not in {finding.subject for finding in examine(spark).findings}


def test_a_machine_whose_gpus_have_no_fp4_is_told_first(tmp_path: Path) -> None:
    libcuda(tmp_path, name="NVIDIA GeForce RTX 4090", gpu=(8, 9))
    found = examine(machine(tmp_path))
    (answer,) = found.answers
    assert (answer.gpu, answer.level, answer.evidence) == (
        Arch(8, 9),
        Level.RED,
        ("NVIDIA GeForce RTX 4090 is sm_89",),
    )
    assert DoctorReport(found).verdict is Level.RED
    console = Console(width=100)
    with console.capture() as said:
        console.print(report_text(DoctorReport(found), details=False))
    assert said.get().startswith("✗ sm_89  no (converts): the GPU has no FP4 instructions")
    assert examine(machine(tmp_path), [Arch(12, 1)]).answers == ()


@pytest.mark.parametrize(
    ("driver", "ptxas", "level", "says"),
    [
        (13000, "13.0.88", Level.GREEN, "it has FP4 instructions, and nothing found here fails"),
        (13000, "12.8.93", Level.NONE, "something here fails: Triton"),
        (12080, "13.0.88", Level.RED, "the driver is too old"),
    ],
)
def test_a_machine_with_fp4_is_told_in_one_line(
    tmp_path: Path, driver: int, ptxas: str, level: Level, says: str
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    triton(site, ptxas=ptxas)
    libcuda(tmp_path, driver=driver)
    found = examine(machine(tmp_path))
    (answer,) = found.answers
    assert (answer.gpu, answer.level, says in answer.verdict) == (Arch(12, 1), level, True)
    console = Console(width=160)
    with console.capture() as said:
        console.print(report_text(DoctorReport(found), details=False))
    assert said.get().partition("sm_121  ")[0].strip() in ("✓", "?", "✗")
    assert examine(machine(tmp_path), [Arch(12, 1)]).answers == ()
