"""Known defects of installed packages, by records/known.toml, and libraries of another CUDA release."""

import subprocess
from pathlib import Path

import pytest
from cubins import wheel_of
from host_on_disk import distribution, machine
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from fp4patch.binaries import scan
from fp4patch.binaries.findings import ANSWERS, Answer, Axis, Level, Observation
from fp4patch.binaries.report import BinaryReport
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor import known_defects, packages
from fp4patch.doctor.known_defects import examine, judged, read, refused_by_pytorch


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


def linked(file: Path, *releases: str) -> None:
    """A library that a linker linked with the CUDA runtime of these releases."""
    file.parent.mkdir(parents=True, exist_ok=True)
    runtimes = []
    for release in releases:
        name = f"libcudart.so.{release}"
        runtime = file.parent.parent.parent / name
        made = ["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", f"-Wl,-soname,{name}", "-o", str(runtime)]
        subprocess.run(made, check=True)
        runtimes.append(str(runtime))
    made = ["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", *runtimes]
    subprocess.run([*made, "-o", str(file)], check=True)


@pytest.mark.parametrize(
    ("cuda", "needed", "wrong"),
    [
        ("13.0", ["12"], True),
        ("12.9", ["13"], True),
        ("13.0", ["13"], False),
        ("12.9", ["12", "13"], False),
        ("12.9", [], False),
    ],
)
@pytest.mark.parametrize("package", ["vllm", "some_kernels", "nvidia"])
def test_a_library_of_any_package_for_another_cuda_than_pytorchs_is_red(
    tmp_path: Path, package: str, cuda: str, needed: list[str], wrong: bool
) -> None:
    linked(tmp_path / "site" / package / "_C.abi3.so", *needed)
    (tmp_path / "site" / package / "broken.so").write_bytes(b"\x7fELF" + bytes(80))
    (tmp_path / "site" / package / "text.so").write_text("libcudart.so.11")
    found = packages.examine_packages(machine(tmp_path), [], cuda)
    red = [finding for finding in found if finding.level is Level.RED]
    assert [f"libcudart.so.{needed[0]}" in finding.found for finding in red] == [True] * (wrong and package != "nvidia")


@pytest.mark.parametrize(
    ("flashinfer", "nvcc", "red"),
    [
        ("0.6.7", "12.8.93", ["12.0", "12.1"]),
        ("0.7.0.post1", "12.8.93", ["12.0", "12.1"]),
        ("0.6.6", "12.8.93", []),
        ("0.7.1", "12.8.93", ["12.1"]),
        ("0.7.2.post1", "12.8.93", ["12.1"]),
        ("0.6.16.post3", "12.9.41", []),
    ],
)
def test_flashinfer_refuses_an_older_nvcc_in_a_range_of_releases(
    tmp_path: Path, flashinfer: str, nvcc: str, red: list[str]
) -> None:
    distribution(tmp_path / "site", "flashinfer-python", flashinfer)
    for gpu in (Arch(12, 0), Arch(12, 1)):
        found = examine(machine(tmp_path), [gpu], nvcc)
        assert any("sm75" in finding.found and finding.level is Level.RED for finding in found) == (gpu.torch in red)


@pytest.mark.parametrize(
    ("name", "gpu", "level"),
    [
        ("nvidia_cutlass_dsl-4.5.0-py3-none-any.whl", Arch(12, 0), Level.RED),
        ("nvidia_cutlass_dsl-4.4.1-py3-none-any.whl", GB10, Level.RED),
        ("nvidia_cutlass_dsl-4.4.1-py3-none-any.whl", Arch(12, 0), Level.NONE),  # it admits sm_120a
        ("nvidia_cutlass_dsl-4.5.1-py3-none-any.whl", GB10, Level.NONE),
        ("other_cutlass_dsl-4.5.0-py3-none-any.whl", GB10, Level.NONE),
        ("nvidia_cutlass_dsl.whl", GB10, Level.NONE),
    ],
)
def test_a_wheel_has_the_defects_of_its_release(tmp_path: Path, name: str, gpu: Arch, level: Level) -> None:
    path = wheel_of(tmp_path / name, {"a/_cutlass_ir.so": b"\x7fELF" + bytes(600), "a/b.py": b""})
    (answer,) = judged(scan.examine(path, gpus=[gpu]), name).answers
    assert answer.level is level
    assert bool(answer.todo and "cutlass-dsl" in answer.todo) == (level is Level.RED)


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl", "vllm==0.20.0"),  # the next one that does
        ("vllm-0.34.0-cp38-abi3-manylinux1_x86_64.whl", "vllm==0.33.0"),  # else the last one before
        ("vllm-0.20.0-cp38-abi3-manylinux1_x86_64.whl", "vllm==0.33.0"),  # never the same one
        ("other-0.11.0-py3-none-any.whl", ""),
        ("vllm.so", ""),
    ],
)
def test_the_nearest_release_that_answers_yes_is_named(
    name: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = {
        "vllm-0.15.0-cp38-abi3-manylinux_2_31_x86_64.whl": {"sm_120": "reservation", "sm_121": "no"},
        "vllm-0.20.0-cp38-abi3-manylinux_2_31_x86_64.whl": {"sm_120": "yes", "sm_121": "reservation"},
        "vllm-0.20.0-cp38-abi3-manylinux_2_31_aarch64.whl": {"sm_121": "yes"},
        "vllm-0.33.0-cp38-abi3-manylinux_2_28_aarch64.whl": {"sm_121": "yes"},
    }
    monkeypatch.setattr(known_defects, "_answered", lambda _root: wheels)
    assert known_defects.release_with_fp4(name, GB10) == release
    for level in (Level.RED, Level.YELLOW):
        seen = Observation(Axis.LOADS, level, "nothing loads", todo="build it for sm_120f")
        (answer,) = judged(BinaryReport(name, 1, 1, (), (Answer.of(GB10, seen),)), name).answers
        expected = f"install {release}, whose wheel answers yes for sm_121" if release else seen.todo
        assert answer.todo == (expected if level is Level.RED else seen.todo)


def test_the_record_of_wheels_has_answers_of_wheels() -> None:
    record = known_defects._answered(load().root)
    assert record
    for name, answers in record.items():
        assert parse_wheel_filename(name)
        assert answers.keys() <= {"sm_120", "sm_121"}
        assert set(answers.values()) <= set(ANSWERS.values())
