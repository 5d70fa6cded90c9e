"""Texts of nvidia-smi and of collect_env: the driver, the GPUs, the packages; and what is none of these."""

from pathlib import Path

import pytest
from test_published import index, published

from fp4patch import cli
from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.cuda import of_driver
from fp4patch.doctor import machine_texts, run
from fp4patch.doctor.gpus import Driver, Gpu

__all__ = ["published"]

SMI = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   44C    P0             10W /  N/A  | Not Supported          |      0%      Default |
|   1  NVIDIA GeForce RTX 5090 ...    Off |   00000000:01:00.0 Off |                  N/A |
"""
COLLECTED = """\
PyTorch version: 2.9.0+cu130
CUDA used to build PyTorch: 13.0
GPU models and configuration: GPU 0: NVIDIA GB10
Nvidia driver version: 580.95.05
[pip3] fp4thing==2.0
[pip3] torch==2.9.0+cu130
"""


@pytest.mark.parametrize(
    ("text", "cuda", "gpus", "built"),
    [
        (SMI, "13.0", (Arch(12, 1), Arch(12, 0)), ""),
        (SMI.replace("CUDA Version: 13.0 ", "CUDA Version: N/A  "), "13.0", (Arch(12, 1), Arch(12, 0)), ""),
        (
            "==============NVSMI LOG==============\nDriver Version      : 580.1\nCUDA Version   : 13.0\n"
            "GPU 0000:01:00.0\n    Product Name      : NVIDIA GB10\n    Product Brand  : NVIDIA\n",
            "13.0",
            (GB10,),
            "",
        ),
        (
            SMI.replace(" Driver Version:", "KMD Version:").replace("CUDA Version: 13.0", "CUDA UMD Version: 13.3"),
            "13.3",
            (GB10, Arch(12, 0)),
            "",
        ),
        ("GPU 0: NVIDIA GB10 (UUID: GPU-0123)\nGPU 1: NVIDIA L4 (UUID: GPU-1)\n", "", (GB10, Arch(8, 9)), ""),
        (COLLECTED, "13.0", (GB10,), "13.0"),
        (COLLECTED.replace(": GPU 0: NVIDIA", " : NVIDIA").replace("version:", "version  :"), "13.0", (GB10,), "13.0"),
        (COLLECTED.replace("580.95.05", "570.124.06"), "12.8", (GB10,), "13.0"),
        (COLLECTED.replace("580.95.05", "999.1"), "", (GB10,), "13.0"),
        (COLLECTED.replace("GPU 0: NVIDIA GB10", "Could not collect"), "13.0", (), "13.0"),
    ],
)
def test_each_text_gives_a_driver_its_gpus_and_pytorchs_cuda(
    text: str, cuda: str, gpus: tuple[Arch, ...], built: str
) -> None:
    found = machine_texts.read(text)
    assert found
    assert found.driver
    assert (found.driver.cuda, tuple(gpu.arch for gpu in found.driver.gpus)) == (cuda, gpus)
    assert found.torch_cuda == built


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", Arch(12, 0)),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", Arch(12, 0)),
        ("NVIDIA RTX PRO 6000 Blac...", Arch(12, 0)),
        ("NVIDIA H100 80GB HBM3", Arch(9, 0)),
        ("NVIDIA A100-SXM4-40GB", Arch(8, 0)),
        ("Tesla T4", Arch(7, 5)),
        ("NVIDIA RTX 6000 Ada Generation", Arch(8, 9)),
        ("NVIDIA L40S", Arch(8, 9)),
        ("NVIDIA GB200", Arch(10, 0)),
        ("NVIDIA GB1", None),
        ("NVIDIA Graphics Device", None),
    ],
)
def test_a_gpu_is_known_by_the_drivers_name_for_it(name: str, arch: Arch | None) -> None:
    assert machine_texts.arch_of(name) == arch


@pytest.mark.parametrize(
    "text", ["", "\0", "Killed\n", "NVIDIA-SMI", "PyTorch version: 2.9\n", "| NVIDIA-SMI 1 |\n" * 9]
)
def test_what_is_no_such_text_stays_a_log(text: str) -> None:
    assert machine_texts.read(text) is None


def test_a_driver_of_no_known_release_is_not_guessed() -> None:
    assert (of_driver("580.95.05"), of_driver("575"), of_driver("581.1"), of_driver("")) == ("13.0", "12.9", "", "")


def test_what_is_not_known_is_named() -> None:
    text = SMI.replace("NVIDIA GB10   ", "NVIDIA Thing9").replace("Driver Version: 580.95.05", "Driver Version: 999.1")
    found = machine_texts.read(text.replace("CUDA Version: 13.0", "CUDA Version: N/A"))
    assert found
    assert found.driver == Driver("", (Gpu("NVIDIA GeForce RTX 5090 ...", Arch(12, 0)),))
    said = [(one.subject, one.level) for one in machine_texts.findings(found)]
    assert said[0] == ("driver", Level.NONE)
    assert said[-1] == ("NVIDIA Thing9", Level.NONE)
    only = machine_texts.read(SMI.replace("NVIDIA GB10   ", "NVIDIA Thing9").replace("GeForce RTX 5090 ...", "Thing8"))
    assert only
    assert [one.level for one in machine_texts.findings(only)] == [Level.GREEN, Level.NONE, Level.NONE]
    failed = machine_texts.read("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    assert failed
    assert [one.level for one in machine_texts.findings(failed)] == [Level.RED]


def test_the_packages_are_answered_for_the_gpus_of_the_text(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_projects", lambda: frozenset(("fp4thing",)))
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "env.txt"
    file.write_text(COLLECTED)
    with index(published, []) as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        assert cli.run(["doctor", str(file)]) == 0
    out = capsys.readouterr().out
    assert "✓ driver: supports CUDA up to 13.0" in out
    assert "✓ fp4thing==2.0: sm_121 yes: FP4 in hardware" in out
    assert "sm_120 yes" not in out
    file.write_text(COLLECTED.replace("580.95.05", "570.1"))
    assert cli.run(["doctor", "--for", "gb10", str(file)]) == 1
    assert "supports CUDA up to 12.8, but PyTorch was built with CUDA 13.0" in capsys.readouterr().out
    file.write_text(COLLECTED.replace("GB10", "H100 80GB HBM3"))
    assert cli.run(["doctor", str(file)]) == 1
    out = capsys.readouterr().out
    assert "✗ sm_90: NVIDIA H100 80GB HBM3 is sm_90: the GPU has no FP4 instructions" in out
    assert "fp4thing" not in out
