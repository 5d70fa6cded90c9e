"""The JSON documents of the commands fit the schemas that the same commands print; those of verify are complete."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Said, fits
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from verify_reports import DRIFT, REPORTS

from fp4patch.cli import COMMANDS
from fp4patch.console import Failure, document
from fp4patch.images.image import Built
from fp4patch.proof.result import BuildResult, whole


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"explore"}))
def test_a_command_with_a_document_prints_its_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    def objects(schema: object) -> Iterator[dict[str, object]]:
        if isinstance(schema, dict):
            yield from (schema,) if isinstance(schema.get("properties"), dict) and "type" in schema else ()
        for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            yield from objects(inner)

    schema = json.loads(Said(capsys, command, "--json-schema").out)
    assert schema["title"] == f"fp4patch {command}"
    Draft202012Validator.check_schema(schema)
    closed = [found["additionalProperties"] for found in objects(schema)]
    assert closed
    assert not any(closed)


@pytest.mark.slow
def test_the_documents_that_no_test_of_a_command_reads_fit_too(
    fp4patch: Callable[..., Said], doctor: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path
) -> None:
    assert fp4patch("fetch", "cutlass==4.2.1", tmp_path / "cutlass", "--json").document["version"] == "4.2.1"
    assert doctor()[1]["machine"]
    built = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.0f", "12.1a", "")
    fits("verify", document(whole([*REPORTS.values(), replace(REPORTS["pass"], builds=(built,))])))
    fits("verify", document(whole([])))
    fits("build", document(Built("sha256:0", ("a:b",), {"io.fp4patch.variant": "next3"}, "", 1.5)))


def test_verify_counts_and_lists_what_is_in_the_listings() -> None:
    unchanged, changed, host = document(REPORTS["pass"])["results"]
    assert (changed["probe"], changed["arch"], changed["kind"]) == ("cutlass/e2m1-x2", "sm_121a", "sass")
    assert (changed["before"]["fp4"], changed["after"]["fp4"]) == (1, 0)
    assert [changed["after"][key] for key in ("branches", "instructions")] == [1, 4]
    assert changed["after"]["listing"][1:] == [
        "0010  @!P0 BRA `(.L_x_0)",
        "0020  FSEL R1, R2, RZ, P1",
        ".L_x_0:",
        "0030  EXIT",
    ]
    assert (unchanged["identical"], changed["identical"]) == (True, False)
    assert [host[key] for key in ("before", "after", "identical")] == [None] * 3


def test_several_trees_are_one_document_that_fails_if_one_does() -> None:
    assert {name: document(whole([report]))["verdict"] for name, report in REPORTS.items()} == {
        name: "pass" if name == "pass" else "fail" for name in REPORTS
    }
    both = document(whole([REPORTS["pass"], REPORTS["fail"]]))
    assert (both["verdict"], [tree["verdict"] for tree in both["trees"]]) == ("fail", ["pass", "fail"])
    assert document(whole([]))["verdict"] == "fail"


def test_an_error_carries_its_problems() -> None:
    found = document(Failure("no", "do this", (DRIFT,)))
    assert (found["state"], found["error"], found["help"]) == ("refused", "no", "do this")
    assert found["problems"] == [
        {
            "patch": "cutlass/e2m1-guard",
            "file": "include/cutlass/float_subbyte.h",
            "line": 47,
            "expected": "1 site",
            "found": "0",
            "nearest": "`SM121B_ENABLED`",
            "help": "see `fp4patch show e2m1-guard`",
            "state": "drifted",
        }
    ]
