"""`fp4patch bench`: it builds for a GPU that is not here, and reads what a program measured on one that was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fp4patch.catalog.manifest import data_root
from fp4patch.commands import main
from fp4patch.commands.bench import run as verb
from fp4patch.commands.bench.measure import Group, build, read
from fp4patch.commands.bench.text import chart
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.verdict import Verdict
from fp4patch.proof import numerics
from fp4patch.proof.toolchain import Toolchain

RECORDED = data_root() / "docs/images/bench.txt"
"""Recorded output of the program on an H200; docs/numerics.md shows it."""


@pytest.mark.skipif(not RECORDED.is_file(), reason="docs/ is not part of an installed package")
def test_what_was_recorded_is_what_the_documents_claim() -> None:
    report = read(RECORDED.read_text())
    assert report.verdict is Verdict.PASS
    assert report.device == "NVIDIA H200"
    rows = {row.name: row for row in report.rows}
    rates = {name: row.registers.median for name, row in rows.items() if row.registers}
    assert rates["half_pair"] >= 4.3 * rates["predicate_sum"]
    assert rates["half_pair"] >= 4.3 * rates["cutlass 4.7.0"]
    assert rates["half_pair"] >= 13 * rates["cutlass 4.2.1"]
    assert rates["half_pair"] >= 7 * rates["cuda_fp4.hpp"]
    assert rows["half_pair"].nan_signs == 0
    assert rows["predicate_sum"].nan_signs == (1 << 23) - 1
    predicate_sum = rows["predicate_sum"].registers
    assert predicate_sum
    assert predicate_sum.ratio == 1.0
    page = (RECORDED.parent.parent / "numerics.md").read_text()
    for name, row in rows.items():
        assert row.registers
        assert row.memory
        line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        assert re.findall(r"[\d,.]+(?= \|)", line)[-4:] == [
            f"{row.registers.median / 1e9:,.0f}",
            f"{row.registers.ratio:.2f}",
            f"{row.memory.median / 1e9:,.0f}",
            f"{row.memory.ratio:.2f}",
        ]


WRITTEN = """\
fp4patch-bench	1	0.1.0	13.0.88
note	vllm 0.16.0 has the instruction only
device	A GPU	sm_90	132
check	predicate_sum	0	0	8388607
check	broken	2	0	0
registers	predicate_sum	100	110	120
memory	predicate_sum	50	50	50
end
"""


def test_an_encoder_that_is_wrong_fails_and_has_no_rate() -> None:
    report = read(WRITTEN)
    assert report.verdict is Verdict.FAIL
    right, broken = report.rows
    assert right.verdict is Verdict.PASS
    assert right.registers
    assert (right.registers.low, right.registers.median, right.registers.high) == (100, 110, 120)
    assert (broken.wrong, broken.registers, broken.verdict) == (2, None, Verdict.FAIL)
    assert report.notes == ("vllm 0.16.0 has the instruction only",)


@pytest.mark.parametrize("kept", range(8))
def test_output_that_is_cut_off_is_refused(kept: int) -> None:
    with pytest.raises(ProofError):
        read("".join(WRITTEN.splitlines(keepends=True)[:kept]))


@pytest.mark.parametrize(
    "change",
    [("100\t", "x\t"), ("100\t", "0\t"), ("\tsm_90\t132", ""), ("predicate_sum\t100\t110", "other\t1\t1")],
)
def test_output_that_is_damaged_is_refused(change: tuple[str, str]) -> None:
    assert change[0] in WRITTEN
    with pytest.raises(ProofError):
        read(WRITTEN.replace(*change))


def test_the_chart_is_a_complete_picture() -> None:
    root = ET.fromstring(chart(read(WRITTEN.replace("A GPU", "A <GPU>"))))
    assert "A <GPU>" in "".join(root.itertext())
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    assert [bar.get("width") for bar in bars] == ["440.0"]


def test_the_program_builds_for_a_gpu_that_is_not_here_and_says_what_it_leaves_out(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    encoder = data_root() / "encoders/half_pair.cuh"
    ours = tuple(s for s in numerics.encoder_subjects(encoder) if s.lanes == 8)
    instruction = """__device__ unsigned int hardware(const float (&v)[8]) {
      unsigned int r;
      asm("{.reg .b8 a; cvt.rn.satfinite.e2m1x2.f32 a, %1, %2; cvt.u32.u8 %0, a;}" : "=r"(r) : "f"(v[0]), "f"(v[1]));
      return r;
    }"""
    groups = [
        Group("ours", encoder.read_text(), ours),
        Group("hardware", instruction, (numerics.Subject("hardware", 8, "hardware(v)"),)),
    ]
    program = tmp_path / "bench"
    notes = build(groups, toolchain=toolchain, arch=Arch(9, 0), program=program, fp4patch="test")
    assert notes == ("hardware has the instruction only, and sm_90 has not: nothing to measure",)
    assert program.stat().st_mode & 0o111
    assert b"half_pair" in program.read_bytes()
    with pytest.raises(ProofError, match="broken does not compile for sm_90"):
        build(
            [Group("broken", "#error no", ours)], toolchain=toolchain, arch=Arch(9, 0), program=program, fp4patch="test"
        )


def test_without_a_gpu_bench_says_how_to_measure_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "find_gpu", lambda: None)
    assert main.run(["bench"]) == 1
    assert "--build-only" in capsys.readouterr().err


def test_results_from_elsewhere_are_shown_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, drawn = tmp_path / verb.RESULT, tmp_path / "chart.svg"
    file.write_text(WRITTEN)
    assert main.run(["bench", "--from", str(file), "--chart", str(drawn), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "fail"
    assert document["rows"][0]["registers"]["ratio"] == 1.0
    assert drawn.read_text().startswith("<svg")


@pytest.mark.parametrize(
    "arguments", [["--build-only", "x"], ["--gpu-arch", "sm_90"], ["--from", "x", "tree"], ["--from", "no-such-file"]]
)
def test_options_that_do_not_go_together_are_a_usage_error(arguments: list[str]) -> None:
    assert main.run(["bench", *arguments]) == 2
