"""Two edits of C++ and their texts, for the tests of each and of their fold."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fp4patch.core.results import Drift, Outcome, Rewritten
from fp4patch.edits import Edit, Insert, Replace
from fp4patch.edits.operation import NO_OPTIONS, fold

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


class Step(NamedTuple):
    """An edit and its templates."""

    edit: Edit
    template: Callable[[str], str] = template
    options: Mapping[str, str] = NO_OPTIONS


def outcome_of(edit: Edit, text: str, of: Callable[[str], str], options: Mapping[str, str] = NO_OPTIONS) -> Outcome:
    """Return the outcome of one edit, whose result is read again."""
    (outcome,) = fold(text, [Step(edit, of, options)]).outcomes
    return outcome


def done(edit: Edit, text: str) -> str:
    outcome = outcome_of(edit, text, template)
    assert isinstance(outcome, Rewritten), outcome
    return outcome.text


def refusal(edit: Edit, text: str) -> Drift:
    outcome = outcome_of(edit, text, template)
    assert isinstance(outcome, Drift), outcome
    assert outcome.help
    return outcome


def block(condition: str, directive: str = "#if") -> str:
    return f"{directive} {condition}\n#  define ON 1\n#endif\n"
