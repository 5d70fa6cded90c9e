"""Causes that doctor finds in logs; those that can be made here are made by the pinned compiler."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cubins import CONVERTS, MULTIPLIES

from fp4patch import cli
from fp4patch.binaries.findings import Level
from fp4patch.doctor.messages import examine, messages
from fp4patch.proof.toolchain import Toolchain
from tools.pages.messages import page

BARE = CONVERTS.replace("defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && ", "")
BARE_MMA = MULTIPLIES.replace("defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && ", "")


@pytest.mark.parametrize(
    ("source", "flags", "title"),
    [
        (BARE, "-gencode arch=compute_121,code=sm_121", "Instruction 'cvt with .e2m1x2'"),
        (BARE, "-arch=sm_121a", "Instruction 'cvt with .e2m1x2'"),
        (BARE_MMA, "-gencode arch=compute_120,code=sm_120", "Instruction 'mma with block scale'"),
        (BARE, "-gencode arch=compute_129a,code=sm_129a", "Unsupported gpu architecture"),
    ],
)
def test_the_message_of_the_compiler_is_found_in_its_own_log(
    toolchain: Toolchain, tmp_path: Path, source: str, flags: str, title: str
) -> None:
    (tmp_path / "x.cu").write_text(source)
    command = [str(toolchain.root / "bin/nvcc"), "-c", *flags.split(), "x.cu", "-o", "x.o"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode
    (tmp_path / "build.log").write_text(f"[1/2] {' '.join(command)}\n{ran.stdout}{ran.stderr}ninja: build stopped\n")
    first, *others = examine(str(tmp_path / "build.log")).findings
    assert first.cause.startswith(title)
    assert first.found.startswith((ran.stdout + ran.stderr).splitlines()[0])
    assert not others


@pytest.mark.parametrize("message", messages(), ids=lambda one: one.title)
def test_each_message_is_found_by_its_title_and_no_other_is(message: object, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"fine\n\x1b[31merror: {message.title}\x1b[0m\nfine\n")  # type: ignore[attr-defined]
    (finding,) = examine(str(tmp_path / "a.log")).findings
    assert (finding.cause, finding.subject) == (message.title, "line 2")  # type: ignore[attr-defined]
    assert "\x1b" not in finding.found


@pytest.mark.parametrize(
    "line",
    [
        "ImportError: _C.abi3.so: undefined symbol: _Z21cutlass_moe_mm_sm100RN2at6TensorE",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "ValueError: Unknown CUDA arch (12.0f) or GPU not supported",
        "-- Autodetected CUDA architecture(s):  12.1(2.0)",
        "ERROR : Arch conditional MMA instruction used without targeting sm120a compute capability. Aborting.",
        "RuntimeError: No supported CUDA architectures found for major versions [12].",
        "[TensorRT-LLM][ERROR] Failed to initialize cutlass TMA WS grouped gemm. Error: Error Internal",
        "OpError: expects arch to be one of [Arch.sm_100a], but got Arch.sm_121a",
        "torch.AcceleratorError: CUDA error: an illegal instruction was encountered",
        "WARNING [marlin_utils_fp4.py:209] Your GPU does not have native support for FP4 computation but",
    ],
)
def test_lines_of_public_reports_are_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"begin\n{line}\n")
    (finding,) = examine(str(tmp_path / "a.log")).findings
    assert (finding.level, finding.subject) == (Level.RED, "line 2")


def test_the_first_cause_comes_first_and_a_false_alarm_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\nan illegal instruction was encountered\n"
    (tmp_path / "run.log").write_text(text + "no kernel image is available for execution on the device\n")
    assert cli.run(["doctor", str(tmp_path / "run.log")]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()[:5]) for line in shown if re.match(r"[✗!] line", line)] == [
        "✗ line 2: an illegal",
        "✗ line 3: no kernel",
        "! line 1: Found GPU0",
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"all went well\n")))
    assert cli.run(["doctor", "--json", "-"]) == 1  # nothing was judged
    (log,) = json.loads(capsys.readouterr().out)["logs"]
    assert (log["name"], [finding["level"] for finding in log["findings"]]) == ("-", ["not-judged"])


def test_the_page_is_made_of_the_table() -> None:
    assert (Path(__file__).parents[2] / "docs/messages.md").read_text(encoding="utf-8") == page()
