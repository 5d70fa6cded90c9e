"""vLLM's flash-attention: inside a tree of vLLM, refusals, and what doctor says of its lists.

The project is in git alone. A whole tree, by hand: ``fp4patch fetch flash_attention==2.7.2.post1 DIR``, then ``apply``,
``verify`` and ``revert``; the matrix has the result.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases
from command import Said
from small_trees import small_tree

BEFORE = cases("flash_attention/native-arch")["lists.cmake"].before


# The part of the project's CMakeLists.txt around its lists.
CONFIGURES = """cmake_minimum_required(VERSION 3.26)
project(vllm_flash_attn LANGUAGES CXX CUDA)
include(${CMAKE_CURRENT_LIST_DIR}/cmake/utils.cmake)
find_package(Torch REQUIRED)
clear_cuda_arches(CUDA_ARCH_FLAGS)
extract_unique_cuda_archs_ascending(CUDA_ARCHS "${CUDA_ARCH_FLAGS}")
%s
set_gencode_flags_for_srcs(SRCS "csrc/flash_attn/src/flash_fwd_hdim128.cu" CUDA_ARCHS "${FA2_ARCHS}")
"""
SUPPORTED = 'cuda_archs_loose_intersection(CUDA_ARCHS "${CUDA_SUPPORTED_ARCHS}" "${CUDA_ARCHS}")\n'


@pytest.mark.parametrize(
    ("archs", "variant", "found"),
    [
        ("12.1a", "", {"sm_121": ("yellow", "PTX")}),
        ("12.0a;12.1a", "", {"sm_120": ("yellow", "PTX"), "sm_121": ("yellow", "PTX")}),
        ("12.1a", "native", {"sm_121": ("green", "native")}),
        ("12.0f", "next3", {"sm_120": ("green", "native")}),
        ("12.0a;12.1a", "native", {"sm_120": ("green", "native"), "sm_121": ("green", "native")}),
    ],
)
def test_doctor_asks_for_code_that_loads_and_for_no_instruction(
    archs: str,
    variant: str,
    found: dict[str, tuple[str, str]],
    tmp_path: Path,
    pristine_tree: Callable[[str, str], Path],
    fp4patch: Callable[..., Said],
) -> None:
    """Its kernels have no FP4 conversion: a target without a suffix is enough, and PTX is compiled by the driver."""
    before, fa2, after = BEFORE.partition("cuda_archs_loose_intersection(FA2_ARCHS")
    tree = small_tree("flash_attention", tmp_path / "fa")
    (tree / "CMakeLists.txt").write_text(CONFIGURES % f"{before}{SUPPORTED}{fa2}{after}")
    utils = pristine_tree("vllm", "0.20.0") / "cmake/utils.cmake"  # the same functions
    (tree / "cmake/utils.cmake").write_text(utils.read_text(encoding="utf-8"), encoding="utf-8")
    if variant:
        assert fp4patch("apply", "--variant", variant, tree).status == 0
    said = fp4patch("doctor", "--cuda", "13.0", "--arch-list", archs, "--json", tree)
    (report,) = said.document["trees"]
    assert {gpu["gpu"]: (gpu["level"], gpu["verdict"]) for gpu in report["gpus"]} == found
    assert said.status == 0
    assert report["recommended"]["variant"] == "native"
