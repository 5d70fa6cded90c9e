"""vLLM's flash-attention: inside a tree of vLLM, refusals, and what doctor says of its lists.

The project is in git alone. A whole tree, by hand: ``fp4patch fetch flash_attention==2.7.2.post1 DIR``, then ``apply``,
``verify`` and ``revert``; the matrix has the result.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from flash_attention import CASE, configures
from small_trees import small_tree


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
    tree = small_tree("flash_attention", tmp_path / "fa")
    (tree / "CMakeLists.txt").write_text(configures(CASE.before))
    utils = pristine_tree("vllm", "0.20.0") / "cmake/utils.cmake"  # the same functions
    (tree / "cmake/utils.cmake").write_text(utils.read_text(encoding="utf-8"), encoding="utf-8")
    if variant:
        assert fp4patch("apply", "--variant", variant, tree).status == 0
    said = fp4patch("doctor", "--cuda", "13.0", "--arch-list", archs, "--json", tree)
    (report,) = said.document["trees"]
    assert {gpu["gpu"]: (gpu["level"], gpu["verdict"]) for gpu in report["gpus"]} == found
    assert said.status == 0
    assert report["recommended"]["variant"] == "native"
