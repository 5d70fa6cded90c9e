"""`fp4patch verify` on real vLLM trees with the real compiler: what the variants do to its own conversions, also run on
this host for all inputs."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import apply_and_verify, executed

from fp4patch.catalog.manifest import load
from fp4patch.catalog.rule import Promise
from variants import VARIANTS, encoder

GetTree = Callable[[str, str], Path]
ALL = 1 << 32
NANS = (1 << 23) - 1  # of one sign
CONVERSIONS = ("float8-to-e2m1", "float2x4-to-e2m1", "float2x8-to-e2m1")
BLOCKS = ("half-block-to-nvfp4", "bf16-block-to-nvfp4", "bf16-block-to-mxfp4")
TORCH = os.environ.get("FP4PATCH_TEST_TORCH_INCLUDE", "")
MATRICES = ("half-matrix-to-nvfp4", "half-matrix-by-columns-to-nvfp4")
"""The same kernel with the scales in their order, as older and newer releases call it: each has one of them."""
ENCODER = {f"forced-encoder-x{n}" for n in (1, 2, 4, 8, 16)}
ENCODER |= {f"forced-encoder-pairs-x{n}" for n in (2, 4, 8, 16)}
MINIMAX = {"half-row-to-minimax", "bf16-row-to-minimax", "forced-half-row-to-minimax"}
SOURCE_FILES = ("quant-kernels", "experts-quant", "activation-quant-fusion", "minimax-kv-insert")


@pytest.mark.parametrize(("version", "encoder"), [("0.16.0", set()), ("0.33.0", ENCODER)])
def test_turbo2_is_branch_free_software_on_sm121a_and_next2_leaves_the_hardware(
    vllm: Callable[[str], Path], probes: Callable[..., Path], version: str, encoder: set[str]
) -> None:
    """Without the evaluations of the tree's build, and with the encoder's own probes on one release."""
    probes("vllm", *CONVERSIONS, *BLOCKS, *MATRICES, *encoder, *MINIMAX, *SOURCE_FILES)
    tree = vllm(version)
    status, document = apply_and_verify(tree, "turbo2")
    assert (status, document["verdict"], document["problems"]) == (0, "pass", [])
    found = {(r["probe"].removeprefix("vllm/"), r["arch"]): r for r in document["results"]}
    rows = {probe for probe, _ in found if probe in MINIMAX}
    (matrix,) = {probe for probe, _ in found} - {*CONVERSIONS, *BLOCKS, *encoder, *rows}
    assert matrix in MATRICES
    for probe in (*CONVERSIONS, *BLOCKS, matrix):
        card, gb10 = found[probe, "sm_120a"], found[probe, "sm_121a"]
        values = 16 if probe == "float2x8-to-e2m1" else 8
        assert card["identical"]
        assert (card["after"]["fp4"], gb10["before"]["fp4"], gb10["after"]["fp4"]) == (values // 2, values // 2, 0)
        if probe != matrix:  # the order of scales takes branches, which the compiler may lay out anew
            assert gb10["after"]["branches"] == gb10["before"]["branches"]
    # CUDA 13.0.88: four conversions by hardware and what loads and stores; 24 instructions a value instead.
    counts = [found[probe, "sm_121a"][side]["instructions"] for probe in CONVERSIONS for side in ("before", "after")]
    assert counts == [19, 209, 19, 209, 26, 405]
    # Probes that did not run are reported: the source files take PyTorch's headers, and one of them came later.
    aside = {probe["probe"].removeprefix("vllm/"): probe["because"] for probe in document["set_aside"]}
    idle = {"kernel-gate", "gdn-prefill"} if version == "0.33.0" else {"kernel-gate"}  # upstream has another text
    assert set(aside) == {*SOURCE_FILES, *MATRICES, *MINIMAX, *idle} - {matrix} - rows
    assert rows == (MINIMAX if version == "0.33.0" else set())
    assert all(found[row, "sm_120a"]["after"]["fp4"] == 2 * (row[:6] != "forced") for row in rows)
    assert all(found[row, "sm_121a"]["after"]["fp4"] == 0 for row in rows)
    assert "--torch-include" in aside["quant-kernels"]
    assert ("this release has no" in aside["minimax-kv-insert"]) == (version == "0.16.0")

    status, document = apply_and_verify(tree, "next2")
    assert (status, document["verdict"]) == (0, "pass")
    # One of the conversions for the families, too.
    assert len(document["results"]) == 16 + 2 * len(encoder) + 2 * len(rows)
    assert all(r["identical"] and r["after"]["fp4"] for r in document["results"])


def test_a_conversion_that_no_probe_knows_fails(vllm: Callable[[str], Path], probes: Callable[..., Path]) -> None:
    probes("vllm", *CONVERSIONS)
    tree = vllm("0.16.0")
    header = tree / "csrc/quantization/fp4/nvfp4_utils.cuh"
    header.write_text(header.read_text().replace("fp32_vec8_to_e2m1", "eight_to_e2m1"))
    status, document = apply_and_verify(tree, "turbo2", "--arch", "sm_121a")
    assert (status, document["verdict"]) == (1, "fail")
    failed = {r["probe"]: r["error"] for r in document["results"] if r["verdict"] != "pass"}
    assert set(failed) == {"vllm/float8-to-e2m1", "vllm/float2x4-to-e2m1"}
    assert all("no conversion function that the probe knows" in error for error in failed.values())


def test_the_trees_own_build_is_evaluated_for_each_patch_of_it(
    vllm: Callable[[str], Path], probes: Callable[..., Path]
) -> None:
    """One arch list of each kind: all of them, for every CUDA release, take a minute."""
    data = probes("vllm", "float8-to-e2m1", builds=True)
    for file in data.glob("patches/vllm/*/patch.toml"):
        file.write_text(re.sub(r'(?m)^((?:reaches|same|keeps) = \["[^"]*").*', r"\1]", file.read_text()))
    target = data / "patches/vllm/target.toml"
    target.write_text(re.sub(r"(?m)^cuda = \[.*", 'cuda = ["13.0"]', target.read_text()))
    tree = vllm("0.33.0")
    status, document = apply_and_verify(tree, "native", "--arch", "sm_121a")
    assert (status, document["verdict"]) == (0, "pass")
    checks = {
        "vllm/arch-lists",
        "vllm/detected-arch",
        "vllm/fa3-for-hopper",
        # Upstream has these already, which is run, too.
        "vllm/marlin-fp8",
        "vllm/marlin-fp8-chosen",
        "vllm/marlin-fp8-generated",
        "vllm/moe-defines",
        "vllm/native-arch",
        "vllm/order-of-tokens",
    }
    assert {build["check"] for build in document["builds"]} == checks
    builds = {(build["check"], build["cuda"], build["asked"]): build for build in document["builds"]}
    changed = builds["vllm/arch-lists", "13.0", "12.1a"]
    assert (changed["before"], changed["after"], changed["verdict"]) == ("12.0f", "12.1a", "pass")


@pytest.mark.skipif(not TORCH, reason="FP4PATCH_TEST_TORCH_INCLUDE names no include folder of PyTorch; takes minutes")
def test_no_kernel_of_the_source_files_keeps_the_instruction(vllm: Callable[[str], Path]) -> None:
    tree = vllm("0.33.0")
    status, document = apply_and_verify(tree, "turbo2", "--torch-include", TORCH)
    assert (status, document["set_aside"]) == (0, [])
    found = {(r["probe"].removeprefix("vllm/"), r["arch"]): r for r in document["results"]}
    for name in SOURCE_FILES:
        card, gb10 = found[name, "sm_120a"], found[name, "sm_121a"]
        assert card["kind"] == "unit"
        assert card["identical"]
        assert card["after"]["fp4"] == gb10["before"]["fp4"] > 0 == gb10["after"]["fp4"]


def test_vllms_conversions_by_code_with_branches(vllm: Callable[[str], Path], probes: Callable[..., Path]) -> None:
    """All inputs run through every lane of such code, which takes minutes: here a sample does."""
    probes("vllm", *CONVERSIONS, sampled=True)
    status, found = executed(vllm("0.33.0"), "turbo", "sm_120a,sm_121a")
    assert status == 0
    for probe in CONVERSIONS:
        card, gb10 = found[probe, "sm_120a", "pristine"], found[probe, "sm_121a", "patched"]
        assert (card["instruction"], gb10["instruction"]) == (True, False)
        assert (card["verdict"], gb10["verdict"]) == ("pass", "pass")
        assert gb10["ran"]["inputs"] > 1 << 18


@pytest.mark.parametrize("variant", [name for name in VARIANTS if encoder(name, "vllm") and name != "turbo"])
def test_vllms_own_conversions(vllm: Callable[[str], Path], variant: str, probes: Callable[..., Path]) -> None:
    """Without the encoder's own probes, which are CUTLASS's too."""
    blocks = ("half-block-to-nvfp4", "bf16-block-to-mxfp4", "half-matrix-to-nvfp4", "half-row-to-minimax")
    probes("vllm", *CONVERSIONS, *blocks)
    shipped = load().variant(variant)
    software = "sm_121" if "sm_121" in shipped.arch else "sm_121a"
    status, found = executed(vllm("0.33.0"), variant, f"sm_120a,{software}")
    assert status == 0
    nan_signs = 0 if shipped.promise is Promise.EXACT else NANS
    for probe in CONVERSIONS:
        card, gb10 = found[probe, "sm_120a", "pristine"], found[probe, software, "patched"]
        assert (card["instruction"], gb10["instruction"]) == (True, False)
        assert (card["ran"]["inputs"], gb10["ran"]["inputs"]) == (ALL, ALL)
        assert (card["ran"]["signs"], gb10["ran"]["signs"]) == (0, nan_signs)
