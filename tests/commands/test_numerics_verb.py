"""Tests of `verify --numerics` on a real CUTLASS: all inputs pass, a boundary off by one ulp fails, gaps are
reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from few_probes import few_probes

from fp4patch.catalog.manifest import load
from fp4patch.catalog.rule import Promise
from fp4patch.commands import main
from fp4patch.commands.verify import numerics_text as report
from fp4patch.core.verdict import Verdict
from fp4patch.proof import verify as verb
from fp4patch.proof.inputs import InputClass, Mismatch, NumericsReport, NumericsRow

GetTree = Callable[[str, str], Path]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped data with one probe, next2's scalar conversion, and a machine without a GPU."""
    folder = few_probes(tmp_path / "data", {"float-to-e2m1": "cutlass"}, numerics=True)
    monkeypatch.setenv("FP4PATCH_DATA", str(folder))
    monkeypatch.setattr(verb, "find_gpu", lambda: None)
    return folder


def verified(pristine_tree: GetTree, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    tree = folder.parent / "cutlass"
    shutil.copytree(pristine_tree("cutlass", "4.2.1") / "include", tree / "include")
    assert main.run(["apply", "--variant", "next2", str(tree)]) == 0
    document = folder.parent / "verify.json"
    status = main.run(
        ["verify", "--no-execute", "--variant", "next2", "--numerics", "--json", str(document), *options, str(tree)]
    )
    return status, json.loads(document.read_text())


def test_all_inputs_pass_on_the_host_and_the_report_says_that_no_gpu_ran(
    pristine_tree: GetTree, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = data.parent / "report.html"
    status, document = verified(pristine_tree, data, "--arch", "sm_121a", "--report", str(page))
    assert status == 0
    reference, scalar = document["numerics"]
    assert "cuda_fp4.hpp" in reference["subject"]
    assert reference["promise"] == "exact"
    assert scalar["subject"] == "NumericConverter<float_e2m1_t, float>"
    assert scalar["promise"] == "exact-but-nan-sign"
    assert scalar["inputs"] == 1 << 32
    assert {c["class"]: c["mismatches"] for c in scalar["classes"] if c["mismatches"]} == {"-NaN": (1 << 23) - 1}
    assert "no CUDA GPU in this machine: only the host ran" in document["numerics_notes"][0]
    assert "NumericArrayConverter<float_e2m1_t, float, 8>" in document["numerics_notes"][1]
    assert "only the host ran" in capsys.readouterr().out
    assert "8,388,607 signs" in page.read_text()


@pytest.mark.parametrize(
    ("variant", "target", "conversions"),
    [
        ("turbo", "vllm", ["threshold x1", "threshold x8"]),
        ("turbo2", "vllm", ["predicate_sum x1", "predicate_sum x8"]),
        ("next3", "vllm", ["half_pair x1", "half_pair x8"]),
        (
            "next3",
            "cutlass",
            ["NumericConverter<float_e2m1_t, float>", "NumericArrayConverter<float_e2m1_t, float, 8>"],
        ),
        ("native", "cutlass", []),
    ],
)
def test_every_variant_keeps_its_promise_on_every_input(
    vllm: Callable[[str], Path],
    pristine_tree: GetTree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variant: str,
    target: str,
    conversions: list[str],
) -> None:
    """The test above covers next2, with the CUTLASS that has its encoder."""
    monkeypatch.setattr(verb, "find_gpu", lambda: None)
    monkeypatch.setattr("fp4patch.proof.headers.installed_torch", lambda: None)
    if target == "vllm":
        tree = vllm("0.33.0")
    else:
        tree = tmp_path / "cutlass"
        shutil.copytree(pristine_tree("cutlass", "4.2.1") / "include", tree / "include")
    assert main.run(["apply", "--variant", variant, str(tree)]) == 0
    document = tmp_path / "verify.json"
    options = ["--arch", "sm_121a", "--numerics", "--json", str(document)]
    assert main.run(["verify", "--no-execute", "--variant", variant, *options, str(tree)]) == 0
    reference, *swept = json.loads(document.read_text())["numerics"]
    assert "cuda_fp4.hpp" in reference["subject"]
    assert [one["subject"] for one in swept] == conversions
    for one in (reference, *swept):
        wrong = {c["class"]: c["mismatches"] for c in one["classes"] if c["mismatches"]}
        assert one["inputs"] == 1 << 32
        assert wrong == ({} if one["promise"] == "exact" else {"-NaN": (1 << 23) - 1})


def test_one_border_off_by_one_ulp_fails_and_its_inputs_are_shown(
    pristine_tree: GetTree, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    converter = data / "patches/cutlass/e2m1-converter/converter.cuh"
    text = converter.read_text()
    assert text.count("magnitude <= 2.5f") == 1
    converter.write_text(text.replace("magnitude <= 2.5f", "magnitude <= 0x1.400002p+1f"))
    status, document = verified(pristine_tree, data, "--arch", "sm_121a")
    assert status == 1
    assert document["verdict"] == "fail"
    assert [one["verdict"] for one in document["numerics"]] == ["pass", "fail"]
    (finite,) = (c for c in document["numerics"][1]["classes"] if c["class"] == "finite")
    assert (finite["mismatches"], finite["magnitudes"]) == (2, 2)
    assert finite["first"] == [
        {"input": "0x40200001", "expected": 5, "got": 4},
        {"input": "0xc0200001", "expected": 13, "got": 12},
    ]
    out = capsys.readouterr().out
    assert "0x40200001 (2.50000024) gives 0x4 (2), not 0x5 (3)" in out


def test_a_tree_whose_functions_do_not_compile_is_a_problem_and_no_pass(pristine_tree: GetTree, data: Path) -> None:
    (data / "patches/cutlass/e2m1-guard/numerics/converters.cuh").write_text("#error no\n")
    status, document = verified(pristine_tree, data, "--arch", "sm_121a")
    assert status == 1
    (problem,) = document["problems"]
    assert "does not compile for the host" in problem["found"]


def test_what_a_promise_allows_is_counted_and_passes() -> None:
    def of(promise: Promise) -> NumericsReport:
        nan = NumericsRow(InputClass.NEGATIVE_NAN, 1 << 23, 5, 0, (Mismatch(0xFF800001, 7, 15),))
        rest = NumericsRow(InputClass.FINITE, (1 << 32) - (1 << 23), 0, 0)
        return NumericsReport("x", "host", 8, (nan, rest), promise, 1.0, passes=1)

    assert of(Promise.EXACT_BUT_NAN_SIGN).verdict is Verdict.PASS
    assert of(Promise.EXACT).verdict is Verdict.FAIL
    assert report.cell(of(Promise.EXACT), (InputClass.NEGATIVE_NAN,)) == "5 signs"
    assert list(report.first(of(Promise.EXACT))) == ["-NaN  0xff800001 (nan) gives 0xf (-6), not 0x7 (6)"]


def test_every_function_that_the_data_names_lies_beside_its_patch() -> None:
    named = [(Path(patch.directory), one) for patch in load().patches.values() for one in patch.numerics]
    assert named
    for directory, one in named:
        assert (directory / one.source).is_file()
        assert all((directory / folder).is_dir() for folder in one.include)
