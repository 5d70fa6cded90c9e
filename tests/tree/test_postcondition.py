"""Code that a patch must not leave is searched in the whole tree: it is refused, or named with its reason."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from small_cutlass import CONVERTER, GUARD

Command = Callable[..., Said]
GetVllm = Callable[[str], Path]
IN_PYTHON = (
    "vllm/cute_utils/cvt.py",
    "vllm/models/deepseek_v4/common/ops/fused_indexer_q.py",
    "vllm/models/deepseek_v32/common/kernels.py",
)


def test_tests_for_exactly_sm120_are_named_in_what_makes_the_build_too(vllm: GetVllm, fp4patch: Command) -> None:
    tree = vllm("0.33.0")
    of_build = ("CMakeLists.txt", "cmake/utils.cmake", "setup.py")
    for file in of_build:
        condition = "if capability == (12, 0): print()" if file == "setup.py" else 'if(ARCH STREQUAL "12.0")\nendif()'
        with (tree / file).open("a") as text:
            text.write(f"\n{condition}\n")
    said = fp4patch("apply", "--variant", "native", "--diff", "--dry-run", tree).out
    for file in of_build:
        assert re.search(rf"^ +{file}:\d+: if", said, re.MULTILINE)


def test_python_with_the_instruction_is_named_by_apply_and_status(vllm: GetVllm, fp4patch: Command) -> None:
    tree = vllm("0.33.0")
    said = fp4patch("apply", "--variant", "next3", "--diff", tree).out
    for file in IN_PYTHON:
        assert re.search(rf"^ +{file}:\d+: cvt", said, re.MULTILINE)
    status = fp4patch("status", "--json", tree).tree
    places = [place for place in status["remainders"] if place["patch"] == "vllm/e2m1-asm"]
    assert {place["file"] for place in places} == set(IN_PYTHON)
    assert all("GPU at hand" in place["because"] for place in places)
    assert fp4patch("apply", tree).status == 0
    assert fp4patch("revert", tree).status == 0


GENERATED = "csrc/more.inc"
MARLIN = "csrc/moe/marlin_moe_wna16"


def generated(tree: Path) -> None:
    (tree / GENERATED).write_text('#define BODY "cvt.rn.satfinite." "e2m1x2.f32 b, %1, %2;"\n')


@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        (GENERATED, "", ""),
        (f"{MARLIN}/ops.cu", "kFE4M3fn", "kFloat8"),
        (f"{MARLIN}/generate_kernels.py", "SUPPORT_FP8", "WITH_FP8"),
        ("csrc/quantization/fp4/nvfp4_utils.inc", "", ""),
    ],
)
def test_a_place_that_no_edit_finds_is_refused_by_name(
    vllm: GetVllm, fp4patch: Command, place: str, old: str, new: str
) -> None:
    tree = vllm("0.14.1")
    if place == GENERATED:
        generated(tree)
    elif old:
        (tree / place).write_text((tree / place).read_text().replace(old, new))
    else:
        (tree / place).with_suffix(".cuh").rename(tree / place)
    refused = fp4patch("apply", "--variant", "next3", tree)
    assert refused.status == 1
    assert place in refused.err
    assert not (tree / ".fp4patch").exists()
    patches = fp4patch("status", "--json", tree).tree["patches"]
    assert "drifted" in {one["state"] for one in patches}


def test_code_that_comes_after_apply_and_that_no_edit_finds_is_drift_of_the_tree(
    vllm: GetVllm, fp4patch: Command
) -> None:
    tree = vllm("0.14.1")
    fp4patch("apply", "--variant", "next3", tree)
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"
    generated(tree)
    status = fp4patch("status", "--json", tree).tree
    assert status["state"] == "drifted"
    assert {file["state"] for file in status["files"]} == {"applied", "pristine"}
    assert [one["because"].partition(":")[0] for one in status["patches"] if one["state"] == "drifted"] == [GENERATED]


def test_copies_that_setuptools_makes_are_not_of_the_tree(vllm: GetVllm, fp4patch: Command) -> None:
    """`pip install .` in a patched tree leaves its Python files in build/lib.PLATFORM, which the next build fills."""
    tree = vllm("0.33.0")
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    for place, state in (("build/lib.linux-x86_64-cpython-312", "applied"), ("vllm/build", "drifted")):
        copies = tree / place / "vllm/csrc"
        copies.mkdir(parents=True)
        (copies / "convert.cu").write_text('asm("cvt.rn.satfinite.e2m1x2.f32 %0, %1, %2;" : "=r"(x) : "f"(a), "f"(b));')
        assert fp4patch("status", "--json", tree).tree["state"] == state


@pytest.mark.parametrize(("place", "link"), [("csrc/moved", "../moved"), ("moved", "../../moved"), (".m", "../../.m")])
def test_a_directory_behind_a_link_is_patched_where_it_is_or_refused(
    vllm: GetVllm, fp4patch: Command, place: str, link: str
) -> None:
    tree = vllm("0.14.1")
    (tree / "csrc/quantization/fp4").rename(tree / place)
    (tree / "csrc/quantization/fp4").symlink_to(link)
    said = fp4patch("apply", "--variant", "next3", tree)
    if place.startswith("csrc/"):
        assert "fp4patch_half_pair" in (tree / place / "nvfp4_utils.cuh").read_text()
        assert fp4patch("revert", tree).status == 0
    else:  # where no patch may write
        assert said.status == 1
        assert place == ".m" or f"{place}/nvfp4_utils.cuh" in said.err


def test_what_a_release_has_is_never_not_needed(vllm: GetVllm, fp4patch: Command) -> None:
    tree = vllm("0.14.1")
    for file in tree.glob("csrc/**/generate_kernels.py"):
        file.write_text(file.read_text().replace("SUPPORT_FP8", "WITH_FP8").replace("[89, 120]", "(89, 120)"))
    refused = fp4patch("apply", "--variant", "native", tree)
    assert refused.status == 1
    assert "which releases >=0.12 have" in refused.err


def test_a_define_in_another_header_is_refused(tree_copy: Callable[[str, str], Path], fp4patch: Command) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    config = tree / "include/cutlass/arch/config.h"
    more = "#if __CUDA_ARCH__ == 1210\n#define CUDA_PTX_FP4FP6_CVT_ENABLED 1\n#endif\n"
    config.write_text(config.read_text() + more)
    refused = fp4patch("apply", "--variant", "turbo", tree)
    assert refused.status == 1
    assert "include/cutlass/arch/config.h" in refused.err


def test_the_diff_of_files_with_carriage_returns_applies_with_git(
    tree_copy: Callable[[str, str], Path], fp4patch: Command, tmp_path: Path
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    for file in (GUARD, CONVERTER):
        (tree / file).write_bytes((tree / file).read_bytes().replace(b"\n", b"\r\n"))
    before = tmp_path / "before"
    shutil.copytree(tree, before)
    said = fp4patch("apply", "--variant", "turbo", "--diff", tree).out
    diff = said[said.index("--- a/") :]
    subprocess.run(["git", "init", "-q"], cwd=before, check=True)
    git = subprocess.run(["git", "apply", "-"], cwd=before, input=diff.encode(), capture_output=True, check=False)
    assert git.returncode == 0, git.stderr
    assert (before / GUARD).read_bytes() == (tree / GUARD).read_bytes()
