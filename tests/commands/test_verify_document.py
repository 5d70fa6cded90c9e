"""The JSON documents of verify and of errors: they survive JSON, and are complete."""

from __future__ import annotations

import json

import pytest
from verify_reports import DRIFT, REPORTS

from fp4patch.console import document, failure
from fp4patch.core.errors import Refused
from fp4patch.proof.result import whole


@pytest.mark.parametrize("name", REPORTS)
def test_the_document_survives_json(name: str) -> None:
    found = document(whole([REPORTS[name]]))
    assert json.loads(json.dumps(found)) == found
    assert found["schema"] == 1
    assert found["verdict"] == ("pass" if name == "pass" else "fail")


def test_the_document_counts_and_lists_what_is_in_the_listings() -> None:
    result = document(REPORTS["pass"])["results"][1]
    assert (result["probe"], result["arch"], result["kind"]) == ("cutlass/e2m1-x2", "sm_121a", "sass")
    assert (result["before"]["fp4"], result["after"]["fp4"]) == (1, 0)
    assert (result["after"]["branches"], result["after"]["instructions"], result["after"]["registers"]) == (1, 4, 10)
    assert result["after"]["classes"] == {"compare": 1, "memory": 1, "branch": 1, "control": 1}
    assert result["after"]["listing"][1:] == [
        "0010  @!P0 BRA `(.L_x_0)", "0020  FSEL R1, R2, RZ, P1", ".L_x_0:", "0030  EXIT",
    ]  # fmt: skip
    assert result["identical"] is False
    assert result["delta"] == {"fp4": -1, "branch": 1, "compare": 1}


def test_the_document_says_null_where_there_is_no_listing() -> None:
    result = document(REPORTS["pass"])["results"][2]
    assert [result[key] for key in ("before", "after", "identical", "delta")] == [None] * 4


def test_several_trees_are_one_document_that_fails_if_one_does() -> None:
    both = document(whole([REPORTS["pass"], REPORTS["fail"]]))
    assert (both["verdict"], [tree["verdict"] for tree in both["trees"]]) == ("fail", ["pass", "fail"])
    assert document(whole([]))["verdict"] == "fail"


def test_an_error_carries_its_problems_into_json() -> None:
    found = document(failure(Refused("no", help="do this", problems=(DRIFT,))))
    assert (found["state"], found["error"], found["help"]) == ("refused", "no", "do this")
    assert found["problems"] == [
        {
            "patch": "cutlass/e2m1-guard", "file": "include/cutlass/float_subbyte.h", "line": 47, "expected": "1 site",
            "found": "0", "nearest": "`SM121B_ENABLED`", "help": "see `fp4patch show e2m1-guard`", "state": "drifted",
        }
    ]  # fmt: skip
