"""The fold of edits: each sees what the ones before made, all are tried, a sign retires one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from cxx_edits import DROP, INSERT, MANY, block, refusal, template

from fp4patch.core.outcome import Drift, NothingToDo, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import Edit, Retired, cxx
from fp4patch.edits.edit import fold

SIGN = Retired(tokens="struct Better<int>", state=State.UPSTREAMED, since="9.1", because="it has a better one")


def test_a_sign_in_the_source_retires_an_edit_before_anything_else_is_asked() -> None:
    outcome = replace(INSERT, retired=(SIGN,)).rewrite("struct\n  Better< /* */ int> {};", template)
    assert outcome == NothingToDo(State.UPSTREAMED, "it has a better one", "9.1")
    assert refusal(replace(INSERT, retired=(SIGN,)), "// struct Better<int>\n")


@dataclass(frozen=True)
class Step:
    edit: Edit
    template: Callable[[str], str] = field(default=template)
    options: Mapping[str, str] = field(default_factory=dict)


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


def test_the_fold_of_nothing_is_the_text() -> None:
    assert fold("any\r\ntext", []).text == "any\r\ntext"


def test_a_fold_reads_a_file_as_a_whole_at_its_start_and_for_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "int a;\n" * 500 + block("defined(A) || defined(SM_A)") + "int b;\n" * 500 + MANY
    whole: list[str] = []

    def counting(part: str, read: Callable[[str], cxx.Source] = cxx.read) -> cxx.Source:
        whole.extend([part] if len(part) >= len(text) // 2 else [])
        return read(part)

    monkeypatch.setattr(cxx, "read", counting)
    done = fold(text, [Step(DROP), Step(INSERT), Step(INSERT), Step(DROP)])
    assert [type(outcome) for outcome in done.outcomes] == [Rewritten, Rewritten, Drift, NothingToDo]
    assert whole == [text, done.text]


def test_a_result_that_is_not_proven_leaves_the_text_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    text = block("defined(A) || defined(SM_A)")
    monkeypatch.setattr(cxx, "is_proven", lambda text: False)
    done = fold(text, [Step(DROP)])
    assert done.text == text
    assert isinstance(done.outcomes[0], Drift)
