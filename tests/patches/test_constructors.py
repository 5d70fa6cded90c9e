"""The constructors and decoders of CUTLASS's FP4 and FP6 types under next3: on the host, their shapes, and refusals."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.proof.toolchain import Toolchain

GetTree = Callable[[str, str], Path]

HEADER = "include/cutlass/float_subbyte.h"
SWEEP = Path(__file__).with_name("subbyte_constructors.cpp")
VERSIONS = ["4.2.1", "4.8.0"]


@pytest.fixture
def headers(pristine_tree: GetTree, tmp_path: Path) -> GetTree:
    """A copy of a real tree's headers."""

    def get(target: str, version: str) -> Path:
        tree = tmp_path / version
        shutil.copytree(pristine_tree(target, version) / "include", tree / "include")
        return tree

    return get


def host(tree: Path, toolchain: Toolchain, *flags: str) -> tuple[int, str]:
    """Compile the host program with the tree's headers and run it: its status and what it found wrong."""
    program = tree.parent / f"{tree.name}-constructors"
    cuda = toolchain.root / "include"
    command = ["g++", "-std=c++17", "-O2", *flags, "-fpermissive", "-w", "-o", str(program), str(SWEEP)]
    command += [f"-I{folder}" for folder in (tree / "include", cuda, cuda / "cccl")]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_constructors_round_once_and_shapes_stay(headers: GetTree, toolchain: Toolchain, version: str) -> None:
    tree = headers("cutlass", version)
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    status, output = host(tree, toolchain)
    assert (status, output.splitlines()[-1].split()[2:]) == (0, ["0", "wrong"]), output


def test_upstream_rounds_doubles_twice_and_keeps_the_sign_of_nan(headers: GetTree, toolchain: Toolchain) -> None:
    status, output = host(headers("cutlass", "4.2.1"), toolchain)
    assert status == 1
    wrong = {line.partition(":")[0] for line in output.splitlines()[:-1]}
    assert wrong == {"E2M1 of a double", "E2M1 of -nan", "E2M3 of -nan", "E3M2 of -nan"}


def test_a_wrong_constant_is_noticed(headers: GetTree, toolchain: Toolchain) -> None:
    tree = headers("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    text = (tree / HEADER).read_text()
    for right, wrong in (("(sum >> 22) + 6u", "(sum >> 22) + 5u"), ("back != x ? bits | 1u : bits", "bits")):
        assert text.count(right) == 1
        (tree / HEADER).write_text(text.replace(right, wrong))
        assert host(tree, toolchain)[0] == 1


UPSTREAM = """
  CUTLASS_HOST_DEVICE
  float_e2m1_t convert_from_float(float const &flt) const { return bitcast(0); }

  CUTLASS_HOST_DEVICE
  explicit float_e2m1_t(double x)"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("\n  CUTLASS_HOST_DEVICE\n  explicit float_e2m1_t(double x)", UPSTREAM, "there already"),
        ("explicit float_e2m1_t(double x)", "explicit float_e2m1_t(long double x)", "expected 1 site"),
        ("explicit float_e2m1_t(double x) : Base(float(x))", "explicit float_e2m1_t(double x) : Base(x)", "Base"),
        ("struct float_e2m3_t : public float_exmy_base", "struct float_e2m3_t : public float_base", "expected 1 site"),
        (
            "struct float_e3m2_unpack8bits_t : public",
            "#if 1\nstruct float_e3m2_unpack8bits_t : public",
            "#if",
        ),
    ],
    ids=["fixed upstream", "another signature", "another body", "another base", "an open condition"],
)
def test_a_shape_that_it_does_not_know_is_refused(
    headers: GetTree, capsys: pytest.CaptureFixture[str], old: str, new: str, line: str
) -> None:
    tree = headers("cutlass", "4.2.1")
    text = (tree / HEADER).read_text()
    assert old in text
    changed = text.replace(old, new, 1)
    (tree / HEADER).write_text(changed)
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 1
    assert line in " ".join(capsys.readouterr().err.split())
    assert (tree / HEADER).read_text() == changed


def test_a_moved_declaration_is_found(headers: GetTree) -> None:
    tree = headers("cutlass", "4.2.1")
    text = (tree / HEADER).read_text()
    (tree / HEADER).write_text(text.replace("namespace cutlass {", "\n// moved\n\nnamespace cutlass {\n\n", 1))
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    assert "e2m1_from_float" in (tree / HEADER).read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_apply_and_revert_give_the_pristine_bytes_back(headers: GetTree, pristine_tree: GetTree, version: str) -> None:
    tree, pristine = headers("cutlass", version), pristine_tree("cutlass", version)
    assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
    assert (tree / HEADER).read_bytes() != (pristine / HEADER).read_bytes()
    assert cli.run(["revert", str(tree)]) == 0
    assert (tree / HEADER).read_bytes() == (pristine / HEADER).read_bytes()
