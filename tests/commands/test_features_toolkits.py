"""Selection of ptxas, and its sources: named, installed, or from a pinned wheel."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.catalog.feature import ToolkitWheel, ToolkitWheels
from fp4patch.catalog.features import load_features, load_toolkits
from fp4patch.catalog.manifest import data_root
from fp4patch.core import progress
from fp4patch.core.errors import ManifestError, SourceError, ToolchainError, UsageError
from fp4patch.proof import toolkits

RELEASES = ["12.8", "12.9", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5"]


def program(path: Path, release: str) -> Path:
    """Write a replacement that prints its release as NVIDIA's tools do: the tests check which one is selected."""
    path.parent.mkdir(parents=True, exist_ok=True)
    minor = ".".join(release.split(".")[:2])
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {minor}, V{release}'\n")
    path.chmod(0o755)
    return path


def test_a_release_names_its_newest_wheel_and_all_names_one_of_each() -> None:
    pinned = load_toolkits(data_root())
    assert [w.release for w in toolkits.chosen(pinned, ["13.0"], machine="x86_64")] == ["13.0.88"]
    assert [w.release for w in toolkits.chosen(pinned, ["13.0.48"], machine="x86_64")] == ["13.0.48"]
    newest = [w.release for w in toolkits.chosen(pinned, ["all", "12.8"], machine="x86_64")]
    assert [release.rpartition(".")[0] for release in newest] == RELEASES


def test_every_release_is_pinned_for_both_machines() -> None:
    wheels = load_toolkits(data_root()).wheels
    by_machine = [{w.release for w in wheels if w.machine == machine} for machine in ("x86_64", "aarch64")]
    assert by_machine[0] == by_machine[1]
    assert all(wheel.machine in wheel.filename and wheel.release in wheel.filename for wheel in wheels)


@pytest.mark.parametrize(("asked", "machine"), [("12.4", "x86_64"), ("13", "x86_64"), ("13.0", "riscv64")])
def test_a_release_that_nobody_pinned_is_a_usage_error(asked: str, machine: str) -> None:
    with pytest.raises(UsageError) as refused:
        toolkits.chosen(load_toolkits(data_root()), [asked], machine=machine)
    assert refused.value.help


def test_a_named_toolkit_is_used_or_refused(tmp_path: Path) -> None:
    program(tmp_path / "a/bin/ptxas", "13.1.80")
    program(tmp_path / "b/bin/ptxas", "13.2.78")
    named = toolkits.installed(tmp_path / "a", environ={"CUDA_HOME": str(tmp_path / "b")}, site_packages=[])
    assert named.release == "13.1.80"
    assert toolkits.installed(environ={"CUDA_HOME": str(tmp_path / "b")}, site_packages=[]).release == "13.2.78"
    with pytest.raises(ToolchainError, match="there is no bin/ptxas"):
        toolkits.installed(environ={"CUDA_HOME": str(tmp_path)}, site_packages=[])


def test_wheels_come_before_path_and_neither_is_an_error(tmp_path: Path) -> None:
    program(tmp_path / "site/nvidia/cu13/bin/ptxas", "13.0.88")
    program(tmp_path / "path/ptxas", "12.9.86")
    environ = {"PATH": str(tmp_path / "path")}
    assert toolkits.installed(environ=environ, site_packages=[tmp_path / "site"]).release == "13.0.88"
    assert toolkits.installed(environ=environ, site_packages=[]).release == "12.9.86"
    with pytest.raises(ToolchainError, match="there is no ptxas"):
        toolkits.installed(environ={"PATH": ""}, site_packages=[], usual=tmp_path / "nowhere")
    program(tmp_path / "usual/bin/ptxas", "13.1.80")
    assert toolkits.installed(environ=environ, site_packages=[], usual=tmp_path / "usual").release == "12.9.86"
    assert toolkits.installed(environ={"PATH": ""}, site_packages=[], usual=tmp_path / "usual").release == "13.1.80"


@pytest.mark.parametrize(("disassembler", "taken"), [("13.0.39", ""), ("13.1.80", "13.1.80"), ("13.5.37", "13.5.37")])
def test_a_disassembler_older_than_the_assembler_is_not_believed(tmp_path: Path, disassembler: str, taken: str) -> None:
    program(tmp_path / "bin/ptxas", "13.1.115")
    program(tmp_path / "bin/nvdisasm", disassembler)
    found = toolkits.installed(tmp_path, environ={"PATH": ""}, site_packages=[])
    assert found.nvdisasm_release == taken


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ToolkitWheel]:
    """A small wheel in the shape of NVIDIA's, and a download that hands out a copy of it."""

    def make(*members: str) -> ToolkitWheel:
        path = tmp_path / "index" / "nvidia_cuda_nvcc-13.0.88-py3-none-any.whl"
        path.parent.mkdir(exist_ok=True)
        content = program(tmp_path / "ptxas", "13.0.88").read_bytes()
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                archive.writestr(member, content)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        copy = tmp_path / "archives" / path.name
        copy.parent.mkdir(exist_ok=True)
        monkeypatch.setattr("fp4patch.sources.index.download", lambda _archive, _progress: shutil.copy2(path, copy))
        return ToolkitWheel(
            release="13.0.88", machine="x86_64", project="nvidia-cuda-nvcc", filename=path.name, sha256=sha256
        )

    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    return make


MEMBER = "nvidia/cu13/bin/ptxas"


