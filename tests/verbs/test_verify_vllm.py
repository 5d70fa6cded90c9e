"""`fp4patch verify` on real vLLM trees with the real compiler: what the variants do to its own conversions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fp4patch import cli
from fp4patch.errors import UsageError
from fp4patch.model import Needs, Probe
from fp4patch.proof.probe import SourceView
from fp4patch.verbs.verify import nothing_to_show, torch_headers

GetTree = Callable[[str, str], Path]
CONVERSIONS = ("float8-to-e2m1", "float2x4-to-e2m1", "float2x8-to-e2m1")
BLOCKS = ("half-block-to-nvfp4", "bf16-block-to-nvfp4", "bf16-block-to-mxfp4")
TORCH = os.environ.get("FP4PATCH_TEST_TORCH_INCLUDE", "")
SOURCE_FILES = ("quant-kernels", "experts-quant", "activation-quant-fusion", "minimax-kv-insert")


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole source files take minutes; they are not for every run of the tests."""
    monkeypatch.setattr("fp4patch.verbs.verify._installed_torch", lambda: None)


def verify(tree: Path, variant: str, *options: str) -> tuple[int, dict[str, Any]]:
    document = tree.parent / "verify.json"
    status = cli.run(["verify", "--no-execute", "--variant", variant, "--json", str(document), *options, str(tree)])
    return status, json.loads(document.read_text())


@pytest.mark.parametrize("version", ["0.16.0", "0.33.0"])
def test_turbo2_is_branch_free_software_on_sm121a_and_next2_leaves_the_hardware(
    vllm: Callable[[str], Path], version: str
) -> None:
    tree = vllm(version)
    assert cli.run(["apply", "--variant", "turbo2", str(tree)]) == 0
    status, document = verify(tree, "turbo2")
    assert (status, document["verdict"], document["problems"]) == (0, "pass", [])
    found = {(r["probe"].removeprefix("vllm/"), r["arch"]): r for r in document["results"]}
    assert {probe for probe, _ in found} == {*CONVERSIONS, *BLOCKS}
    for probe in (*CONVERSIONS, *BLOCKS):
        card, gb10 = found[probe, "sm_120a"], found[probe, "sm_121a"]
        values = 16 if probe == "float2x8-to-e2m1" else 8
        assert card["identical"]
        assert (card["after"]["fp4"], gb10["before"]["fp4"], gb10["after"]["fp4"]) == (values // 2, values // 2, 0)
        assert gb10["after"]["branches"] == gb10["before"]["branches"]
    # CUDA 13.0.88: four conversions by hardware and what loads and stores; 24 instructions a value instead.
    counts = [found[probe, "sm_121a"][side]["instructions"] for probe in CONVERSIONS for side in ("before", "after")]
    assert counts == [19, 209, 19, 209, 26, 405]
    # What did not run is said: the source files take PyTorch's headers, and one of them came later.
    aside = {probe["probe"].removeprefix("vllm/"): probe["because"] for probe in document["set_aside"]}
    assert set(aside) == set(SOURCE_FILES)
    assert "--torch-include" in aside["quant-kernels"]
    assert ("this release has no" in aside["minimax-kv-insert"]) == (version == "0.16.0")

    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0
    status, document = verify(tree, "next2")
    assert (status, document["verdict"]) == (0, "pass")
    assert len(document["results"]) == 12
    assert all(r["identical"] and r["after"]["fp4"] for r in document["results"])


def test_a_conversion_that_no_probe_knows_fails(
    vllm: Callable[[str], Path],
) -> None:
    tree = vllm("0.16.0")
    header = tree / "csrc/quantization/fp4/nvfp4_utils.cuh"
    header.write_text(header.read_text().replace("fp32_vec8_to_e2m1", "eight_to_e2m1"))
    assert cli.run(["apply", "--variant", "turbo2", str(tree)]) == 0
    status, document = verify(tree, "turbo2", "--arch", "sm_121a")
    assert (status, document["verdict"]) == (1, "fail")
    failed = {r["probe"]: r["error"] for r in document["results"] if r["verdict"] != "pass"}
    assert set(failed) == {"vllm/float8-to-e2m1", "vllm/float2x4-to-e2m1"}
    assert all("no conversion function that the probe knows" in error for error in failed.values())


@pytest.mark.skipif(not TORCH, reason="FP4PATCH_TEST_TORCH_INCLUDE names no include folder of PyTorch; takes minutes")
def test_no_kernel_of_the_source_files_keeps_the_instruction(vllm: Callable[[str], Path]) -> None:
    tree = vllm("0.33.0")
    assert cli.run(["apply", "--variant", "turbo2", str(tree)]) == 0
    status, document = verify(tree, "turbo2", "--torch-include", TORCH)
    assert (status, document["set_aside"]) == (0, [])
    found = {(r["probe"].removeprefix("vllm/"), r["arch"]): r for r in document["results"]}
    for name in SOURCE_FILES:
        card, gb10 = found[name, "sm_120a"], found[name, "sm_121a"]
        assert card["kind"] == "unit"
        assert card["identical"]
        assert card["after"]["fp4"] == gb10["before"]["fp4"] > 0 == gb10["after"]["fp4"]


# --- what does not run -----------------------------------------------------------------------------------------------


def probe(needs: Needs | None = None, **settings: Any) -> Probe:
    return Probe(name="x16", title="", source="x16.cu", patch="vllm/e2m1-asm", needs=needs, **settings)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "a/csrc").mkdir(parents=True)
    (tmp_path / "a/csrc/fp4.cuh").write_text("// wide(x) was here once\nint narrow(int);\n")
    return tmp_path / "a"


