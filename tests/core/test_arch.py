"""Every way in which people write an architecture."""

import re
import subprocess
from pathlib import Path

import pytest

from fp4patch.core.arch import Arch, made_by, nearest
from fp4patch.proof.toolchain import Toolchain


@pytest.mark.parametrize("text", ["sm_121a", "compute_121a", "121a", "12.1a", " 12.1a "])
def test_every_spelling_names_one_architecture(text: str) -> None:
    assert Arch.parse(text) == Arch(12, 1, "a")


@pytest.mark.parametrize("text", ["", "12", "sm_9", "12a", "121b", "12.10", "1210", "sm_121aa", "native"])
def test_what_is_no_architecture_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write for example sm_121a"):
        Arch.parse(text)


def test_a_list_has_each_target_once_whatever_stands_between() -> None:
    assert Arch.parse_list(" sm_121a,12.0f; 120a  12.1a") == (Arch(12, 1, "a"), Arch(12, 0, "f"), Arch(12, 0, "a"))
    assert Arch.parse_list("9.0a;12.1(2.0)+PTX", ptx=True) == (Arch(9, 0, "a"), Arch(12, 1))


@pytest.mark.parametrize(
    ("names", "gpu", "taken"),
    [
        (["sm_120"], "sm_120", "sm_120"),
        (["sm_120"], "sm_121", "sm_120"),  # plain: every later minor version
        (["sm_121"], "sm_120", None),
        (["sm_120a"], "sm_120", "sm_120a"),
        (["sm_120a"], "sm_121", None),  # a: this one alone
        (["sm_120f"], "sm_121", "sm_120f"),  # f: the family, from here on
        (["sm_121f"], "sm_120", None),
        (["sm_120f", "sm_121a"], "sm_121", "sm_121a"),
        (["sm_120f", "sm_121a"], "sm_120", "sm_120f"),
        (["sm_90", "sm_100a", "sm_100f"], "sm_120", None),  # another major version never
        (["sm_90", "compute_90"], "sm_121", "compute_90"),
        (["sm_120", "compute_121"], "sm_121", "sm_120"),  # a cubin before any PTX
        (["compute_80", "compute_90"], "sm_120", "compute_90"),
        (["compute_121"], "sm_120", None),
        (["compute_121a"], "sm_121", "compute_121a"),
        (["compute_120a"], "sm_121", None),
        (["compute_120f"], "sm_121", "compute_120f"),
        (["compute_90a"], "sm_121", None),
        ([], "sm_121", None),
    ],
)
def test_the_driver_takes(names: list[str], gpu: str, taken: str | None) -> None:
    code, ptx = ([Arch.parse(name) for name in names if name.startswith(kind)] for kind in ("sm_", "compute_"))
    assert nearest(Arch.parse(gpu), code, ptx) == (Arch.parse(taken) if taken else None)


@pytest.mark.parametrize("text", ["", " ", ",;", "12.1a;native", "12.1a+PTX"])
def test_a_list_without_a_target_or_with_another_word_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="architecture"):
        Arch.parse_list(text)


def test_the_macros_of_a_target_are_those_that_nvcc_prints(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "empty.cu").write_text("")
    for text in ("sm_90", "sm_120a", "sm_120f", "sm_121", "sm_121a"):
        arch = Arch.parse(text)
        flags = (f"-gencode=arch=compute_{arch.number},code=sm_{arch.number}", "-Xcompiler", "-dM", "-E", "--keep")
        command = [str(toolchain.nvcc), *toolchain.flags, *flags, "--dryrun", str(tmp_path / "empty.cu")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        device = next(line for line in said.splitlines() if "-D__CUDA_ARCH__=" in line)
        defined = dict(re.findall(r"-D(__CUDA_ARCH\w*)=?(\d*)", device))
        assert {name: text for name, text in defined.items() if "LIST" not in name} == arch.macros


@pytest.mark.parametrize("virtual", ["120", "120f", "120a", "121f", "121a", "80", "100f"])
@pytest.mark.parametrize("real", ["120", "120f", "120a", "121", "121f", "121a"])
def test_the_target_of_a_pair_is_the_one_that_nvcc_gives_to_ptxas(
    toolchain: Toolchain, tmp_path: Path, virtual: str, real: str
) -> None:
    (tmp_path / "x.cu").write_text("__global__ void kernel(int *out) { *out = 1; }\n")
    flag = f"-gencode=arch=compute_{virtual},code=sm_{real}"
    nvcc = [str(toolchain.root / "bin/nvcc"), "-v", "-cubin", "x.cu", "-o", "x.cubin", flag]
    said = subprocess.run(nvcc, cwd=tmp_path, capture_output=True, text=True, check=False)
    made = made_by(virtual, f"sm_{real}")
    if said.returncode or (virtual.isdigit() and real.endswith("a")):  # ptxas refuses the latter's FP4 instructions
        assert made is None
    else:
        assert [str(made)] == re.findall(r"ptxas.* -arch[ =](sm_\w+)", said.stderr)


def test_ptx_has_the_target_of_its_own_and_what_is_no_target_is_none() -> None:
    assert made_by("120f", "compute_120f") == Arch(12, 0, "f")
    assert made_by("20", "sm_121") is None
    assert made_by("90", "sm_90a") == Arch(9, 0, "a")
