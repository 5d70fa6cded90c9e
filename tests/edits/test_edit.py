"""The fold of edits: each sees what the ones before made, all are tried, a sign retires one."""

from dataclasses import replace

from cxx_edits import DROP, INSERT, MANY, Step, block, refusal, template

from fp4patch.core.results import Drift, NothingToDo, Rewritten, State
from fp4patch.edits import Retired
from fp4patch.edits.operation import fold

SIGN = Retired(tokens="struct Better<int>", state=State.UPSTREAMED, since="9.1", because="it has a better one")


def test_a_sign_in_the_source_retires_an_edit_before_anything_else_is_asked() -> None:
    outcome = replace(INSERT, retired=(SIGN,)).rewrite("struct\n  Better< /* */ int> {};", template)
    assert outcome == NothingToDo(State.UPSTREAMED, "it has a better one", "9.1")
    assert refusal(replace(INSERT, retired=(SIGN,)), "// struct Better<int>\n")


def test_later_edits_see_what_earlier_ones_made() -> None:
    added = replace(INSERT, template="guard.h", absent=())
    guard = block("defined(A) || defined(SM_A)")
    result = fold(MANY, [Step(added, lambda _: guard), Step(DROP)])
    assert result.text == block("defined(A)") + "\n" + MANY
    assert [type(outcome) for outcome in result.outcomes] == [Rewritten, Rewritten]


def test_every_edit_is_tried_so_that_every_refusal_is_known() -> None:
    text = block("defined(A) || defined(SM_A)")
    result = fold(text, [Step(INSERT), Step(DROP), Step(DROP)])
    assert [type(outcome) for outcome in result.outcomes] == [Drift, Rewritten, NothingToDo]
    assert result.text == block("defined(A)")
