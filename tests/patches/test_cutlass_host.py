"""next3 on real CUTLASS headers: what constructors and converters give on the host, and which targets convert."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from remembered import remembered

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.core.store import files_hash
from fp4patch.proof.toolchain import Toolchain

GetTree = Callable[[str, str], Path]

CONSTRUCTORS, CONVERTERS = "subbyte_constructors.cpp", "e2m1_converters.cpp"
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wfloat-equal", "-Wdouble-promotion"]
"""Warnings that the new text must not add to those of upstream's headers."""
CHOICE = Path(load().patches["cutlass/e2m1-encode"].directory, "instruction_or_half_pair.cuh")


@pytest.fixture
def patched(whole_tree: GetTree) -> Callable[[str], Path]:
    """``patched("4.2.1")``: a copy of a real tree with next3."""

    def get(version: str) -> Path:
        tree = whole_tree("cutlass", version)
        assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
        return tree

    return get


def run(source: str, tree: Path, toolchain: Toolchain, *flags: str, step: int = 1021) -> tuple[int, str, str]:
    """Compile a program beside this file with the tree's headers and run it; the converters take each n-th float.

    Return exit status, output and errors; of the same program and headers, those of before.
    """
    text, cuda = Path(__file__).with_name(source).read_text(), toolchain.root / "include"
    # Without nvcc CUTLASS's headers name device functions that are not declared, in templates that are never used.
    command = ["g++", "-std=c++17", "-O2", *flags, "-fpermissive", "-w", "-x", "c++", "-"]

    def made() -> str:
        program = tree.parent / f"{tree.name}-{source}.exe"
        include = [f"-I{folder}" for folder in (tree / "include", cuda, cuda / "cccl")]
        subprocess.run([*command, *include, "-o", program], input=text, text=True, check=True)
        done = subprocess.run([program, "0", str(1 << 32), str(step)], capture_output=True, text=True, check=False)
        program.unlink()
        return json.dumps([done.returncode, done.stdout, done.stderr])

    headers = files_hash(tree / "include"), toolchain.fingerprint
    status, out, err = json.loads(remembered((*command, text, str(step), *headers), made))
    return status, out, err


@pytest.mark.parametrize(
    "flags", [(), ("-ffast-math", "-fsigned-zeros"), ("-DCUDA_PTX_FP4FP6_CVT_ENABLED=1",)], ids=" ".join
)
@pytest.mark.parametrize("version", ["4.2.1", "4.8.0"])
def test_constructors_round_once_and_shapes_stay(
    patched: Callable[[str], Path], toolchain: Toolchain, version: str, flags: tuple[str, ...]
) -> None:
    status, out, _ = run(CONSTRUCTORS, patched(version), toolchain, *flags)
    assert (status, out.splitlines()[-1].split()[2:]) == (0, ["0", "wrong"]), out


def test_upstream_rounds_doubles_twice_and_keeps_the_sign_of_nan(pristine_tree: GetTree, toolchain: Toolchain) -> None:
    status, out, _ = run(CONSTRUCTORS, pristine_tree("cutlass", "4.2.1"), toolchain)
    assert status == 1
    wrong = {line.partition(":")[0] for line in out.splitlines()[:-1]}
    assert wrong == {"E2M1 of a double", "E2M1 of -nan", "E2M3 of -nan", "E3M2 of -nan"}


@pytest.mark.parametrize(
    ("source", "version"),
    [(CONSTRUCTORS, "4.2.1"), (CONSTRUCTORS, "4.8.0"), (CONVERTERS, "4.2.1"), (CONVERTERS, "4.5.0")],
)
def test_a_strict_build_warns_of_no_line_that_is_new(
    pristine_tree: GetTree, patched: Callable[[str], Path], toolchain: Toolchain, source: str, version: str
) -> None:
    upstream, tree = pristine_tree("cutlass", version) / "include", patched(version) / "include"
    places = warned(source, tree, toolchain)
    assert places
    new = [(file, line) for file, line in places if line not in (upstream / file).read_text().splitlines()]
    assert new == []


def warned(source: str, include: Path, toolchain: Toolchain) -> list[tuple[str, str]]:
    """Return the lines of headers, with their files, of which a strict compilation of a program here warns."""
    cuda = toolchain.root / "include"
    command = ["g++", "-std=c++17", "-DANY_LENGTH", "-fpermissive", "-fsyntax-only", *STRICT]
    command += [f"-I{folder}" for folder in (include, cuda, cuda / "cccl")]
    done = subprocess.run([*command, Path(__file__).with_name(source)], capture_output=True, text=True, check=True)
    # Example: /tmp/include/cutlass/float_subbyte.h:100:43: warning: comparing floating-point ... [-Wfloat-equal]
    found = re.findall(rf"^{re.escape(str(include))}/([^:]+):(\d+):\d+: warning: ", done.stderr, re.MULTILINE)
    return [(file, (include / file).read_text().splitlines()[int(line) - 1]) for file, line in found]


@pytest.mark.parametrize("version", ["4.2.1", "4.5.0"])
def test_the_converters_are_exact(patched: Callable[[str], Path], toolchain: Toolchain, version: str) -> None:
    status, out, err = run(CONVERTERS, patched(version), toolchain, "-DANY_LENGTH")
    assert (status, err) == (0, "")
    checked, wrong = (int(word) for word in out.split() if word.isdigit())
    assert (checked > 20_000_000, wrong) == (True, 0)


def test_upstream_converts_negative_nan_alone_otherwise(pristine_tree: GetTree, toolchain: Toolchain) -> None:
    status, _, err = run(CONVERTERS, pristine_tree("cutlass", "4.2.1"), toolchain, step=10_000_019)
    assert status == 1
    assert {line.partition(": ")[0] for line in err.splitlines()} == {"float of -nan"}


@pytest.mark.parametrize(
    ("arch", "instruction"),
    [(arch, True) for arch in ("100a", "100f", "103a", "110a", "120a", "120f", "121a", "121f")]
    + [(arch, False) for arch in ("75", "90a", "100", "103", "120", "121")],
)
def test_the_target_decides(arch: str, instruction: bool, toolchain: Toolchain, tmp_path: Path) -> None:
    nvcc = [str(toolchain.root / "bin/nvcc"), *toolchain.flags, f"-gencode=arch=compute_{arch},code=sm_{arch}"]
    assert takes(tmp_path, nvcc) == instruction
    assert not (instruction and takes(tmp_path, nvcc, "-DFP4PATCH_FORCE_SOFTWARE"))


def test_before_the_family_macro_the_targets_own_macros_decide(tmp_path: Path) -> None:
    assert takes(tmp_path, ["g++"], "-x", "c++", "-D__CUDA_ARCH_FEAT_SM120_ALL")
    assert takes(tmp_path, ["g++"], "-x", "c++", "-D__CUDA_ARCH_FEAT_SM100_ALL")
    assert not takes(tmp_path, ["g++"], "-x", "c++", "-D__CUDA_ARCH_FEAT_SM90_ALL")
    assert not takes(tmp_path, ["g++"], "-x", "c++")  # the host


def takes(folder: Path, compiler: list[str], *flags: str) -> bool:
    """Return whether the patch's choice is the instruction, by the preprocessor."""
    source = folder / "choice.cu"
    source.write_text(CHOICE.read_text().partition("namespace")[0] + "\ntakes FP4PATCH_E2M1_INSTRUCTION\n")
    done = subprocess.run([*compiler, "-E", *flags, source], capture_output=True, text=True, check=True)
    return "takes 1" in done.stdout
