"""Two edits of C++ and their texts, for the tests of each and of their fold."""

from __future__ import annotations

from fp4patch.core.results import Drift, Rewritten
from fp4patch.edits import Edit, Insert, Replace

DROP = Replace(
    search=("f.h",), about="SM_A", find="defined(A) || defined(SM_A)", replace="defined(A)", otherwise="no SM_A"
)
ANCHOR = "template <Style Round> struct Many<e2m1, float, 2, Round> {"
ADDED = "#if !defined(ON)\nstruct One<e2m1, float> {\n  int x;\n};\n#endif\n"
INSERT = Insert(search=("f.h",), before=ANCHOR, template="one.cuh", absent=("struct One<e2m1, float",))


MANY = "template <\n  Style Round\n>\nstruct Many<e2m1, float, 2, Round> {\n};\n"


def template(name: str) -> str:
    assert name == "one.cuh"
    return ADDED


def done(edit: Edit, text: str) -> str:
    outcome = edit.rewrite(text, template)
    assert isinstance(outcome, Rewritten), outcome
    return outcome.text


def refusal(edit: Edit, text: str) -> Drift:
    outcome = edit.rewrite(text, template)
    assert isinstance(outcome, Drift), outcome
    assert outcome.help
    return outcome


def block(condition: str, directive: str = "#if") -> str:
    return f"{directive} {condition}\n#  define ON 1\n#endif\n"
