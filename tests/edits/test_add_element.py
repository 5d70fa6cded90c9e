"""The edit `add-element`: CMake lists get an element beside another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten, State
from fp4patch.edits import AddElement, fold
from fp4patch.edits.operation import PatchedTree

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


def rewrite(edit: AddElement, text: str) -> Outcome:
    (outcome,) = fold.rewrite(text, edit, lambda _name: "").outcomes
    return outcome


def added(text: str) -> str:
    made, (outcome,) = fold.rewrite(text, ADD, lambda _name: "")
    assert isinstance(outcome, Rewritten)
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('set(A_ARCHS "9.0a;12.0f")', 'set(A_ARCHS "9.0a;12.1a;12.0f")'),
        ("set(A_ARCHS 9.0a 12.0f)", "set(A_ARCHS 9.0a 12.1a;12.0f)"),
        ('SET ( A_ARCHS\n  "12.0f" ) # 12.0f', 'SET ( A_ARCHS\n  "12.1a;12.0f" ) # 12.0f'),
        ('list(APPEND A_ARCHS "12.0f")', 'list(APPEND A_ARCHS "12.1a;12.0f")'),
        ('intersect(A_ARCHS 12.0f "${X}")', 'intersect(A_ARCHS "12.1a;12.0f" "${X}")'),
        ('intersect(A_ARCHS "12.0f;12.1f" "${X}")', 'intersect(A_ARCHS "12.1a;12.0f" "${X}")'),
        ('set(A_ARCHS "12.1f;12.0f")', 'set(A_ARCHS "12.1a;12.0f")'),
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
    made, (outcome,) = fold.rewrite(before, PTX, lambda _name: "")
    assert isinstance(outcome, Rewritten)
    assert made == after
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


@pytest.mark.parametrize(
    "text",
    [
        'intersect(A_ARCHS 9.0a;12.0f "${X}")',
        'set(B_ARCHS "12.0f")\nintersect(A_ARCHS ${B_ARCHS} "${X}")',
        'list(APPEND B_ARCHS 12.0f)\nintersect(A_ARCHS 9.0a;${B_ARCHS} "${X}")',
    ],
)
def test_a_list_that_would_become_other_arguments_is_refused(text: str) -> None:
    outcome = rewrite(ADD, text)
    assert isinstance(outcome, Drift)
    assert (outcome.line, bool(outcome.help)) == (text.count("\n") + 1, True)


TAKES = [
    "list(REMOVE_ITEM A 12.1a)",
    "if(X)\n list(REMOVE_ITEM A 9.0 12.1a)\nendif()",
    'list(FILTER A EXCLUDE REGEX "^12\\\\.1")',
    'list(FILTER A INCLUDE REGEX "12.0")',
    "list(POP_BACK A)",
    'list(TRANSFORM A REPLACE "12.1a" "12.0a")',
    'string(REPLACE "12.1a" "" A "${A}")',
    'string(REGEX REPLACE "12.1a;?" "" A "${A}")',
    'set(B "${A}")\nlist(REMOVE_ITEM B 12.1a)',
]
KEEPS = [
    "list(REMOVE_ITEM A 9.0)",
    'list(FILTER A EXCLUDE REGEX "^9")',
    "list(SORT A)",
    "list(REMOVE_ITEM OTHER 12.1a)",
]


@pytest.mark.parametrize("command", [*TAKES, *KEEPS])
def test_a_command_that_takes_the_element_out_again_is_named(command: str) -> None:
    edit = AddElement(search=("*.cmake",), commands=("set",), beside="12.0f", element="12.1a")
    (search,) = edit.searches("cmake")
    text = f'set(A "9.0;12.0f;12.1a")\n{command}\n'
    found = list(search.places(PatchedTree({}, lambda _file: True), "a.cmake", text))
    assert len(found) == (command in TAKES)
