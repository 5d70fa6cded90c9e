"""Follows each remedy that doctor gives for a red finding, and runs doctor again: it is not red for that cause."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from command import Said
from cubins import CONVERTS, compile_cuda, targets
from flashinfer_wheel import is_python, unpack
from host_on_disk import machine, toolkit, torch

from fp4patch.binaries import scan
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.doctor import compilers, packages
from fp4patch.proof.toolchain import Toolchain

PLAIN = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }'
IDENTIFY = (
    "flashinfer/data/include/flashinfer/utils.cuh",
    "flashinfer/data/include/flashinfer/comm/",
    "flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/quantization",
)
Command = Callable[..., Said]
Trees = Callable[[str, str], Path]


def red(findings: Iterable[Finding], cause: str) -> list[Finding]:
    return [one for one in findings if (one.level, one.cause) == (Level.RED, cause)]


# --- compiled code ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "target"), [("120,121", "120f"), ("121", "120f"), ("120", "120f"), ("100,103", "100f"), ("103", "100f")]
)
def test_a_build_for_the_target_that_is_named_has_the_code_for_every_gpu_of_the_question(
    toolchain: Toolchain, tmp_path: Path, gpus: str, target: str
) -> None:
    asked = Arch.parse_list(gpus)
    lost = compile_cuda(toolchain, PLAIN, tmp_path / "lost.o", "-c", *targets("90a"))
    built = compile_cuda(toolchain, CONVERTS, tmp_path / "built.o", "-c", *targets(target))
    for before, after in zip(
        scan.examine(lost, gpus=asked).answers, scan.examine(built, gpus=asked).answers, strict=True
    ):
        assert (before.answer, after.answer) == ("no", "reservation")
        assert set(re.findall(r"sm_\d+f", before.todo)) == {f"sm_{target}"}
        assert all(str(gpu) in before.todo for gpu in asked)


# --- source trees ----------------------------------------------------------------------------------------------------


def outlook(fp4patch: Command, tree: Path, *options: str) -> tuple[str, str]:
    (found,) = fp4patch("doctor", "--json", "--for", "sm_121", *options, tree).document["trees"]
    (line,) = found["gpus"]
    return line["level"], line["todo"]


def test_the_cuda_release_that_is_named_is_not_too_old(fp4patch: Command, pristine_tree: Trees) -> None:
    tree = pristine_tree("cutlass", "4.2.1")
    level, todo = outlook(fp4patch, tree, "--cuda", "12.8")
    found = re.fullmatch(r"compile with CUDA (\d+\.\d+) or later", todo)
    assert (level, bool(found)) == ("red", True)
    assert found
    assert outlook(fp4patch, tree, "--cuda", found[1])[0] == "green"


def test_the_arch_list_that_is_named_is_green(fp4patch: Command, tmp_path: Path) -> None:
    for version, asked in (("0.7.2", "12.0a"), ("0.6.6", "12.1")):
        tree = unpack(version, tmp_path / version, lambda name: is_python(name) or name.startswith(IDENTIFY))
        options = ("--cuda", "13.0", "--arch-list")
        level, todo = outlook(fp4patch, tree, *options, asked)
        assert level == "red"
        first, second, *_ = shlex.split(todo.partition(", which compiles")[0])
        assert "FLASHINFER_CUDA_ARCH_LIST" in second
        if first == "export":
            assert outlook(fp4patch, tree, *options, second.partition("=")[2])[0] == "green"
        else:
            assert (first, outlook(fp4patch, tree, *options[:2])[0]) in (("unset", "green"), ("unset", "yellow"))


def test_a_file_that_is_restored_is_not_red(fp4patch: Command, tree_copy: Trees) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert fp4patch("apply", "--variant", "turbo", tree).status == 0
    file = tree / "include/cutlass/float_subbyte.h"
    shutil.copy(file, tree.parent / "kept")
    file.write_text(file.read_text() + "// mine\n")
    causes = []
    for content in (file.read_text(), (tree.parent / "kept").read_text()):
        file.write_text(content)
        (found,) = fp4patch("doctor", "--json", tree).document["trees"]
        causes.append([one["cause"] for one in found["findings"] if one["level"] == "red"])
    assert causes == [["tree_edited"], []]


# --- Python packages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "cuda", "archs", "nvcc"),
    [
        ("torch_for_gb10", "12.4", "sm_80 sm_90", "12.4.131"),
        ("torch_for_gb10", "12.8", "sm_90 sm_120", "12.8.93"),
        ("torch_and_nvcc", "13.0", "sm_90 sm_120", "12.9.86"),
    ],
)
def test_the_pytorch_and_the_toolkit_that_are_named_are_green(
    tmp_path: Path, cause: str, cuda: str, archs: str, nvcc: str
) -> None:
    torch(tmp_path / "site", f"2.9.1+cu{cuda.replace('.', '')}", cuda, archs)
    found = packages.examine_torch(packages.torch(machine(tmp_path)), [GB10], nvcc)
    (finding,) = red(found, cause)
    named = set(re.findall(r"CUDA (\d+\.\d+)", finding.remedy))
    for release in named:
        after = tmp_path / release
        after.mkdir()
        torch(after / "site", f"2.9.1+cu{release.replace('.', '')}", release, "sm_90 sm_120")
        toolkit(after / "root/usr/local/cuda", f"{release}.88")
        again = packages.examine_torch(packages.torch(machine(after)), [GB10], f"{release}.88")
        kits = compilers.examine(machine(after), [GB10])
        assert {one.level for one in (*again, *(kit for kit in kits if kit.subject.startswith("CUDA")))} == {
            Level.GREEN
        }
    assert named
