"""The edit `add-item`: a list that a Python call gets by name has an item more, whatever else is in it."""

import pytest

from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten, State
from fp4patch.edits import AddItem
from fp4patch.edits.fold import rewrite

EDIT = AddItem(
    search=("jit/*.py",), within="module", call="flags", argument="majors", item="12", because="the list names 12"
)


def edited(text: str) -> Outcome:
    return rewrite(text, EDIT, str).outcomes[0]


def function(value: str, call: str = "context.flags") -> str:
    arguments = f"        majors={value},  # these\n        other=[9, 10]\n"
    return f"def module():\n    # majors=[1]\n    return {call}(\n{arguments}    )\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[9, 10]", "[9, 10, 12]"),
        ("[8, 9, 10, 11]", "[8, 9, 10, 11, 12]"),
        ("[10]", "[10, 12]"),
        ("{9, 10}", "{9, 10, 12}"),
        ("[*OLDER, 10]", "[*OLDER, 10, 12]"),
        ("[120]", "[120, 12]"),
    ],
)
def test_the_item_comes_last_and_no_other_list_changes(before: str, after: str) -> None:
    made, (outcome,) = rewrite(function(before).replace("[9, 10]\n", "[1]\n"), EDIT, str)
    assert isinstance(outcome, Rewritten), outcome
    assert made == function(after).replace("[9, 10]\n", "[1]\n")
    assert outcome.lines == (4,)
    assert edited(made) == NothingToDo(State.UPSTREAMED, "the list names 12")


@pytest.mark.parametrize(
    "value", ["[9, 10, 11, 12]", "[8, 9, 10, 11, 12]", "[12]", "(12, 13)", "[*OLDER, 12]", "[\n  9,\n  12,\n]", "ALL"]
)
def test_a_list_with_the_item_is_upstreamed_whatever_else_it_has(value: str) -> None:
    assert edited("ALL = [8, 12]\n\n" + function(value)) == NothingToDo(State.UPSTREAMED, "the list names 12")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (function("[]"), "no items"),
        (function("MAJORS"), "`MAJORS`"),
        (function("(9,)"), "`(9,)`"),
        ("MAJORS = [9, 10]\n" + function("MAJORS"), "`MAJORS`"),
        ("MAJORS = [9, 12]\nMAJORS = [9]\n" + function("MAJORS"), "`MAJORS`"),
        (function("range(8, 13)"), "`range(8, 13)`"),
        (function("[major for major in ALL]"), "`[major for major in ALL]`"),
        (function("None"), "`None`"),
        (function("[9, 10]"), "2 of `[9, 10]`"),  # beside `other`
        (function("[9, 10]", "other"), "0"),
        (function("[10]") + function("[9]").replace("def module():", "    "), "2"),
    ],
)
def test_refuses_what_is_not_one_list_that_is_written_out(text: str, found: str) -> None:
    outcome = edited(text)
    assert isinstance(outcome, Drift), outcome
    assert found in outcome.found


def test_a_file_without_the_function_is_none_of_its_files() -> None:
    outcome = edited(function("[9]").replace("module", "another"))
    assert isinstance(outcome, NothingToDo)
    assert outcome.elsewhere


@pytest.mark.parametrize(("key", "value"), [("item", "12 13"), ("call", "a.b"), ("argument", "*"), ("within", "f()")])
def test_an_author_learns_what_cannot_be_read(key: str, value: str, tmp_path: object) -> None:
    keys = {"within": "module", "call": "flags", "argument": "majors", "item": "12"} | {key: value}
    wrong = [mistake.key for mistake in AddItem(search=("jit/*.py",), **keys).mistakes(tmp_path)]  # type: ignore[arg-type]
    assert wrong == [key]
