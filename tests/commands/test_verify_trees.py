"""`fp4patch verify` on real CUTLASS trees with the real compiler: the numbers, the verdicts, and what fails."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import apply_and_verify, executed, verify

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.progress import Step
from fp4patch.proof.verify import VerifyRequest, verify_trees

GetTree = Callable[[str, str], Path]
Probes = Callable[..., Path]


@pytest.mark.parametrize("variant", ["next2", "turbo"])
def test_a_patched_tree_passes_and_a_second_look_is_cached(whole_tree: GetTree, variant: str, probes: Probes) -> None:
    """One of the two variants with a single probe: what the others show is the same."""
    if variant == "turbo":
        probes("cutlass", "float-to-e2m1-x8")
    tree = whole_tree("cutlass", "4.2.1")
    page = tree.parent / "report.html"
    status, document = apply_and_verify(tree, variant, "--report", str(page))
    assert status == 0
    assert document["verdict"] == "pass"
    assert "float-to-e2m1-x8" in page.read_text()
    results = {(r["probe"], r["arch"]): r for r in document["results"]}
    assert {arch for _, arch in results} == {"sm_120a", "sm_121a"}

    # CUDA 13.0.88 makes 19 instructions of eight conversions by hardware; next2's software is 221, exmy_base's 867.
    hardware, software = results["cutlass/float-to-e2m1-x8", "sm_120a"], results["cutlass/float-to-e2m1-x8", "sm_121a"]
    assert hardware["identical"]
    assert (hardware["after"]["instructions"], hardware["after"]["fp4"]) == (19, 4)
    assert (software["before"]["instructions"], software["before"]["fp4"]) == (19, 4)
    assert software["after"]["fp4"] == 0
    assert software["after"]["branches"] == (0 if variant == "next2" else 125)
    assert software["after"]["instructions"] == (221 if variant == "next2" else 867)

    assert document["coverage"]["lines"] > 0
    # Nothing is executed here, and what is the same as upstream's needs not be.
    unjudged = {span["because"] for span in document["coverage"]["unjudged"]}
    assert variant == "turbo" or unjudged == {"its code was counted, and not executed"}

    status, again = verify(tree, variant)
    assert status == 0
    assert all(r["cached"] for r in again["results"])
    assert again["coverage"] == document["coverage"]


def test_next3_is_short_where_the_target_has_no_instruction_and_identical_where_it_has(
    whole_tree: GetTree,
) -> None:
    tree = whole_tree("cutlass", "4.2.1")
    status, document = apply_and_verify(tree, "next3", "--arch", "sm_121a,sm_121")
    assert status == 0
    results = {(r["probe"], r["arch"]): r for r in document["results"]}
    assert results["cutlass/encode-float-x8", "sm_121a"]["identical"]
    bare = results["cutlass/encode-float-x8", "sm_121"]
    assert (bare["before"]["instructions"], bare["before"]["branches"]) == (867, 125)
    assert (bare["after"]["instructions"], bare["after"]["branches"], bare["after"]["fp4"]) == (43, 0, 0)
    lines = (tree / HEADER).read_text().splitlines()
    other_text = range(lines.index("#else  // before sm_86, and the host") + 1, len(lines))
    unjudged = document["coverage"]["unjudged"]
    assert unjudged
    # Beside it what is not executed here, FP6 before sm_89, and what parameters of a template choose.
    assert {span["file"] for span in unjudged} == {HEADER, SUBBYTE, STAGES}
    text = (tree / SUBBYTE).read_text().splitlines()
    heads = [re.search(r"\b(\w+)\((?:float|double) x\) \{", line) for line in text]
    firsts = [span["first"] for span in unjudged if span["file"] == SUBBYTE]
    within = {next(head[1] for head in reversed(heads[:first]) if head) for first in firsts}
    assert within == {"round_to_odd", "e2m1_from_float", "e2m3_from_float", "e3m2_from_float", "fp6_from_float"}
    counted = "its code was counted, and not executed"
    of_header = [span for span in unjudged if span["file"] == HEADER and span["because"] != counted]
    assert of_header
    assert all(span["first"] in other_text[:60] for span in of_header)


def test_a_changed_function_that_no_probe_calls_is_named(
    whole_tree: GetTree, probes: Probes, capsys: pytest.CaptureFixture[str]
) -> None:
    probes("cutlass", "encode-float-x8")
    tree = whole_tree("cutlass", "4.2.1")
    status, document = apply_and_verify(tree, "next3", "--arch", "sm_121")
    assert status == 0
    lines = (tree / HEADER).read_text().splitlines()

    def body(head: str) -> int:
        """Return the number of the line that returns, of a function that is written once for these targets."""
        start = next(at for at, line in enumerate(lines) if head in line)
        return next(at + 1 for at in range(start, len(lines)) if lines[at].startswith("  return"))

    no_code = "no code that was judged has an instruction of it"
    spans = [span for span in document["coverage"]["unjudged"] if span["because"] == no_code]
    in_header = (range(span["first"], span["last"] + 1) for span in spans if span["file"] == HEADER)
    named = {line for lines_of_span in in_header for line in lines_of_span}
    assert body(" e2m1_x8(float") not in named
    assert {body(" e2m1_x2(float"), body(" e2m1_x16(float")} <= named
    first = f"{spans[0]['file']}:{spans[0]['first']}"
    assert re.search(rf"PASS .* have no code that was judged: {first}", " ".join(capsys.readouterr().out.split()))


HEADER = "include/cutlass/numeric_conversion.h"
SUBBYTE = "include/cutlass/float_subbyte.h"
STAGES = "include/cutlass/gemm/collective/builders/sm120_blockscaled_mma_builder.inl"


def test_a_tree_that_is_not_in_the_variants_state_is_refused(
    tree_copy: GetTree, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert cli.run(["verify", str(tree)]) == 2
    assert "no tree here has a receipt" in capsys.readouterr().err
    assert cli.run(["verify", "--variant", "turbo", str(tree)]) == 1
    assert "not in the state of turbo" in capsys.readouterr().err
    assert cli.run(["apply", "--variant", "turbo", str(tree)]) == 0
    assert cli.run(["verify", "--variant", "next2", str(tree)]) == 1
    assert "fp4patch apply --variant next2" in capsys.readouterr().err


def test_a_tree_that_is_changed_while_it_is_verified_is_refused(whole_tree: GetTree, probes: Probes) -> None:
    """The tree is reverted after the first compilation: one of the two sides is then not the one in the report."""
    probes("cutlass", "float-to-e2m1-x2")
    tree = whole_tree("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", "next2", str(tree)]) == 0

    def revert(step: Step) -> None:
        if step.done == 1:
            assert cli.run(["revert", str(tree)]) == 0

    options = VerifyRequest(variant="next2", archs="sm_120a", execute=False)
    with pytest.raises(Fp4PatchError, match="changed while it was being verified"):
        verify_trees([tree], options, on_progress=revert)


def test_without_a_compiler_verify_says_how_to_get_one(
    tree_copy: GetTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", "turbo", str(tree)]) == 0
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert cli.run(["verify", "--variant", "turbo", str(tree)]) == 1
    assert "nvcc" in capsys.readouterr().err


def test_what_takes_the_compiler_minutes_is_compiled_only_if_asked_for(whole_tree: GetTree, probes: Probes) -> None:
    patch = probes("cutlass", "encode-float-x8", "encode-gemv-epilogue") / "patches/cutlass/e2m1-encode/patch.toml"
    text, count = re.subn(r'^name = "encode-gemv-epilogue"\n', r"\g<0>slow = true\n", patch.read_text(), flags=re.M)
    assert count == 1
    patch.write_text(text)
    tree = whole_tree("cutlass", "4.2.1")
    status, document = apply_and_verify(tree, "next3", "--arch", "sm_121")
    assert (status, {result["probe"] for result in document["results"]}) == (0, {"cutlass/encode-float-x8"})
    assert {probe["probe"]: probe["because"] for probe in document["set_aside"]} == {
        "cutlass/encode-gemv-epilogue": "it takes the compiler minutes: --all runs it"
    }
    status, document = verify(tree, "next3", "--arch", "sm_121", "--all")
    assert (status, len({result["probe"] for result in document["results"]})) == (0, 2)
    assert document["set_aside"] == []  # the epilogue's division is a function of the compiler, linked with -rdc=true


def test_host_code_of_the_newest_release_is_executed_too(whole_tree: GetTree, probes: Probes) -> None:
    """From 4.7 on CUTLASS refuses arrays of sizes that earlier releases convert."""
    probes("cutlass", "encode-host-half")
    tree = whole_tree("cutlass", "4.8.0")
    status, document = apply_and_verify(tree, "next3", "--execute")
    assert (status, document["problems"]) == (0, [])
    assert {run["probe"] for run in document["executed"]["executions"]} == {"cutlass/encode-host-half"}


NANS = (1 << 23) - 1  # of one sign
FROM_4_7 = ("half-to-e2m1-x", "bfloat16-to-e2m1-x", "upstream-")
"""Probes of converters and functions that CUTLASS has from 4.7 on."""


@pytest.mark.parametrize("name", ["decode-bfloat16-x8", "construct-e2m3-x4"])
def test_code_for_the_oldest_target_is_executed(whole_tree: GetTree, probes: Probes, name: str) -> None:
    """The first has branches there, and a BMOV.32.CLEAR before each region of theirs."""
    probes("cutlass", name)
    status, found = executed(whole_tree("cutlass", "4.2.1"), "next3", "sm_75")
    run = found[name, "sm_75", "patched"]
    assert (status, run["verdict"], run["ran"]["wrong"]) == (0, "pass", 0)
    assert run["ran"]["inputs"]


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