@pytest.mark.parametrize(
    ("needs", "runs"),
    [
        (None, True),
        (Needs(search=("csrc/**/fp4.cuh",)), True),
        (Needs(search=("csrc/other.cuh", "csrc/fp4.cuh")), True),
        (Needs(search=("csrc/other.cuh",)), False),
        (Needs(search=("csrc/**/fp4.cuh",), tokens="narrow( int )"), True),
        (Needs(search=("csrc/**/fp4.cuh",), tokens="wide("), False),  # a comment is no function
    ],
)
def test_a_probe_runs_where_the_tree_has_what_it_needs(small: Path, needs: Needs | None, runs: bool) -> None:
    assert (nothing_to_show(probe(needs), SourceView(small), {}) == "") is runs


def test_what_a_probe_needs_is_looked_for_in_the_pristine_source(small: Path) -> None:
    needs = probe(Needs(search=("csrc/fp4.cuh",), tokens="wide("))
    pristine = SourceView(small, {"csrc/fp4.cuh": b"int wide(int);\n"})
    assert nothing_to_show(needs, pristine, {}) == ""
    assert "`wide(` in csrc/fp4.cuh" in nothing_to_show(needs, SourceView(small, {"csrc/fp4.cuh": None}), {})


def test_a_file_that_is_not_understood_does_not_excuse_a_probe(small: Path) -> None:
    (small / "csrc/fp4.cuh").write_text("/* open")
    assert nothing_to_show(probe(Needs(search=("csrc/fp4.cuh",), tokens="wide(")), SourceView(small), {}) == ""


def test_a_probe_that_takes_pytorchs_headers_runs_where_they_are(small: Path, tmp_path: Path) -> None:
    takes = probe(uses=("torch",))
    assert "torch" in nothing_to_show(takes, SourceView(small), {})
    header = tmp_path / "torch/include/c10/util/Half.h"
    header.parent.mkdir(parents=True)
    header.touch()
    headers = torch_headers(tmp_path / "torch/include")
    assert headers[0] == tmp_path / "torch/include"
    assert nothing_to_show(takes, SourceView(small), {"torch": headers}) == ""


def test_a_folder_without_pytorchs_headers_is_refused(small: Path) -> None:
    with pytest.raises(UsageError, match="PyTorch's headers"):
        torch_headers(small)
    assert torch_headers(None) == ()
