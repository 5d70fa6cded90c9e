"""PyTorch, Triton, FlashInfer and lists of architectures: what is read from files, and what it means."""

from pathlib import Path

import pytest
from host_on_disk import distribution, machine, tool, toolkit, torch, triton

from fp4patch.binaries.findings import Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor import compilers, packages


def test_asks_a_python_of_its_own_about_pytorch(tmp_path: Path) -> None:
    torch(tmp_path / "site", "2.9.1+cu130", "13.0", "sm_80 sm_90 sm_100 sm_120 compute_120")
    found = packages.torch(machine(tmp_path))
    assert found == packages.Torch("2.9.1+cu130", "13.0", ("sm_80", "sm_90", "sm_100", "sm_120", "compute_120"))


def test_a_pytorch_with_no_code_for_a_gpu_that_nobody_asks_about_is_green(tmp_path: Path) -> None:
    torch(tmp_path / "site", "2.6.0+cu124", "12.4", "sm_80 sm_90")
    (finding,) = packages.examine_torch(packages.torch(machine(tmp_path)), [], "12.4.1")
    assert finding.level is Level.GREEN


@pytest.mark.parametrize(
    ("cuda", "code", "says"),
    [(None, "", "built without CUDA"), ("13.0", "raise ImportError('libcudnn.so.9')\n", "`import torch` fails")],
)
def test_a_pytorch_without_cuda_or_that_does_not_import_is_yellow(
    tmp_path: Path, cuda: str | None, code: str, says: str
) -> None:
    torch(tmp_path / "site", "2.9.1", cuda, "sm_120")
    with (tmp_path / "site/torch/__init__.py").open("a") as module:
        module.write(code)
    (finding,) = packages.examine_torch(packages.torch(machine(tmp_path)), [GB10], "")
    assert (finding.level, says in finding.found) == (Level.YELLOW, True)


@pytest.mark.parametrize(("gpus", "level"), [([GB10], Level.RED), ([Arch(12, 0)], Level.GREEN), ([], Level.YELLOW)])
def test_tritons_assembler_must_know_sm_121a(tmp_path: Path, gpus: list[Arch], level: Level) -> None:
    triton(tmp_path / "site", ptxas="12.8.93")
    (finding,) = packages.examine_compilers(machine(tmp_path), gpus)
    assert (finding.subject, finding.level) == ("Triton's assembler 12.8.93", level)
    assert ("TRITON_PTXAS_PATH" in finding.remedy) is (level is not Level.GREEN)


def test_triton_takes_its_blackwell_assembler_where_it_has_one(tmp_path: Path) -> None:
    triton(tmp_path / "site", ptxas="12.8.93", ptxas_blackwell="12.9.86")
    (finding,) = packages.examine_compilers(machine(tmp_path), [GB10])
    assert (finding.subject, finding.level) == ("Triton's assembler 12.9.86", Level.GREEN)


def test_tritons_assembler_can_be_replaced_by_the_environment(tmp_path: Path) -> None:
    triton(tmp_path / "site", ptxas="12.8.93")
    better = tool(tmp_path / "opt/ptxas", "13.0.88")
    (finding,) = packages.examine_compilers(machine(tmp_path, TRITON_PTXAS_PATH=str(better)), [GB10])
    assert (finding.subject, finding.level) == ("Triton's assembler 13.0.88", Level.GREEN)
    (gone,) = packages.examine_compilers(machine(tmp_path, TRITON_PTXAS_PATH="/nowhere/ptxas"), [GB10])
    assert gone.level is Level.RED


def test_what_bypasses_a_patched_flashinfer_is_named(tmp_path: Path) -> None:
    site = tmp_path / "site"
    distribution(site, "flashinfer-python", "0.6.12")
    distribution(site, "flashinfer-jit-cache", "0.6.12+cu130")
    ahead = site / "flashinfer/data/aot/norm/norm.so"
    cached = site / "flashinfer_jit_cache/jit_cache/norm/norm.so"
    of_target = site / "flashinfer_jit_cache_sm121a/jit_cache/norm/norm.so"
    for file in (ahead, cached, of_target):
        file.parent.mkdir(parents=True)
        file.touch()
    first, finding = packages.examine_packages(machine(tmp_path), [], "")
    assert (first.level, first.subject, first.found) == (Level.GREEN, "FlashInfer", "0.6.12")
    assert finding.level is Level.YELLOW
    assert finding.remedy
    assert finding.found.startswith(f"{site}: 3 compiled modules: ")
    assert "uninstall flashinfer-jit-cache" in finding.found
    assert "flashinfer-jit-cache-sm121a" in finding.found


@pytest.mark.parametrize(
    ("name", "value", "level", "remedy"),
    [
        ("FLASHINFER_CUDA_ARCH_LIST", "12.1a", Level.GREEN, ""),
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0 12.1", Level.YELLOW, "12.0f for both"),
        ("TORCH_CUDA_ARCH_LIST", "9.0a;12.0f", Level.GREEN, ""),
        ("TORCH_CUDA_ARCH_LIST", "8.9 12.0+PTX", Level.YELLOW, "12.0a"),
        ("TORCH_CUDA_ARCH_LIST", "Blackwell", Level.NONE, ""),
        # FlashInfer splits at each space, and takes the parts apart when it is imported.
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0a;12.1a", Level.RED, "export FLASHINFER_CUDA_ARCH_LIST=12.1a, or unset"),
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0a  12.1a", Level.RED, "unset FLASHINFER_CUDA_ARCH_LIST"),
        ("FLASHINFER_CUDA_ARCH_LIST", "", Level.RED, "unset FLASHINFER_CUDA_ARCH_LIST"),
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0+PTX", Level.RED, ""),
    ],
)
def test_a_list_without_a_suffix_is_noticed(tmp_path: Path, name: str, value: str, level: Level, remedy: str) -> None:
    (finding,) = packages.examine_lists(machine(tmp_path, **{name: value}))
    assert (finding.subject, finding.level) == (name, level)
    assert remedy in finding.remedy


def test_a_toolkit_of_cuda_12_8_serves_a_machine_that_has_sm_120_alone(tmp_path: Path) -> None:
    toolkit(tmp_path / "root/usr/local/cuda", "12.8.93")
    for gpus, level in (([Arch(12, 0)], Level.GREEN), ([GB10], Level.YELLOW), ([], Level.YELLOW)):
        kit, *_ = compilers.examine(machine(tmp_path), gpus)
        assert kit.level is level


@pytest.mark.parametrize(
    ("version", "value", "red"), [("2.8.0", "12.0f", True), ("2.9.1", "12.0f", False), ("2.8.0", "12.0a", False)]
)
def test_a_list_that_the_installed_pytorch_does_not_know_is_red(
    tmp_path: Path, version: str, value: str, red: bool
) -> None:
    torch(tmp_path / "site", f"{version}+cu129", "12.9", "sm_120")
    (finding,) = packages.examine_lists(machine(tmp_path, TORCH_CUDA_ARCH_LIST=value))
    assert (finding.level is Level.RED) is red
    assert ("TORCH_CUDA_ARCH_LIST='12.0a'" in finding.remedy) is red
