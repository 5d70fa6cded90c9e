"""Discovery of compilers: the ones found, the agreement of their parts, and the one selected."""

import os
from pathlib import Path

from host_on_disk import machine, program, toolkit

from fp4patch.binaries.findings import Finding, Level
from fp4patch.doctor import compilers
from fp4patch.doctor.host import Host
from fp4patch.proof.toolchain import Toolchain


def about(findings: tuple[Finding, ...], subject: str) -> Finding:
    return next(finding for finding in findings if finding.subject == subject)


def test_finds_the_real_toolkit_of_this_python(toolchain: Toolchain) -> None:
    here = Host.here()
    kit = next(kit for kit in compilers.toolkits(here) if kit.root == toolchain.root)
    assert kit.release == toolchain.info.nvcc
    assert any("fp4patch uses it" in finding.found for finding in compilers.examine(here))


def test_finds_every_toolkit_once_wherever_it_is_named(tmp_path: Path) -> None:
    one = toolkit(tmp_path / "root/usr/local/cuda-13.0", "13.0.88")
    (tmp_path / "root/usr/local/cuda").symlink_to(one)
    two = toolkit(tmp_path / "opt/cuda-12.9", "12.9.86")
    wheels = toolkit(tmp_path / "site/nvidia/cu13", "13.2.86")
    here = machine(tmp_path)
    path = os.pathsep.join([str(two / "bin"), here.environ["PATH"]])
    here = machine(tmp_path, PATH=path, CUDA_HOME=str(one))
    found = {kit.root: kit.place for kit in compilers.toolkits(here)}
    assert found == {one: "CUDA_HOME", two: "PATH", wheels: "wheels of this Python"}


def test_a_script_that_leads_nowhere_hides_nothing_behind_it(tmp_path: Path) -> None:
    kit = toolkit(tmp_path / "opt/cuda", "13.0.88")
    program(tmp_path / "bin/nvcc", "exec ccache-of-another-machine nvcc")
    here = machine(tmp_path)
    here = machine(tmp_path, PATH=os.pathsep.join([str(tmp_path / "bin"), str(kit / "bin"), here.environ["PATH"]]))
    assert [found.root for found in compilers.toolkits(here)] == [kit]


def test_a_cuda_home_without_a_compiler_is_red_where_there_are_others(tmp_path: Path) -> None:
    toolkit(tmp_path / "root/usr/local/cuda", "13.0.88")
    finding = about(compilers.examine(machine(tmp_path, CUDA_HOME=str(tmp_path / "gone"))), "compiler")
    assert finding.level is Level.RED
    assert "CUDA_HOME" in finding.found + finding.remedy


def test_no_compiler_at_all_is_yellow(tmp_path: Path) -> None:
    (finding,) = compilers.examine(machine(tmp_path))
    assert (finding.level, finding.subject) == (Level.YELLOW, "compiler")
    assert "pip install" in finding.remedy


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    kit = toolkit(tmp_path / "root/usr/local/cuda", "13.0.88")
    program(kit / "bin/nvcc", "exit 1")
    (finding,) = compilers.examine(machine(tmp_path))
    assert (finding.subject, finding.level) == ("compiler", Level.YELLOW)
    assert str(kit) in finding.found
