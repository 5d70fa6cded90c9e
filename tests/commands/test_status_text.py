"""Output of ``status``: each state in full, on narrow terminals and with long names."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from fp4patch.commands import status
from fp4patch.core.state import State
from fp4patch.tree.status import FileStatus, PatchStatus, TreeStatus

LONG = "csrc/libtorch_stable/quantization/w8a8/cutlass/c3x/scaled_mm_sm120_fp8_dispatch.cuh"
TREE = TreeStatus(
    Path("vllm"),
    "vllm",
    "0.33.0",
    "next3",
    (FileStatus(LONG, State.OUTDATED, ("vllm/sm120-family 1",)),),
    (PatchStatus("vllm/cmake-sm121a", State.UPSTREAMED, "since 0.19: each list has it"),),
    (),
)


@pytest.mark.parametrize("width", [200, 80, 40])
def test_no_state_and_no_name_gives_way_to_a_long_path(width: int) -> None:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(status.text((TREE,)))
    lines = capture.get().splitlines()
    assert lines[1].split()[:3] == ["patch", "upstreamed", "vllm/cmake-sm121a"]
    assert any(line.split()[:2] == ["file", "outdated"] for line in lines)
    assert LONG in "".join(line.removeprefix(" file   outdated").strip() for line in lines)
