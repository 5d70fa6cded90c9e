"""Lists, problems and errors in a terminal, at any width."""

import pytest
from verify_reports import DRIFT, text

from fp4patch import console
from fp4patch.core.errors import Refused
from fp4patch.core.results import Problem


def test_a_problem_says_where_what_and_what_to_do() -> None:
    assert text(console.problems([DRIFT])) == (
        "error: cutlass/e2m1-guard: drifted\n"
        "  include/cutlass/float_subbyte.h:47\n"
        "  expected 1 site, found 0; nearest: `SM121B_ENABLED`\n"
        "  help: see `fp4patch show e2m1-guard`\n"
    )


def test_an_error_shows_all_its_problems_and_its_help() -> None:
    shown = text(console.error(Refused("nothing was changed", help="look at the tree", problems=(DRIFT, DRIFT))))
    assert shown.startswith("error: nothing was changed\n  error: cutlass/e2m1-guard: drifted\n")
    assert shown.count("drifted") == 2
    assert shown.endswith("  help: look at the tree\n")


def test_an_advice_that_several_problems_share_is_given_once() -> None:
    problems = [Problem("a", str(n), help="put back the file", file=f"f{n}.h") for n in range(11)]
    other = Problem("a", "b", help="make room", file="g.h")
    said = text(console.problems([*problems[:5], other, *problems[5:]]))
    assert said.count("put back the file") == 1
    assert said.count("make room") == 1
    assert said.index("put back") > said.index("f10.h")
    said = text(console.error(Refused("no", help="put back the file", problems=problems)))
    assert said.count("put back the file") == 1


def test_control_characters_become_escapes_and_letters_stay() -> None:
    assert console.printable("a\x1b[2J\n\udcffß\u202e/[b]") == "a\\x1b[2J\\n\\udcffß\\u202e/[b]"
    assert console.printable("a\n\tb\x07", kept="\n\t") == "a\n\tb\\x07"


def test_a_pipe_gets_tables_of_100_columns_without_padding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    console.show(console.table([console.whole("state"), console.folded("why")], [("a", "word " * 40), ("b", "x")]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) in range(90, 101)
    assert not [line for line in lines if line.endswith(" ")]
