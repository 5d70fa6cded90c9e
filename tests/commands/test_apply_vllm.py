"""Variants on every surveyed vLLM: applied, exchanged for another, taken back to the byte."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import snapshot, without_privileges
from vllm_edits import RELEASES

from fp4patch import cli

CALLS = dict.fromkeys(("0.10.2", "0.11.0", "0.12.0", "0.13.0", "0.14.1"), 2) | {"0.33.0": 5}
"""Number of calls of the encoder in all files of a release; 4 for releases that are not listed."""


@pytest.mark.parametrize("version", RELEASES)
def test_variants_apply_and_revert(
    vllm: Callable[[str], Path], version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = vllm(version)
    before = snapshot(tree)
    others = ("turbo", "fp4patch_threshold"), ("next2", "")  # what differs between variants depends on no release
    for variant, software in (*(others if version in RELEASES[::5] else ()), ("next3", "fp4patch_half_pair")):
        capsys.readouterr()
        assert cli.run(["apply", "--variant", variant, "--json", str(tree)]) == 0
        (document,) = json.loads(capsys.readouterr().out)["trees"]
        assert (document["state"], document["version"], document["variant"]) == ("applied", version, variant)
        twins = 0
        patched = [path for path in tree.glob("csrc/**/*.cu*") if b"fp4patch_" in path.read_bytes()]
        assert bool(patched) == bool(software)
        for path in patched:
            # The encoder is pasted once in each file, and a software fallback follows every statement.
            text = path.read_text()
            assert text.count(f"namespace {software} {{") == 1
            twins += len(re.findall(rf"::{software}::e2m1_x\d+\(", text))
        # Two functions of eight values each; from 0.16.0 on one of sixteen, two calls; 0.33.0's minimax kernel has one.
        assert twins == (0 if not software else CALLS.get(version, 4))
    assert cli.run(["revert", str(tree)]) == 0
    assert snapshot(tree) == before


@pytest.mark.parametrize("place", ["csrc/quantization/fp4/nvfp4_utils.cuh", "csrc/quantization/fp4"])
def test_what_may_not_be_read_is_never_passed_over(vllm: Callable[[str], Path], place: str) -> None:
    """0.33.0 converts in another file too, so that the patch would find something to do without this one."""
    tree = vllm("0.33.0")
    (tree / place).chmod(0)
    try:
        refused = without_privileges("apply", "--variant", "next3", tree)
    finally:
        (tree / place).chmod(0o755)
    assert refused.returncode == 1
    assert "Permission denied" in refused.stderr
    assert not (tree / ".fp4patch").exists()
