"""Known defects of installed packages, by records/known.toml, and libraries of another CUDA release."""

from pathlib import Path

import pytest
from host_on_disk import distribution, machine
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from fp4patch.binaries.findings import Level
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor import packages
from fp4patch.doctor.known_defects import examine, read, refused_by_pytorch


@pytest.mark.parametrize(
    ("name", "version", "gpu", "link"),
    [
        ("triton", "3.8.0", GB10, "11733"),
        ("triton", "3.8.1", GB10, ""),
        ("triton", "3.7.1", GB10, ""),
        ("nvidia-cutlass-dsl", "4.5.0", Arch(12, 0), "3227"),
        ("nvidia-cutlass-dsl", "4.4.2", GB10, "2800"),
        ("nvidia-cutlass-dsl", "4.4.2", Arch(12, 0), ""),  # it admits sm_120a
        ("nvidia-cutlass-dsl", "4.5.1", GB10, ""),
        ("vllm", "0.33.0", Arch(12, 0), "43730"),
        ("vllm", "0.33.0", GB10, ""),
        ("nvidia-cudnn-cu13", "9.23.0.39", GB10, "4165"),
        ("nvidia-cudnn-cu12", "9.23.1.3", GB10, ""),
        *(("nvidia-cudnn-cu13", version, Arch(12, 0), "4165 3792") for version in ("9.18.0.77", "9.20.0.48")),
        *(("nvidia-cudnn-cu13", version, Arch(12, 0), "4165") for version in ("9.17.1.4", "9.21.0.82")),
    ],
)
def test_a_defect_is_found_by_version_and_gpu(tmp_path: Path, name: str, version: str, gpu: Arch, link: str) -> None:
    distribution(tmp_path / "site", name, version)
    found = examine(machine(tmp_path), [gpu], "")
    assert [finding.link.rpartition("/")[2] for finding in found] == link.split()
    assert all(finding.remedy and finding.level in (Level.YELLOW, Level.RED) for finding in found)


def test_a_compiler_has_it_beside_the_package_that_it_concerns(tmp_path: Path) -> None:
    assert examine(machine(tmp_path), [GB10], "13.0.88") == ()
    distribution(tmp_path / "site", "flashinfer-python", "0.7.2")
    (finding,) = examine(machine(tmp_path), [GB10], "13.0.88")
    assert "32 instructions" in finding.found
    assert examine(machine(tmp_path), [GB10], "13.2.86") == examine(machine(tmp_path), [GB10], "") == ()


def test_each_pytorch_takes_what_its_own_files_take() -> None:
    """By torch/utils/cpp_extension.py and select_compute_arch.cmake of the published wheels."""
    asked = Arch.parse_list("12.0a 12.0f 12.1a")
    of_extensions = {"2.6.0": ["12.0a", "12.0f", "12.1a"], "2.7.1": ["12.0f", "12.1a"]}
    of_extensions |= {"2.8.0": ["12.0f"], "2.14.1+cu130": ["12.0f"]}
    for release, refused in of_extensions.items():
        assert refused_by_pytorch(asked, Version(release), cmake=False) == refused
    for release, refused in {"2.8.0": ["12.0f"], "2.9.0": [], "2.14.1": []}.items():
        assert refused_by_pytorch(asked, Version(release), cmake=True) == refused
    assert refused_by_pytorch(asked, None, cmake=False) == ["12.0f"]


def test_each_defect_has_its_range_and_its_thread() -> None:
    for one in read(load().root).known:
        assert list(SpecifierSet(one.versions)), one.subject
        assert one.link.startswith("https://"), one.subject


@pytest.mark.parametrize(
    ("cuda", "needed", "wrong"), [("13.0", "12", True), ("12.9", "13", True), ("13.0", "13", False)]
)
def test_a_library_for_another_cuda_than_pytorchs_is_red(tmp_path: Path, cuda: str, needed: str, wrong: bool) -> None:
    (tmp_path / "site/vllm").mkdir(parents=True)
    (tmp_path / "site/vllm/_C.abi3.so").write_bytes(b"\x7fELF" + bytes(64) + f"libcudart.so.{needed}\0".encode())
    distribution(tmp_path / "site", "vllm", "0.33.0")
    found = packages.examine_packages(machine(tmp_path), [], cuda)
    assert [f"libcudart.so.{needed}" in finding.found for finding in found if finding.level is Level.RED] == [
        True
    ] * wrong
