"""`flashinfer/moe-utils-sm12x`: what each FlashInfer compiles its MoE utilities for on each GPU, before and after.

FlashInfer's own functions run as doctor runs them. Its download of headers is left out.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from flashinfer_wheel import is_python, unpack

from fp4patch import cli
from fp4patch.adapters.flashinfer import run
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import JitModule
from fp4patch.core.arch import Arch

pytestmark = pytest.mark.slow

FILE = "jit/moe_utils.py"
MODULE = JitModule(name="moe_utils", search=(FILE,), function="gen_moe_utils_module")
TARGET = load().target("flashinfer")
assert TARGET.build
BUILD = replace(TARGET.build, modules=(MODULE,))
REFUSES = "stops"


def made(root: Path, gpu: str) -> tuple[str, ...]:
    """The architectures of the module on a GPU, or that FlashInfer raises."""
    tree = root.parent / "evaluated"
    if not tree.exists():
        shutil.copytree(root, tree, ignore=lambda _, names: {"data"} & set(names))
    shutil.copy(root / "compilation_context.py", tree)
    (tree / FILE).write_text(re.sub(r"(?s)\n    checksum = .*?(?=\n    nvcc_flags)", "", (root / FILE).read_text()))
    (found,) = run(tree, BUILD, [("13.0", "", Arch.parse(gpu))], parts=False)
    assert not found.error
    return (REFUSES, found.stops) if found.stops else found.modules["moe_utils"]


@pytest.mark.parametrize(("version", "majors"), [("0.6.8", "[10]"), ("0.7.2", "[9, 10]")])
def test_gb10_and_the_rtx_cards_get_a_module_and_no_other_gpu_changes(
    tmp_path: Path, version: str, majors: str
) -> None:
    root = unpack(
        version, tmp_path / "site-packages", lambda name: is_python(name) or name.endswith(MARKS) or CUTLASS in name
    )
    others = ("sm_90", "sm_100", "sm_103")
    before = {gpu: made(root, gpu) for gpu in others}
    for gpu in ("sm_120", "sm_121"):
        assert made(root, gpu) == (
            REFUSES,
            f"RuntimeError: No supported CUDA architectures found for major versions {majors}",
        )
    assert cli.run(["apply", "--variant", "native", str(root)]) == 0
    assert (made(root, "sm_120"), made(root, "sm_121")) == (("12.0f",), ("12.1a",))
    assert {gpu: made(root, gpu)[-1].replace(", 12]", "]") for gpu in others} == {g: b[-1] for g, b in before.items()}
    assert cli.run(["revert", str(root)]) == 0
    assert made(root, "sm_121")[0] == REFUSES


def test_from_0_7_4_on_the_module_is_upstreams_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = unpack(
        "0.7.4", tmp_path / "site-packages", lambda name: is_python(name) or name.endswith(MARKS) or CUTLASS in name
    )
    assert (made(root, "sm_120"), made(root, "sm_121")) == (("12.0f",), ("12.1a",))
    before = (root / FILE).read_bytes()
    assert cli.run(["apply", "--variant", "native", str(root)]) == 0
    assert "flashinfer/moe-utils-sm12x: the list names 12" in capsys.readouterr().out
    assert (root / FILE).read_bytes() == before
    capsys.readouterr()
    assert cli.run(["doctor", str(root)]) in (0, 1)
    said = capsys.readouterr().out
    assert "the conversion is in hardware" in said
    assert "MoE utilities" not in said


MARKS = (
    "data/include/flashinfer/utils.cuh",
    "data/csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh",
)
CUTLASS = "flashinfer/data/cutlass/include/cutlass/"
