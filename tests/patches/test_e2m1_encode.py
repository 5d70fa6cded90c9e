"""next3 on real CUTLASS trees: what their converters give on the host, which targets get the instruction, refusals."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.proof.toolchain import Toolchain

GetTree = Callable[[str, str], Path]

HEADER = "include/cutlass/numeric_conversion.h"
PATCH = load().patches["cutlass/e2m1-encode"]
SWEEP = Path(__file__).with_name("e2m1_converters.cpp")
CHOICE = Path(PATCH.directory, "instruction_or_half_pair.cuh")


@pytest.fixture
def headers(pristine_tree: GetTree, tmp_path: Path) -> GetTree:
    """A copy of a real tree's headers."""

    def get(target: str, version: str) -> Path:
        tree = tmp_path / version
        shutil.copytree(pristine_tree(target, version) / "include", tree / "include")
        return tree

    return get


def sweep(tree: Path, toolchain: Toolchain, *flags: str, step: int = 1021) -> tuple[int, str, str]:
    """Run every float whose bits are a multiple of ``step``, and the boundaries, through the tree's converters."""
    program = tree.parent / f"{tree.name}-converters"
    cuda = toolchain.root / "include"
    command = ["g++", "-std=c++17", "-O3", *flags, "-o", str(program), str(SWEEP)]
    # Without nvcc CUTLASS's headers name device functions that are not declared, in templates that are never used.
    command += ["-fpermissive", "-w", *(f"-I{folder}" for folder in (tree / "include", cuda, cuda / "cccl"))]
    subprocess.run(command, check=True)
    done = subprocess.run([program, "0", str(1 << 32), str(step)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("version", ["4.2.1", "4.5.0"])
def test_the_converters_are_exact_on_the_host(headers: GetTree, toolchain: Toolchain, version: str) -> None:
    tree = headers("cutlass", version)
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    status, counts, errors = sweep(tree, toolchain, "-DANY_LENGTH")
    assert (status, errors) == (0, "")
    checked, wrong = (int(word) for word in counts.split() if word.isdigit())
    assert (checked > 20_000_000, wrong) == (True, 0)


def test_upstream_differs_for_negative_nan_alone(headers: GetTree, toolchain: Toolchain) -> None:
    status, _, errors = sweep(headers("cutlass", "4.2.1"), toolchain, step=10_000_019)
    assert status == 1
    assert {line.partition(": ")[0] for line in errors.splitlines()} == {"float of -nan"}


@pytest.mark.parametrize(
    ("arch", "instruction"),
    [(arch, True) for arch in ("100a", "100f", "103a", "103f", "110a", "120a", "120f", "121a", "121f")]
    + [(arch, False) for arch in ("75", "80", "86", "89", "90", "90a", "100", "103", "120", "121")],
)
def test_the_target_decides(arch: str, instruction: bool, toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "choice.cu"
    source.write_text(CHOICE.read_text().partition("namespace")[0] + "\ntakes FP4PATCH_E2M1_INSTRUCTION\n")
    target = f"-gencode=arch=compute_{arch},code=sm_{arch}"

    def takes(*flags: str) -> bool:
        command = [str(toolchain.root / "bin/nvcc"), *toolchain.flags, target, "-E", *flags, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return "takes 1" in done.stdout

    assert takes() == instruction
    assert not takes("-DFP4PATCH_FORCE_SOFTWARE")


def test_before_the_family_macro_the_targets_own_macros_decide(tmp_path: Path) -> None:
    source = tmp_path / "choice.cpp"
    source.write_text(CHOICE.read_text().partition("namespace")[0] + "\ntakes FP4PATCH_E2M1_INSTRUCTION\n")

    def takes(*flags: str) -> bool:
        done = subprocess.run(["g++", "-E", *flags, source], capture_output=True, text=True, check=True)
        return "takes 1" in done.stdout

    assert takes("-D__CUDA_ARCH_FEAT_SM120_ALL")
    assert takes("-D__CUDA_ARCH_FEAT_SM100_ALL")
    assert not takes("-D__CUDA_ARCH_FEAT_SM90_ALL")
    assert not takes()  # the host


SPECIALIZED = """
template <cutlass::FloatRoundStyle R>
struct NumericConverter<
  cutlass::float_e2m1_t, cutlass::half_t, R> { /* somebody's own */ };

/// Partial specialization for Array<float_e2m1_t, 2> <= Array<float, 2>
"""


@pytest.mark.parametrize(
    ("version", "old", "new", "line"),
    [
        (
            "4.2.1",
            "\n/// Partial specialization for Array<float_e2m1_t, 2> <= Array<float, 2>\n",
            SPECIALIZED,
            "already",
        ),
        ("4.2.1", "i < 8; ++i) {\n      result[i] = converter(source[i]);", "i < 8; ++i) {", "result_type result"),
        ("4.5.0", "struct NumericArrayConverter<float_e2m1_t, float, 4, Round> {", "struct Renamed {", "with a body"),
        ("4.5.0", "enum class FloatRoundStyle {", "enum class FloatRoundStyle : int {", "enum class"),
    ],
    ids=["specialized already", "another loop", "another name", "another beginning"],
)
def test_a_shape_that_it_does_not_know_is_refused(
    headers: GetTree, capsys: pytest.CaptureFixture[str], version: str, old: str, new: str, line: str
) -> None:
    tree = headers("cutlass", version)
    header = tree / HEADER
    text = header.read_text()
    assert old in text
    changed = text.replace(old, new)
    header.write_text(changed)
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 1
    assert line in " ".join(capsys.readouterr().err.split())
    assert header.read_text() == changed


def test_apply_and_revert_give_the_pristine_bytes_back(headers: GetTree, pristine_tree: GetTree) -> None:
    tree, pristine = headers("cutlass", "4.4.2"), pristine_tree("cutlass", "4.4.2")
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    assert "fp4patch_e2m1" in (tree / HEADER).read_text()
    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0
    assert "fp4patch_e2m1" not in (tree / HEADER).read_text()
    assert cli.run(["revert", str(tree)]) == 0
    assert (tree / HEADER).read_bytes() == (pristine / HEADER).read_bytes()
