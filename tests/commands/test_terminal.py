"""Lists, problems and errors in a terminal, at any width."""

from __future__ import annotations

import pytest
from verify_reports import DRIFT, text

from fp4patch.catalog.manifest import load
from fp4patch.commands import terminal
from fp4patch.commands.show.result import lists
from fp4patch.commands.show.text import list_table, matrix_table
from fp4patch.core.errors import Refused
from fp4patch.core.problem import Problem


def test_the_matrix_has_all_states_at_any_width() -> None:
    states = ("applied", "applied", "upstreamed", "applied")
    rows = [
        {"target": "vllm", "version": f"0.{number}", "states": {"vllm/cmake-sm121a": state, "vllm/e2m1-asm": "applied"}}
        for number, state in enumerate(states)
    ]
    wide = [line.split() for line in text(matrix_table({"rows": rows})).splitlines()]
    assert wide[0] == ["vllm", "cmake-sm121a", "e2m1-asm"]
    assert wide[1:] == [[f"0.{number}", state, "applied"] for number, state in enumerate(states)]
    assert text(matrix_table({"rows": rows}), 24).splitlines() == [
        "vllm",
        "  cmake-sm121a",
        "    applied: 0.0 to 0.1",
        "    upstreamed: 0.2",
        "    applied: 0.3",
        "  e2m1-asm",
        "    applied: 0.0 to 0.3",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_list_breaks_no_name_and_no_word(width: int) -> None:
    found = lists(load(), None)
    lines = text(list_table(found), width).splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) < 150  # three columns at any width were 290 lines at 60
    shown = set(" ".join(lines).split())
    named = [(variant.name, variant.title) for variant in found.variants]
    named += [(patch.name, patch.title) for patch in found.patches]
    named += [(target.name, target.title) for target in found.targets]
    for name, title in named:
        assert {name, *title.split()} <= shown
    assert {patch for variant in found.variants for patch in variant.patches} <= shown


def test_a_problem_says_where_what_and_what_to_do() -> None:
    assert text(terminal.problems([DRIFT])) == (
        "error: cutlass/e2m1-guard: drifted\n"
        "  include/cutlass/float_subbyte.h:47\n"
        "  expected 1 site, found 0; nearest: `SM121B_ENABLED`\n"
        "  help: see `fp4patch show e2m1-guard`\n"
    )


def test_a_problem_without_a_patch_starts_with_its_place() -> None:
    shown = text(terminal.problems([Problem("a table", "a list", file="variants/x.toml", line=3)]))
    assert shown == "error: variants/x.toml:3\n  expected a table, found a list\n"


def test_an_error_shows_all_its_problems_and_its_help() -> None:
    shown = text(terminal.error(Refused("nothing was changed", help="look at the tree", problems=(DRIFT, DRIFT))))
    assert shown.startswith("error: nothing was changed\n  error: cutlass/e2m1-guard: drifted\n")
    assert shown.count("drifted") == 2
    assert shown.endswith("  help: look at the tree\n")


def test_an_advice_that_several_problems_share_is_given_once() -> None:
    problems = [Problem("a", str(n), "put back the file", file=f"f{n}.h") for n in range(11)]
    other = Problem("a", "b", "make room", file="g.h")
    said = text(terminal.problems([*problems[:5], other, *problems[5:]]))
    assert said.count("put back the file") == 1
    assert said.count("make room") == 1
    assert said.index("put back") > said.index("f10.h")
    said = text(terminal.error(Refused("no", help="put back the file", problems=problems)))
    assert said.count("put back the file") == 1
