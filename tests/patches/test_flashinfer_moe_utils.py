"""`flashinfer/moe-utils-sm12x`: what each FlashInfer compiles its MoE utilities for on each GPU, before and after.

FlashInfer's own Python is evaluated as doctor does it. Its check of downloaded headers is left out: nothing is fetched.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flashinfer_wheel import unpack

from fp4patch.catalog.target import JitModule
from fp4patch.commands import main
from fp4patch.commands.doctor.jit import compiled, package
from fp4patch.core.arch import Arch

FILE = "jit/moe_utils.py"
MODULE = JitModule(name="moe_utils", search=(FILE,), function="gen_moe_utils_module")
REFUSES = "stops"


def made(root: Path, gpu: str) -> tuple[str, ...]:
    """The architectures of the module on a GPU, or that FlashInfer raises."""
    tree = root.parent / "evaluated"
    (tree / "jit").mkdir(parents=True, exist_ok=True)
    (tree / "compilation_context.py").write_bytes((root / "compilation_context.py").read_bytes())
    (tree / "jit/core.py").write_bytes((root / "jit/core.py").read_bytes())
    (tree / FILE).write_text(re.sub(r"\n +(?:for header in |    h = |    assert h, ).*", "", (root / FILE).read_text()))
    found = compiled(package(tree), [MODULE], "13.0", "", Arch.parse(gpu))
    return (REFUSES, found.stops) if found.stops else found.modules["moe_utils"]


@pytest.mark.parametrize(("version", "majors"), [("0.6.8", "[10]"), ("0.7.2", "[9, 10]")])
def test_gb10_and_the_rtx_cards_get_a_module_and_no_other_gpu_changes(
    tmp_path: Path, version: str, majors: str
) -> None:
    root = unpack(version, tmp_path / "site-packages", lambda name: name.endswith((FILE, "_build_meta.py", *MARKS)))
    others = ("sm_90", "sm_100", "sm_103")
    before = {gpu: made(root, gpu) for gpu in others}
    for gpu in ("sm_120", "sm_121"):
        assert made(root, gpu) == (
            REFUSES,
            f"RuntimeError: No supported CUDA architectures found for major versions {majors}",
        )
    assert main.run(["apply", "--variant", "native", str(root)]) == 0
    assert (made(root, "sm_120"), made(root, "sm_121")) == (("12.0f",), ("12.1a",))
    assert {gpu: made(root, gpu)[-1].replace(", 12]", "]") for gpu in others} == {g: b[-1] for g, b in before.items()}
    assert main.run(["revert", str(root)]) == 0
    assert made(root, "sm_121")[0] == REFUSES


MARKS = (
    "compilation_context.py",
    "jit/core.py",
    "data/include/flashinfer/utils.cuh",
    "data/csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh",
    "cutlass/include/cutlass/cutlass.h",
    "cutlass/include/cutlass/version.h",
    "cutlass/include/cutlass/float_subbyte.h",
    "cutlass/include/cutlass/numeric_conversion.h",
)