def test_of_a_wheel_only_ptxas_is_kept(tmp_path: Path, wheel: Callable[..., ToolkitWheel]) -> None:
    pinned = wheel("nvidia/cu13/bin/nvcc", MEMBER, "nvidia/cu13/include/ptxas")
    found = toolkits.fetched(pinned, progress.silent, site_packages=[])
    assert found.release == "13.0.88"
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()) == ["ptxas", "ptxas.sha256"]
    assert list((tmp_path / "archives").iterdir()) == []


def test_a_damaged_program_is_taken_out_of_its_wheel_again(wheel: Callable[..., ToolkitWheel]) -> None:
    pinned = wheel(MEMBER)
    path = toolkits.fetched(pinned, progress.silent, site_packages=[]).path
    path.write_text("#!/bin/sh\nexit 1\n")
    assert toolkits.fetched(pinned, progress.silent, site_packages=[]).release == "13.0.88"


@pytest.mark.parametrize("members", [(), ("nvidia/cu13/bin/nvcc",), (MEMBER, "nvidia/cu12/bin/ptxas")])
def test_a_wheel_without_just_one_ptxas_is_refused(
    tmp_path: Path, wheel: Callable[..., ToolkitWheel], members: tuple[str, ...]
) -> None:
    with pytest.raises(SourceError):
        toolkits.fetched(wheel(*members), progress.silent, site_packages=[])
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


# --- the data --------------------------------------------------------------------------------------------------------

FEATURE = """
title = "One"
[[features]]
instruction = "abs.f32"
title = "magnitude"
reads = [".f32 a"]
writes = ".f32 d"
operands = "d, a"
sass = 'FADD.*'
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FEATURE.replace("FADD.*", "FADD("), "a regular expression"),
        (FEATURE.replace("operands", "operand"), "operand"),
        (FEATURE + FEATURE.partition("\n[[")[1] + FEATURE.partition("\n[[")[2], "a name of its own"),
        ("title = ", "TOML"),
    ],
)
def test_mistakes_in_the_features_are_reported_with_file_and_key(tmp_path: Path, text: str, expected: str) -> None:
    folder = tmp_path / "records/features"
    folder.mkdir(parents=True)
    (folder / "one.toml").write_text(text)
    with pytest.raises(ManifestError) as refused:
        load_features(tmp_path)
    assert any(expected in f"{problem}" for problem in refused.value.problems)
    assert all(problem.file for problem in refused.value.problems)


def test_one_release_pinned_twice_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    entry = '[[wheels]]\nrelease = "13.0.88"\nmachine = "x86_64"\nproject = "p"\nfilename = "f"\nsha256 = "0"\n'
    (tmp_path / "records/toolkits.toml").write_text(entry)
    assert isinstance(load_toolkits(tmp_path), ToolkitWheels)
    (tmp_path / "records/toolkits.toml").write_text(entry * 2)
    with pytest.raises(ManifestError):
        load_toolkits(tmp_path)


# --- real downloads, on demand ---------------------------------------------------------------------------------------

ENCODE_TARGETS = {"100a", "100f", "103a", "103f", "110a", "110f", "120a", "120f", "121a", "121f"}


@pytest.mark.skipif(
    not os.environ.get("FP4PATCH_TEST_TOOLKITS"),
    reason="downloads 320 MB: FP4PATCH_TEST_TOOLKITS=all, or releases such as 12.8,13.5",
)
def test_every_release_agrees_with_what_was_measured_by_hand() -> None:
    from fp4patch.catalog.feature import Outcome
    from fp4patch.commands.features.run import assemblers, probe

    asked = os.environ["FP4PATCH_TEST_TOOLKITS"].split(",")
    report = probe(assemblers(asked, (), on_download=progress.silent))
    mma = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::{}.f32.e2m1.e2m1.f32.{}"
    encode = "cvt.rn.satfinite.e2m1x2.{}"
    tcgen05 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.{}"
    sm12x = {"120a", "120f", "121a", "121f"}
    for toolkit in report.toolkits:
        release = tuple(map(int, toolkit.ptxas.split(".")))
        known = {target.number for target in toolkit.targets} - {"101a", "101f", "107a", "107f"}

        def hardware(instruction: str, known: set[str] = known, toolkit=toolkit) -> set[str]:  # type: ignore[no-untyped-def]
            return {
                target.number
                for target in toolkit.targets
                if toolkit.index[instruction, target].outcome is Outcome.HARDWARE and target.number in known
            }

        assert hardware(encode.format("f32")) == ENCODE_TARGETS & known
        assert hardware(encode.format("f16x2")) == (ENCODE_TARGETS & known if release >= (13, 0, 88) else set())
        assert hardware(encode.format("bf16x2")) == (ENCODE_TARGETS & known if release >= (13, 1) else set())
        assert hardware("cvt.rs.satfinite.e2m1x4.f32") == {"100a", "103a"} & known
        assert hardware(mma.format("4X", "ue4m3")) == sm12x & known
        assert hardware(mma.format("4X", "ue8m0")) == (sm12x & known if release >= (13, 1) else set())
        assert hardware(mma.format("2X", "ue8m0")) == sm12x & known
        assert hardware(mma.format("1X", "ue8m0")) == set()
        assert hardware(tcgen05.format("scale_vec::4X")) == {"100a", "103a", "110a"} & known
        block16 = {"100a", "100f", "103a", "103f", "110a", "110f"} & known
        assert hardware(tcgen05.format("block16")) == (block16 if release >= (12, 9) else set())
