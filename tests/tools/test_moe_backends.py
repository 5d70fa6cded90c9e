"""The order of MoE backends on the page is what the source of vLLM says."""

from collections.abc import Callable
from pathlib import Path

from tools.pages import moe_backends


def test_the_page_has_the_row_that_a_tree_gives_and_a_kernel_for_other_gpus_is_not_in_it(
    vllm: Callable[[str], Path],
) -> None:
    tree = vllm("0.33.0")
    *_, last = (line for line in moe_backends.PAGE.read_text().splitlines() if line.startswith("| 0."))
    assert last.split(" | ", 1)[1] == " | ".join(moe_backends.row(tree)) + " |"
    kernel = tree / moe_backends.LAYERS / "experts/flashinfer_cutlass_moe.py"
    kernel.write_text(
        kernel.read_text().replace("is_device_capability_family(120)", "is_device_capability_family(100)")
    )
    assert moe_backends.row(tree)[0].startswith("`cutlass`, `marlin`")
