"""Conditions on the compute capability in a tree's code, evaluated before and after the patches."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.results import Verdict
from fp4patch.proof import conditions
from fp4patch.proof.result import BuildResult
from fp4patch.proof.toolchain import Toolchain

MARLIN, EXPERTS = "csrc/quantization/gptq_marlin/gptq_marlin.cu", "csrc/moe/marlin_moe_wna16/ops.cu"
GENERATOR, GATE = "csrc/moe/marlin_moe_wna16/generate_kernels.py", "csrc/cutlass_extensions/common.hpp"
CHOICE = "vllm/model_executor/layers/quantization/utils/marlin_utils.py"
EXACT, FAMILY = "major_capability * 10 + minor_capability == 120", "major_capability == 12"
OF_GATE = "&& __CUDA_ARCH__ == 1200\n"

Evaluate = Callable[[str, str, str], BuildResult]


@pytest.fixture
def evaluated(pristine_tree: Callable[[str, str], Path], toolchain: Toolchain) -> Evaluate:
    """``evaluated(path, old, new)``: the result for a file of vLLM 0.14.1 with this change."""
    tree, patch = pristine_tree("vllm", "0.14.1"), load().patches["vllm/sm120-family"]

    def get(path: str, old: str, new: str) -> BuildResult:
        before = (tree / path).read_bytes()
        assert before.count(old.encode()) == 1
        after = before.replace(old.encode(), new.encode())
        (found,), _ = conditions.evaluate({path: before}, {path: after}, [patch], toolchain)
        return found

    return get


@pytest.mark.parametrize(
    ("path", "old", "new", "after"),
    [
        (MARLIN, EXACT, FAMILY, "8.9 12.0 12.1"),
        (EXPERTS, EXACT, FAMILY, "8.9 12.0 12.1"),
        (GATE, OF_GATE, "&& __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300\n", "12.0 12.1"),
        (GENERATOR, "arch in [89, 120]", "arch in [89, 120, 121]", "8.9 12.0 12.1"),
        (CHOICE, "is_device_capability(120):", "is_device_capability_family(120):", "8.9 12.0 12.1"),
        # Not what the family needs.
        (MARLIN, EXACT, "major_capability >= 12", "8.9 12.0 12.1 13.0"),
        (MARLIN, EXACT, "minor_capability == 1", "8.9 12.1"),
        (MARLIN, "minor_capability == 89", "minor_capability >= 89", "8.9 9.0 10.0 10.3 11.0 12.0 12.1 13.0"),
        (MARLIN, f"{EXACT},", f"{FAMILY} && a_type != vllm::kFE4M3fn,", "8.9"),
        (EXPERTS, EXACT, "major_capability * 10 + minor_capability == 121", "8.9 12.1"),
        (GATE, OF_GATE, "&& __CUDA_ARCH__ >= 1200\n", "12.0 12.1 13.0"),
        (GATE, OF_GATE, "&& __CUDA_ARCH__ == 1210\n", "12.1"),
        (GENERATOR, "arch in [89, 120]", "arch >= 120", "12.0 12.1 13.0"),
        (CHOICE, "is_device_capability(120):", "is_device_capability(121):", "8.9 12.1"),
    ],
)
def test_only_a_condition_for_the_family_passes(evaluated: Evaluate, path: str, old: str, new: str, after: str) -> None:
    found, before = evaluated(path, old, new), "12.0" if path == GATE else "8.9 12.0"
    right = after == f"{before} 12.1"
    assert (found.before, found.after, found.verdict) == (before, after, Verdict.PASS if right else Verdict.FAIL)
    assert found.detail.endswith(f"got {after}") is not right


@pytest.mark.parametrize(
    ("path", "old", "new", "detail"),
    [
        (MARLIN, EXACT, "unknown == 12", "unknown"),
        (CHOICE, "is_device_capability(120):", "is_device_capability(cuda):", "cuda"),
        (GENERATOR, "arch in [89, 120]", "arch in [89, 120", "invalid syntax"),
        (MARLIN, "int major_capability, minor", "int major_capability = 0, minor", "there is no"),
        # Not the same for each target of a GPU, each list of targets or each device.
        (GATE, OF_GATE, "&& __CUDA_ARCH__ == 1200 && !defined(__CUDA_ARCH_SPECIFIC__)\n", "for each target"),
        (GATE, OF_GATE, "&& __CUDA_ARCH__ == 1200 && !defined(__CUDA_ARCH_FEAT_SM120_ALL)\n", "for each target"),
        (GENERATOR, "arch in [89, 120]", "arch in [89, 120] and ',' not in sys.argv[1]", "AssertionError"),
        (MARLIN, EXACT, f"{EXACT} && dev == 0", "for each device"),
    ],
)
def test_what_cannot_be_evaluated_is_a_failure(evaluated: Evaluate, path: str, old: str, new: str, detail: str) -> None:
    found = evaluated(path, old, new)
    assert found.verdict is Verdict.FAIL
    assert detail in found.detail
