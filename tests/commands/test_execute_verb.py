"""`fp4patch verify --execute` on real trees: each variant's machine code, run on this host for all inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import apply_and_verify

from fp4patch.catalog.manifest import load
from fp4patch.catalog.rule import Promise
from variants import VARIANTS, encoder

ALL = 1 << 32
CONVERSIONS = ("float8-to-e2m1", "float2x4-to-e2m1", "float2x8-to-e2m1")
NANS = (1 << 23) - 1  # of one sign
FROM_4_7 = ("half-to-e2m1-x", "bfloat16-to-e2m1-x", "upstream-")
"""Probes of converters and functions that CUTLASS has from 4.7 on."""


def executed(tree: Path, variant: str, archs: str) -> tuple[int, dict[tuple[str, str, str], Any]]:
    """Exit status; executions by probe, architecture and side."""
    status, document = apply_and_verify(tree, variant, "--arch", archs, "--execute")
    found = document["executed"]
    by_name = {(one["probe"].partition("/")[2], one["arch"], one["side"]): one for one in found["executions"]}
    return status, by_name


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


@pytest.mark.parametrize("variant", ["next2", "next3", "native"])
def test_cutlasss_converters(whole_tree: Callable[[str, str], Path], variant: str) -> None:
    status, found = executed(whole_tree("cutlass", "4.2.1"), variant, "sm_121a")
    assert status == 0
    catalog = load()
    expected = {
        probe.name
        for probe, _ in catalog.probes_of(catalog.variant(variant), "cutlass")
        if (probe.executes or probe.quantizes) and not probe.name.startswith(FROM_4_7)
    }
    assert {probe for probe, _, side in found if side == "patched"} == expected
    for (_, _, side), one in found.items():
        assert one["verdict"] == "pass"
        if side == "patched" and "-to-e2m1-x" in one["probe"] and one["ran"]["bits"] == 32:
            assert one["instruction"] == (variant == "native")
            assert one["ran"]["signs"] == (NANS if variant == "next2" else 0)
