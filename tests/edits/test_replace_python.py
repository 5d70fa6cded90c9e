"""Python expressions replaced, with every byte beside them as it was."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import Replace, Retired

EDIT = Replace(
    search=("*.py",),
    about="capable",
    otherwise="nothing here asks for a capability",
    within="check",
    find="capable(120)",
    replace="(capable(120) or capable(121))",
    retired=(
        Retired(tokens="family(120)", state=State.UPSTREAMED, since="9.9", because="upstream asks for the family"),
    ),
)
SOURCE = """# capable(120)
def check(a):
    '''capable(120)'''
    if not  capable( 120 ) : # why
        return  f"{a!r}"   ;  pass
\treturn 1
""".replace("\t", "    ")


def replace_expression(edit: Replace, text: str) -> Outcome:
    return edit.rewrite(text, lambda _name: "")


def replaced(text: str, edit: Replace = EDIT) -> str:
    outcome = replace_expression(edit, text)
    assert isinstance(outcome, Rewritten), outcome
    return outcome.text


def test_only_the_expression_changes() -> None:
    assert replaced(SOURCE) == SOURCE.replace("capable( 120 )", "(capable(120) or capable(121))")


def test_its_line_is_told() -> None:
    outcome = replace_expression(EDIT, SOURCE)
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (4,)


@pytest.mark.parametrize(
    "written",
    [
        "capable(120)",
        "capable( 120, )",
        "capable(\n        120  # RTX\n    )",
        "(capable(120))",
        "(\n  capable(120)\n)",
        "capable(0x78)",
    ],
)
def test_layout_does_not_matter(written: str) -> None:
    text = f"def check():\n    return not {written}\n"
    found = ast.parse(replaced(text)).body[0]
    expected = ast.parse("def check():\n    return not (capable(120) or capable(121))\n").body[0]
    assert ast.dump(found) == ast.dump(expected)


def test_parentheses_that_hold_lines_together_stay() -> None:
    text = "def check():\n    return (\n        capable(120)  # RTX\n    )\n"
    assert replaced(text) == text.replace("capable(120)", "(capable(120) or capable(121))")


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("capable( 120 )", "capable(12)"),
        SOURCE.replace("capable( 120 )", "capable(120, device=0)"),
        SOURCE.replace("capable( 120 )", "p.capable(120)"),
        SOURCE.replace("1\n", "capable(120)\n"),
        SOURCE.replace("1\n", "family(120)\n"),
        "def check(:\n    capable(120)\n",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    assert isinstance(replace_expression(EDIT, text), Drift)


def test_what_was_replaced_before_is_not_replaced_again() -> None:
    outcome = replace_expression(EDIT, replaced(SOURCE))
    assert isinstance(outcome, Drift)
    assert outcome.found == f"`{EDIT.replace}`"


def test_a_sign_retires_the_edit() -> None:
    outcome = replace_expression(EDIT, SOURCE.replace("capable( 120 )", "capable(89) or family(120)"))
    assert outcome == NothingToDo(State.UPSTREAMED, "upstream asks for the family", "9.9")


@pytest.mark.parametrize("text", ["", "def other():\n    capable(120)\n", "def check():\n    '''capable(120)'''\n"])
def test_a_file_about_something_else_is_none_of_this_edits(text: str) -> None:
    outcome = replace_expression(EDIT, text)
    assert outcome == NothingToDo(State.NOT_NEEDED, "nothing here asks for a capability", elsewhere=True)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_line_endings_and_byte_order_marks_pass_through(mark: str, newline: str, end: str) -> None:
    text = mark + (SOURCE.rstrip("\n") + end).replace("\n", newline)
    assert replaced(text) == text.replace("capable( 120 )", "(capable(120) or capable(121))")


BLANK = st.text(" \t", max_size=3)
COMMENT = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8).map(lambda text: f"#{text}")


@example("", "", "#\\", 0)  # LibCST alone loses the last newline here
@given(BLANK, BLANK, COMMENT, st.integers(0, 4))
def test_whatever_stands_around_it_stays(before: str, behind: str, comment: str, lines: int) -> None:
    text = (
        "\n" * lines
        + f"def check( a ,b ) :{behind}{comment}\n  x = [a,{before}capable(120){behind},b]{before}{comment}\n"
    )
    assert replaced(text) == text.replace("capable(120)", EDIT.replace, 1 + comment.count("capable(120)"))


@pytest.mark.parametrize(
    "written", ["f'{capable(120)}'", "f'''\n{ capable( 120 ) !r:>{1}}'''", 'f"é{x}" f"{capable(120)}"']
)
def test_an_expression_in_an_f_string_is_one_too(written: str) -> None:
    text = f"def check():\n    return {written}, 'é', capable(120)\n"
    expected = re.sub(r"capable\( ?120 ?\)", EDIT.replace, text)
    assert replaced(text, replace(EDIT, count=2)) == expected


def test_a_place_behind_wide_characters_and_old_newlines_is_found() -> None:
    text = "def check():\r  x = 'äß\U0001f600'; return capable(120)\r\n"
    assert replaced(text) == text.replace("capable(120)", EDIT.replace)


def test_a_name_in_a_string_alone_is_no_name() -> None:
    assert isinstance(replace_expression(EDIT, "def check():\n    return 'capable'\n"), NothingToDo)
    assert isinstance(replace_expression(EDIT, "def check():\n    from capable import x\n"), Drift)


def test_libcst_is_loaded_for_a_file_that_is_changed_alone() -> None:
    code = (
        "import sys; from fp4patch.edits import Replace; edit = Replace(search=('a.py',), about='f', find='f(1)', "
        "replace='f(2)', count=int(sys.argv[1])); edit.rewrite('x = f(1)\\n', str); print('libcst' in sys.modules)"
    )
    for count, loaded in (("2", "False"), ("1", "True")):
        done = subprocess.run([sys.executable, "-c", code, count], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded
