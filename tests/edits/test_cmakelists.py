"""The edits of CMake files: elements of lists, and commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import AddElement, Replace, Retired

ADD = AddElement(
    search=("CMakeLists.txt",),
    commands=("set", "list", "intersect"),
    variable="*_ARCHS",
    but=("OTHER_*",),
    beside="12.0f",
    element="12.1a",
    drop=("12.1f",),
    since="9.9",
    otherwise="no such list",
)


def rewrite(edit: AddElement | Replace, text: str) -> Outcome:
    return edit.rewrite(text, lambda _name: "")


def added(text: str) -> str:
    outcome = rewrite(ADD, text)
    assert isinstance(outcome, Rewritten)
    return outcome.text


# --- add-element -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('set(A_ARCHS "9.0a;12.0f")', 'set(A_ARCHS "9.0a;12.1a;12.0f")'),
        ("set(A_ARCHS 9.0a 12.0f)", "set(A_ARCHS 9.0a 12.1a;12.0f)"),
        ('SET ( A_ARCHS\n  "12.0f" ) # 12.0f', 'SET ( A_ARCHS\n  "12.1a;12.0f" ) # 12.0f'),
        ('list(APPEND A_ARCHS "12.0f")', 'list(APPEND A_ARCHS "12.1a;12.0f")'),
        ('intersect(A_ARCHS "12.0f;12.1f" "${X}")', 'intersect(A_ARCHS "12.1a;12.0f" "${X}")'),
        ("set(A_ARCHS [[12.0f]])", "set(A_ARCHS [[12.1a;12.0f]])"),
        (
            'set(A_ARCHS "12.0f")\nset(B_ARCHS "12.0f;12.1a")\nset(C_ARCHS "12.0f;8.0")',
            'set(A_ARCHS "12.1a;12.0f")\nset(B_ARCHS "12.0f;12.1a")\nset(C_ARCHS "12.1a;12.0f;8.0")',
        ),
    ],
)
def test_an_element_goes_before_the_one_it_belongs_to(before: str, after: str) -> None:
    assert added(before) == after


@pytest.mark.parametrize(
    "text",
    [
        'set(A_ARCHS "12.0")',
        'set(A_ARCHS "112.0f;12.0ff")',
        '# set(A_ARCHS "12.0f")',
        'set(TEXT "set(A_ARCHS 12.0f)")',
        'set(ARCHES "12.0f")',
        'set(OTHER_ARCHS "12.0f")',
        'unset(A_ARCHS "12.0f")',
        "message([[ set(A_ARCHS 12.0f) ]])",
        "set(12.0f)",
    ],
)
def test_a_list_that_is_not_meant_is_left_alone(text: str) -> None:
    assert rewrite(ADD, text) == NothingToDo(State.NOT_NEEDED, "no such list", elsewhere=True)


def test_lists_that_have_the_element_retire_the_edit() -> None:
    outcome = rewrite(ADD, 'set(A_ARCHS "12.0f;12.1a")')
    assert outcome == NothingToDo(State.UPSTREAMED, "each list with 12.0f has 12.1a", "9.9")


def test_the_lines_of_every_edited_list_are_told() -> None:
    outcome = rewrite(ADD, 'set(A_ARCHS "12.0f")\n\nset(B_ARCHS\n  "12.0f")')
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (1, 4)


def test_an_unreadable_file_is_refused() -> None:
    outcome = rewrite(ADD, 'set(A_ARCHS "12.0f"')
    assert isinstance(outcome, Drift)
    assert outcome.line == 1


def test_an_element_that_leads_is_not_dropped() -> None:
    assert isinstance(rewrite(ADD, 'set(A_ARCHS "12.1f;12.0f")'), Drift)


PTX = AddElement(search=("*.cmake",), commands=("intersect",), beside="8.0+PTX", element="12.0;12.1", unless="12.*")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('intersect(A "8.0+PTX" "${X}")', 'intersect(A "12.0;12.1;8.0+PTX" "${X}")'),
        ('set(S 7.5 8.0+PTX)\nintersect(A "${S}" "${X}")', 'set(S 7.5 12.0;12.1;8.0+PTX)\nintersect(A "${S}" "${X}")'),
        (
            'intersect(A "8.0+PTX" "${X}")\nintersect(B "8.0+PTX;12.0f" "${X}")',
            'intersect(A "12.0;12.1;8.0+PTX" "${X}")\nintersect(B "8.0+PTX;12.0f" "${X}")',
        ),
    ],
)
def test_several_elements_go_into_lists_that_have_nothing_alike(before: str, after: str) -> None:
    outcome = rewrite(PTX, before)
    assert isinstance(outcome, Rewritten)
    assert outcome.text == after
    assert rewrite(PTX, after) == NothingToDo(State.UPSTREAMED, "each list with 8.0+PTX has 12.*")


def test_an_element_of_several_that_is_taken_out_again_is_refused() -> None:
    text = 'set(S 8.0+PTX)\nlist(REMOVE_ITEM S "12.1")\nintersect(A "${S}" "${X}")'
    assert isinstance(rewrite(PTX, text), Drift)


ELEMENTS = st.lists(st.sampled_from(["8.0", "9.0a", "10.0f", "12.0", "12.0a", "12.1"]), max_size=5)


@given(ELEMENTS, ELEMENTS, st.booleans())
def test_nothing_else_in_a_list_changes(before: list[str], behind: list[str], quoted: bool) -> None:
    def written(elements: list[str]) -> str:
        text = ";".join(elements)
        return f'set(A_ARCHS "{text}")' if quoted else f"set(A_ARCHS {text})"

    assert added(written([*before, "12.0f", *behind])) == written([*before, "12.1a", "12.0f", *behind])


# --- replace ---------------------------------------------------------------------------------------------------------

REPLACE = Replace(
    search=("*.cmake",),
    about="set(KIND",
    otherwise="no KIND here",
    find=r'elseif(ARCHS MATCHES "12\\.0a")',
    replace=r'elseif(ARCHS MATCHES "12\\.[01][af]")',
    retired=(Retired(tokens="elseif(SM12X)", state=State.UPSTREAMED, since="9.9", because="upstream has a test"),),
)
BLOCK = 'if(A)\nelseif( ARCHS  MATCHES # why\n  "12\\\\.0a" )\n  set(KIND 120)\nendif()\n'


def test_only_the_argument_that_differs_changes() -> None:
    outcome = rewrite(REPLACE, BLOCK)
    assert isinstance(outcome, Rewritten)
    assert outcome.text == BLOCK.replace("12\\\\.0a", "12\\\\.[01][af]")


def test_a_command_in_another_shape_is_drift_with_the_nearest() -> None:
    outcome = rewrite(REPLACE, BLOCK.replace("0a", "0b"))
    assert isinstance(outcome, Drift)
    assert (outcome.found, outcome.line) == ("0", 2)
    assert "12\\\\.0b" in outcome.nearest


def test_a_second_site_is_drift() -> None:
    assert isinstance(rewrite(REPLACE, BLOCK + BLOCK), Drift)


def test_a_sign_retires_the_edit_and_a_sign_beside_the_site_is_drift() -> None:
    sign = "if(A)\nelseif(SM12X)\nset(KIND 1)\nendif()\n"
    assert rewrite(REPLACE, sign) == NothingToDo(State.UPSTREAMED, "upstream has a test", "9.9")
    assert isinstance(rewrite(REPLACE, sign + BLOCK), Drift)


def test_a_file_about_something_else_is_none_of_this_edits() -> None:
    outcome = rewrite(REPLACE, 'elseif(ARCHS MATCHES "12\\\\.0a")')
    assert outcome == NothingToDo(State.NOT_NEEDED, "no KIND here", elsewhere=True)


INSERT = Replace(
    search=("*.cmake",),
    within="intersect",
    otherwise="no intersect() here",
    find="set(_FOUND)",
    replace="set(_FOUND)\n  added()\n",
    retired=(Retired(tokens="keep(SUFFIX)", state=State.UPSTREAMED, since="9.9", because="upstream keeps it"),),
)
FUNCTION = "set(_FOUND)\nfunction(intersect A)\n  set(_FOUND) # none yet\n  more()\nendfunction()\nset(_FOUND)\n"
INSERTED = FUNCTION.replace("none yet\n", "none yet\n  added()\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_more_commands_go_on_lines_behind_the_command_of_that_function(newline: str) -> None:
    outcome = rewrite(INSERT, FUNCTION.replace("\n", newline))
    assert isinstance(outcome, Rewritten)
    assert outcome.text == INSERTED.replace("\n", newline)


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION.replace("none yet", "none yet\n  set(_FOUND)"),
        FUNCTION.replace("  set(_FOUND)", "  set(_FOUND 1)"),
        FUNCTION.replace(" # none yet\n", " "),
        FUNCTION + FUNCTION,
        FUNCTION.replace("endfunction()", ""),
        INSERTED,
    ],
)
def test_an_anchor_that_is_not_there_once_at_the_end_of_a_line_is_drift(text: str) -> None:
    assert isinstance(rewrite(INSERT, text), Drift)


def test_a_sign_counts_in_the_function_only() -> None:
    outcome = rewrite(INSERT, FUNCTION.replace("more()", "KEEP(SUFFIX)"))
    assert outcome == NothingToDo(State.UPSTREAMED, "upstream keeps it", "9.9")
    assert isinstance(rewrite(INSERT, FUNCTION + "keep(SUFFIX)\n"), Rewritten)


def test_a_file_without_the_function_is_none_of_this_edits() -> None:
    outcome = rewrite(INSERT, "set(_FOUND)\n")
    assert outcome == NothingToDo(State.NOT_NEEDED, "no intersect() here", elsewhere=True)
