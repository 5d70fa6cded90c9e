"""Follows each remedy that doctor gives, and runs doctor again: it must be content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cubins import CONVERTS, compile_cuda, targets
from packaging.version import Version
from surroundings_on_disk import machine, torch

from fp4patch.commands.doctor import packages
from fp4patch.core.arch import GB10, GPUS, Arch
from fp4patch.core.cuda import FAMILIES_SINCE
from fp4patch.inspect import binaries, remedies
from fp4patch.inspect.findings import Level
from fp4patch.proof.toolchain import Toolchain

WHEELS = Path(__file__).parents[2] / "docs/wheels.md"
PLAIN = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }'


@pytest.mark.parametrize("cause", remedies.load().cause)
@pytest.mark.parametrize("gpu", GPUS)
def test_a_build_for_each_target_that_is_named_is_green(
    toolchain: Toolchain, tmp_path: Path, cause: str, gpu: Arch
) -> None:
    named = re.findall(r"sm_(\d+[af]?)\b", remedies.of(cause, gpu))
    wanted = [target for target in named if target[-1] in "af" or cause == "other_gpu"]
    assert wanted
    for target in wanted:
        source = CONVERTS if target[-1] in "af" else PLAIN
        built = compile_cuda(toolchain, source, tmp_path / f"{target}.o", "-c", *targets(target))
        (verdict,) = binaries.examine(built, gpus=(gpu,)).verdicts
        assert (verdict.level, verdict.todo) == (Level.GREEN, ""), target


def test_each_release_that_is_recommended_is_green_in_the_record_of_published_wheels() -> None:
    rows = [line for line in WHEELS.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    for release in remedies.load().release:
        name = f"{release.distribution.replace('-', '_')}-{release.good}-"
        (row,) = (line for line in rows if line.startswith(f"| {name}"))
        assert row.count("| **green**, *NVFP4 native*") == len(GPUS), row


def test_a_better_release_is_named_for_a_wheel_and_an_installed_package_and_not_for_itself() -> None:
    old = "transformer_engine_cu13-2.18.0-py3-none-manylinux_2_28_x86_64.whl"
    assert remedies.newer(f"/a/{old}").startswith("take transformer-engine-cu13 2.20.2")
    assert remedies.newer("/site-packages/transformer_engine").startswith("take transformer-engine-cu13 2.20.2")
    assert remedies.newer(old.replace("2.18.0", "2.20.2")) == ""
    assert remedies.newer("other-1.0-py3-none-any.whl") == remedies.newer("/a/x.so") == ""


def test_the_pytorch_that_is_recommended_for_gb10_is_green(tmp_path: Path) -> None:
    (release,) = re.findall(r"CUDA (\d+\.\d+)", packages.TORCH_FOR_GB10)
    assert Version(release) >= FAMILIES_SINCE
    torch(tmp_path / "site", f"2.9.1+cu{release.replace('.', '')}", release, "sm_80 sm_90 sm_100 sm_120")
    found = packages.examine_torch(packages.torch(machine(tmp_path)), [GB10], f"{release}.88")
    assert {finding.level for finding in found} == {Level.GREEN}
