"""Two edits of C++ and their texts, for the tests of each and of their fold."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fp4patch.core.results import Drift, Outcome, Rewritten
from fp4patch.edits import Edit, Insert, Replace
from fp4patch.edits.fold import fold
from fp4patch.edits.operation import NO_OPTIONS

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


def rewritten(
    edit: Edit, text: str, of: Callable[[str], str], options: Mapping[str, str] = NO_OPTIONS
) -> tuple[str, Outcome]:
    """Return what one edit makes of a text, and the outcome."""
    made, (outcome,) = fold(text, [Step(edit, of, options)])
    assert made == text or isinstance(outcome, Rewritten), outcome
    return made, outcome


def done(edit: Edit, text: str) -> str:
    made, outcome = rewritten(edit, text, template)
    assert isinstance(outcome, Rewritten), outcome
    return made


def refusal(edit: Edit, text: str) -> Drift:
    _, outcome = rewritten(edit, text, template)
    assert isinstance(outcome, Drift), outcome
    assert outcome.help
    return outcome


def block(condition: str, directive: str = "#if") -> str:
    return f"{directive} {condition}\n#  define ON 1\n#endif\n"
