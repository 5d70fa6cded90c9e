"""What people publish about SM12x: each of doctor's answers is right, or not judged."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fp4patch import cli

REPORTS = tomllib.loads((Path(__file__).parent / "public_reports.toml").read_text())["report"]
WRONG = {"works": ("no",), "none": ("yes", "reservation"), "open": ("yes", "no"), "fault": ("yes", "reservation")}
"""Answers that are false where this is true."""
# Example: gets sm_121a
GETS = re.compile(r"gets (sm_\d+)([af]?)")


def answered(document: dict[str, Any], gpu: str) -> list[dict[str, Any]]:
    """Return the answers of a document for a GPU."""
    judged = [one for kind in ("trees", "projects", "binaries") for part in document[kind] for one in part["gpus"]]
    return [one for one in judged if one["gpu"] == gpu]


def has_fault(document: dict[str, Any]) -> bool:
    """Return whether a finding on a log or a list is red."""
    found = [one for kind in ("logs", "lists") for part in document[kind] for one in part["findings"]]
    return any(one["level"] == "red" for one in found)


@pytest.mark.parametrize("report", REPORTS, ids=[f"{one['address'][19:]}-{one['name']}" for one in REPORTS])
def test_an_answer_is_right_or_not_judged(
    report: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / report["name"]
    file.write_text(report["text"].lstrip("\n"))
    cli.run(["doctor", "--json", "--for", "sm_120", "--for", "sm_121", str(file)])
    document = json.loads(capsys.readouterr().out)
    told = f"{report['address']}: {document['logs']} {document['lists']}"
    assert has_fault(document) is ("fault" in (report["sm_120"], report["sm_121"])), told
    for gpu in ("sm_120", "sm_121"):
        given, truth = answered(document, gpu), report[gpu]
        wrong = [one["answer"] for one in given if one["answer"] in WRONG[truth]]
        assert not wrong, f"{report['address']}: {gpu} {wrong}, and it is {truth}"
        suffixes = [suffix for one in given for text in one["evidence"] for _, suffix in GETS.findall(text)]
        if truth == "works":
            assert any(suffixes), f"{report['address']}: {gpu} {given}"
        if truth == "none":
            assert not any(suffixes), f"{report['address']}: {gpu} {given}"
