"""Tests of ``fp4patch features`` through the command line, and of comparisons of several toolkits."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from verify_reports import text

from fp4patch.catalog.feature import (
    Cell,
    Feature,
    FeatureGroup,
    FeatureReport,
    Outcome,
    Refusal,
    ToolkitMatrix,
)
from fp4patch.commands import main
from fp4patch.commands.features import text as report
from fp4patch.commands.features.run import assemblers, probe
from fp4patch.commands.terminal import NONE
from fp4patch.core.arch import Arch
from fp4patch.core.progress import silent

ENCODE = "cvt.rn.satfinite.e2m1x2.f32"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main.run(["features", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("own_cache")
def test_the_document_names_machine_code_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--target", "121,121a", "--feature", ENCODE, "--json")
    document: dict[str, Any] = json.loads(out)
    (toolkit,) = document["toolkits"]
    assert (status, document["schema"]) == (0, 1)
    assert [feature["instruction"] for feature in document["features"]] == [ENCODE]
    refused, taken = toolkit["cells"]
    assert (refused["target"], refused["outcome"], refused["refusal"]) == (
        "sm_121",
        "rejected",
        "not supported on target",
    )
    assert ".target 'sm_121'" in refused["words"]
    assert (taken["target"], taken["outcome"], taken["refusal"], taken["words"]) == ("sm_121a", "hardware", None, "")
    assert taken["sass"] == [{"opcode": "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C", "count": 1}]


def test_the_table_of_one_toolkit_fits_120_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = run(capsys, "--target", "90,100a,100f,120,120a,120f,121a")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 120
    lines = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    assert lines["2 float → E2M1"][-2:] == ["F2FP", "F2FP"]
    assert lines["mxf4nvf4 4X, UE4M3, k64"][-1] == "OMMA"


def test_no_terminal_breaks_a_word_of_the_table_or_gets_a_line_that_is_too_long() -> None:
    found = probe(assemblers([], [], on_download=silent))

    def words(width: int) -> set[str]:
        lines = text(report.table(found), width).splitlines()
        assert max(map(len, lines)) <= width
        return {word.rstrip(":;") for line in lines for word in line.split()}

    for width in (50, 60, 67, 80, 90, 107):
        assert words(width) == words(1000), width


@pytest.mark.usefixtures("own_cache")
def test_details_give_the_words_and_the_machine_code_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--target", "120,120a", "--feature", "mxf4nvf4.block_scale.scale_vec::4X", "--details")
    assert "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X" in out
    assert "not supported on target: Instruction 'mma with block scale'" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--target", "sm_1x"),
        ("--feature", "no such thing"),
        ("--toolkit", "11.8"),
        ("--ptx-version", "new"),
        ("--json", "--markdown"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert err


def test_a_folder_without_a_toolkit_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = run(capsys, "--cuda-root", str(tmp_path))
    assert status == 1
    assert "there is no bin/ptxas" in err


# --- several toolkits ------------------------------------------------------------------------------------------------

A, B = Arch(12, 0, "a"), Arch(12, 1, "a")
TAKEN = (Outcome.HARDWARE, (("OMMA", 1),), None)
REFUSED = (Outcome.REJECTED, (), Refusal.MODIFIER)


def beside(*answers: tuple[str, dict[Arch, Any]]) -> FeatureReport:
    """Return a report on one feature, with each toolkit's release, and its result for each target that it supports."""
    feature = Feature(instruction="mma", title="MMA", reads=(), operands="", sass="")
    toolkits = tuple(
        ToolkitMatrix(
            ptxas=f"{release}.1",
            path="",
            sha256="",
            isa="",
            nvdisasm="13.5.37",
            targets=tuple(cells),
            cells=tuple(
                Cell("mma", target, outcome, sass, refusal) for target, (outcome, sass, refusal) in cells.items()
            ),
            seconds=0.0,
        )
        for release, cells in answers
    )
    return FeatureReport((FeatureGroup(title="MMA of a warp", features=(feature,)),), toolkits, "1")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((TAKEN, TAKEN, TAKEN), ["OMMA"]),
        ((REFUSED, REFUSED, REFUSED), [NONE]),
        ((REFUSED, TAKEN, TAKEN), ["OMMA from 13.0"]),
        ((REFUSED, REFUSED, TAKEN), ["OMMA from 13.1"]),
        ((TAKEN, REFUSED, REFUSED), ["OMMA to 12.9"]),
        ((REFUSED, TAKEN, REFUSED), ["OMMA 13.0"]),
    ],
)
def test_toolkits_that_agree_share_a_phrase(said: tuple[Any, ...], expected: list[str]) -> None:
    found = beside(*((release, {A: answer}) for release, answer in zip(("12.9", "13.0", "13.1"), said, strict=True)))
    shown = [line for line in report.markdown(found).splitlines() if line.startswith("| `mma`")]
    cells = [cell.strip().replace("`", "") for cell in shown[0].split("|")[2:-1]]
    assert cells == expected


def test_a_target_that_an_older_toolkit_does_not_know_shares_the_column_of_its_like() -> None:
    found = beside(("12.8", {A: REFUSED}), ("13.1", {A: TAKEN, B: TAKEN}))
    assert "| PTX | 120a 121a |" in report.markdown(found)
    apart = beside(("12.8", {A: REFUSED}), ("13.1", {A: TAKEN, B: REFUSED}))
    assert "| PTX | 120a | 121a |" in report.markdown(apart)


def test_an_answer_is_given_even_where_each_toolkit_knows_another_target() -> None:
    """The target sm_101 became sm_110: 12.9 supports the one, 13.0 the other."""
    found = beside(("12.9", {Arch(10, 1, "a"): REFUSED}), ("13.0", {Arch(11, 0, "a"): TAKEN}))
    text = report.markdown(found)
    assert "| PTX | 101a 110a |" in text
    assert "`OMMA` from 13.0" in text


def test_two_toolkits_of_one_release_are_told_apart_by_their_patch() -> None:
    found = beside(("13.0", {A: REFUSED}), ("13.0", {A: TAKEN}))
    newer = replace(found.toolkits[1], ptxas="13.0.88")
    assert report.labels((found.toolkits[0], newer)) == ["13.0.1", "13.0.88"]


def test_why_one_of_several_refuses_stands_in_the_details() -> None:
    found = beside(("12.8", {A: REFUSED}), ("13.1", {A: TAKEN}))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report.details(found))
    text = console.export_text()
    assert "unknown modifier" in text
    assert "(to 12.8)" in text
    assert "(from 13.1)" in text
