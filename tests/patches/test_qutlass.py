"""QuTLASS: its patch on a tree of excerpts, whose multiplication, host code and build are compiled and run.

QuTLASS is in git alone. A whole tree, by hand: ``fp4patch fetch qutlass==0.2.0 DIR``, then ``apply``, ``verify --all``
and ``revert``; the matrix has the result.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases
from command import Said
from cubins import compile_cuda, disassembled
from small_trees import small_tree

from fp4patch.catalog.manifest import data_root
from fp4patch.proof.toolchain import Toolchain

PROBE = data_root() / "patches/qutlass/sm120-family/probes/mxfp4-mma.cu"
CASES = cases("qutlass/sm120-family")
SHAPES = ("rotation-of-128", "rotation-of-128-with-sm110")


def test_a_command_on_vllm_reaches_the_trees_that_its_build_takes(
    tree_copy: Callable[[str, str], Path], fp4patch: Callable[..., Said]
) -> None:
    """flash-attention's too."""
    vllm = tree_copy("vllm", "0.33.0")
    assert "${_qutlass_fc_root}/qutlass-src" in (vllm / "cmake/external_projects/qutlass.cmake").read_text()
    assert '".deps")' in (vllm / "setup.py").read_text()
    tree = small_tree("qutlass", vllm / ".deps/qutlass-src")
    small_tree("flash_attention", vllm / ".deps/vllm-flash-attn-src")
    said = fp4patch("apply", "--variant", "native", vllm)
    assert (said.status, "flash_attention 2.7.2.post1" in said.out) == (0, True)
    assert "TARGET_CUDA_ARCH < 130" in (tree / "qutlass/csrc/gemm.cu").read_text()
    assert fp4patch("revert", vllm).status == 0
    assert "TARGET_CUDA_ARCH < 130" not in (tree / "qutlass/csrc/gemm.cu").read_text()


def test_the_multiplication_is_empty_on_sm121_before_and_there_after(
    pristine_tree: Callable[[str, str], Path], toolchain: Toolchain, tmp_path: Path
) -> None:
    cutlass = pristine_tree("cutlass", "4.2.1")

    def compiled(side: str, arch: str) -> tuple[bytes, list[str]]:
        header = tmp_path / side / "cutlass_extensions/arch/mma_mx_sm120.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(getattr(CASES["multiplication.h"], side))
        flags = ("-DNDEBUG", "-cubin", f"-arch={arch}", f"-I{tmp_path / side}", f"-I{cutlass / 'include'}")
        code = compile_cuda(toolchain, PROBE.read_text(), tmp_path / "probe.cubin", *flags).read_bytes()
        return code, re.findall(r"\bOMMA\.\S*", disassembled(toolchain, code))

    instruction = ["OMMA.SF.16864.F32.E2M1.E2M1.E8"]
    assert compiled("before", "sm_120a") == (compiled("after", "sm_120a")[0], instruction)
    assert compiled("before", "sm_121a")[1] == []
    assert compiled("after", "sm_121a")[1] == instruction


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gpu", [90, 100, 101, 103, 110, 120, 121])
def test_a_rotation_of_128_has_a_kernel_or_the_compiler_refuses_it(shape: str, gpu: int) -> None:
    """The releases quantize nothing for a GPU that no branch names, and return memory that nothing wrote."""

    def kernels(side: str) -> list[str]:
        command = ["g++", "-E", "-P", f"-DTARGET_CUDA_ARCH={gpu}"]
        text = getattr(CASES[f"{shape}.cpp"], side).replace('#include "include/fused_quantize_host.h"', "")
        done = subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            return re.findall(r"#error \"(\w+)", done.stderr)
        return re.findall(r"AbsMax(Had128_host|_host_sm100)\(OUT", done.stdout)

    older = {100} if shape == "rotation-of-128" else {100, 101, 110}
    known = dict.fromkeys(older, ["_host_sm100"] * 2) | {120: ["Had128_host"] * 2}
    assert kernels("before") == known.get(gpu, [])
    assert kernels("after") == known.get(gpu, known[120] if gpu == 121 else ["QuTLASS"])


@pytest.mark.parametrize("quotes", ["setup", "setup-in-single-quotes"])
@pytest.mark.parametrize(("gpu", "code"), [(100, "sm_120a"), (110, "sm_120a"), (120, "sm_120a"), (121, "sm_121a")])
def test_the_build_makes_code_for_the_gpu_that_it_finds(quotes: str, gpu: int, code: str) -> None:
    def flags(side: str) -> list[str]:
        names: dict[str, object] = {"cc": gpu}
        exec(getattr(CASES[f"{quotes}.py"], side) + "\nflags = get_cuda_arch_flags()", names)
        return re.findall(r"code=(\w+)", str(names["flags"]))

    assert flags("before") == ["sm_120a", "sm_100a"]
    assert flags("after") == [code, "sm_100a"]
