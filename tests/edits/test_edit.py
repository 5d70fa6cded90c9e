"""The fold of edits: each sees what the ones before made, all are tried, a sign retires one."""

from dataclasses import replace

from cxx_edits import DROP, INSERT, MANY, Step, block, refusal, template

from fp4patch.core.results import Drift, NothingToDo, Rewritten, State
from fp4patch.edits import Replace, Retired
from fp4patch.edits.fold import fold, rewrite

SIGN = Retired(tokens="struct Better<int>", state=State.UPSTREAMED, since="9.1", because="it has a better one")


def test_a_sign_in_the_source_retires_an_edit_before_anything_else_is_asked() -> None:
    retired = replace(INSERT, retired=(SIGN,))
    (outcome,) = rewrite("struct\n  Better< /* */ int> {};", retired, template).outcomes
    assert outcome == NothingToDo(State.UPSTREAMED, "it has a better one", "9.1")
    assert refusal(replace(INSERT, retired=(SIGN,)), "// struct Better<int>\n")


def test_edits_see_what_earlier_ones_made_if_they_say_that_they_need_it() -> None:
    added = replace(INSERT, template="guard.h", absent=())
    guard = block("defined(A) || defined(SM_A)")
    result = fold(MANY, [Step(added, lambda _: guard), Step(replace(DROP, after="the guard"))])
    assert result.text == block("defined(A)") + "\n" + MANY
    assert [type(outcome) for outcome in result.outcomes] == [Rewritten, Rewritten]
    result = fold(MANY, [Step(added, lambda _: guard), Step(DROP)])
    assert result.text == guard + "\n" + MANY
    assert [type(outcome) for outcome in result.outcomes] == [Rewritten, NothingToDo]


def test_two_changes_of_one_place_refuse_the_second_one_and_say_what_to_do() -> None:
    text = block("defined(A) || defined(SM_A)")
    other = replace(DROP, find="|| defined(SM_A)", replace="&& defined(SM_A)")
    result = fold(text, [Step(other), Step(DROP)])
    assert result.text == block("defined(A) && defined(SM_A)")
    first, second = result.outcomes
    assert isinstance(first, Rewritten)
    assert isinstance(second, Drift)
    assert "after" in second.help


def test_one_change_that_does_not_read_as_meant_leaves_the_others() -> None:
    text = block("defined(A) || defined(SM_A)") + "int x;\n"
    wrong = Replace(search=("f.h",), about="x", find="int", replace="(int")
    result = fold(text, [Step(wrong), Step(DROP)])
    assert result.text == block("defined(A)") + "int x;\n"
    assert [type(outcome) for outcome in result.outcomes] == [Drift, Rewritten]


def test_every_edit_is_tried_so_that_every_refusal_is_known() -> None:
    text = block("defined(A) || defined(SM_A)")
    result = fold(text, [Step(INSERT), Step(DROP), Step(replace(DROP, after="that"))])
    assert [type(outcome) for outcome in result.outcomes] == [Drift, Rewritten, NothingToDo]
    assert result.text == block("defined(A)")
