"""Compilers that run later and another Python's packages."""

import io
import json
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from cubins import CONVERTS, compile_cuda, targets, wheel_of
from host_on_disk import distribution, machine

from fp4patch import cli
from fp4patch.binaries import scan
from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.errors import UsageError
from fp4patch.doctor import packages
from fp4patch.doctor.host import Host
from fp4patch.doctor.machine import examine
from fp4patch.proof.toolchain import Toolchain

BIN = "triton/backends/nvidia/bin"
OLD = b"\x7fELF\x02\x01\x01" + bytes(5000) + b"Cuda compilation tools, release 12.8, V12.8.93\0sm_120\0sm_120a\0"
"""As far as doctor reads Triton 3.5.0's ptxas."""


def test_tritons_assembler_in_a_wheel_decides_for_the_gpu(toolchain: Toolchain, tmp_path: Path) -> None:
    old = wheel_of(tmp_path / "triton-3.5.0-cp312-none-any.whl", {f"{BIN}/ptxas": OLD})
    report = scan.examine(old)
    (found,) = report.compilers
    assert (found.role, found.release, found.unsupported, found.level) == (
        "Triton's assembler",
        "12.8.93",
        (GB10,),
        Level.RED,
    )
    assert Level.RED in report.levels
    assert Level.RED not in scan.examine(old, gpus=[Arch(12, 0)]).levels
    real = (toolchain.root / "bin/ptxas").read_bytes()
    both = wheel_of(tmp_path / "triton-3.6.0-cp312-none-any.whl", {f"{BIN}/ptxas": OLD, f"{BIN}/ptxas-blackwell": real})
    assert [(one.release, one.level) for one in scan.examine(both).compilers] == [(toolchain.info.ptxas, Level.GREEN)]


def test_compilers_in_a_tar_and_in_a_directory_are_found_with_the_role_of_their_place(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    with tarfile.open(archive, "w") as tar:
        for name in (f"usr/lib/python3/{BIN}/ptxas", "usr/local/cuda/bin/ptxas"):
            info = tarfile.TarInfo(name)
            info.size = len(OLD)
            tar.addfile(info, io.BytesIO(OLD))
    assert [(one.role, one.level) for one in scan.examine(archive).compilers] == [
        ("Triton's assembler", Level.RED),
        ("assembler", Level.YELLOW),
    ]
    for place in (BIN, "cuda/bin"):
        (tmp_path / "site" / place).mkdir(parents=True)
        (tmp_path / "site" / place / "ptxas").write_bytes(OLD)
    found = scan.examine(tmp_path / "site").compilers
    assert {(Path(one.name).parts[0], one.role) for one in found} == {
        ("cuda", "assembler"),
        ("triton", "Triton's assembler"),
    }


# --- another Python --------------------------------------------------------------------------------------------------


def test_the_packages_of_a_named_python_and_of_an_active_environment_are_looked_at(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    site = next((tmp_path / "env/lib").glob("python3*/site-packages"))
    distribution(site, "vllm", "0.33.0+fp4patch.next3")
    (site / "vllm").mkdir()
    compile_cuda(toolchain, CONVERTS, site / "vllm/_C.so", "-c", *targets("120f"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert Host.here().python == sys.executable
    for python in (str(tmp_path / "env"), str(tmp_path / "env/bin/python")):
        assert site in Host.here(python).site_packages
    monkeypatch.chdir(tmp_path)
    assert site in Host.here("env").site_packages
    assert Host.here("python3").site_packages
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    built, code = packages.examine_packages(Host.here(), [GB10], "")
    assert "the variant next3 of fp4patch" in built.found
    assert (code.subject, code.level) == ("vLLM's code", Level.YELLOW)
    assert "sm_121: it converts in hardware" in code.found
    cli.run(["doctor", "--json", str(tmp_path / "env"), "--for", "sm_121"])
    document = json.loads(capsys.readouterr().out)
    subjects = {finding["subject"] for finding in document["machine"]["findings"]}
    assert "vLLM's code" in subjects
    for name in (str(site / "vllm"), "vllm"):
        cli.run(["doctor", "--for", "sm_121", name])
        assert "the variant next3 of fp4patch" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/cat"])
def test_what_is_no_python_is_a_usage_error(python: str) -> None:
    with pytest.raises(UsageError, match="does not run as a Python"):
        Host.here(python)


def test_what_was_not_looked_at_has_no_check_mark_and_says_how_to(tmp_path: Path) -> None:
    (finding,) = (finding for finding in examine(machine(tmp_path)).findings if finding.subject == "packages")
    assert finding.level is Level.NONE
    assert "fp4patch doctor .venv" in finding.remedy
