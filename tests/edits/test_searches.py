"""An edit's own search finds the code that it must leave nowhere, and nothing in code that has none."""

import pytest

from fp4patch.edits import AddElement, Edit, Replace, WrapAsm
from fp4patch.edits.language import language
from fp4patch.edits.operation import NO_OPTIONS, PatchedTree

ALONE = PatchedTree(NO_OPTIONS, lambda _file: False)


def lines(edit: Edit, file: str, code: str) -> list[int]:
    searches = [search for search in edit.searches(language(file)) if search.look.passes(code.encode())]
    return [place.line for search in searches for place in search.places(ALONE, file, code)]


TOKENS = Replace(search=("*.cu",), about="f", find="a == 120", replace="b")
EXPRESSION = Replace(search=("*.py",), about="f", find="f(120)", replace="g()")
COMMAND = Replace(search=("*.cmake",), about="set", find="set(A 1)", replace="set(A 2)")
ELEMENT = AddElement(search=("*.cmake",), commands=("set",), beside="12.0f", element="12.1a")
WRAP = WrapAsm(search=("*.cu",), encoders="e")
CVT = "cvt.rn.satfinite.e2m1x2.f32"


@pytest.mark.parametrize(
    ("edit", "file", "left", "gone"),
    [
        (TOKENS, "a.cu", "f();\nif (a /**/ == 120)", "// a == 120"),
        (EXPRESSION, "a.py", "\nx = (f( 120 ))", "'f(120)'"),
        (COMMAND, "a.cmake", "\nset( A\n 1)", "# set(A 1)"),
        (ELEMENT, "a.cmake", '\nset(A "9.0;12.0f")', '\nset(A "12.0f;12.1a")'),
        (WRAP, "a.py", f'\nP = "{CVT} b, %1, %2;"', f'x = 1  # "{CVT} b, %1, %2;"'),
        (WRAP, "a.cu", f'\n#define F "{CVT}"', f'// "{CVT}"'),
    ],
)
def test_code_that_is_left_is_found(edit: Edit, file: str, left: str, gone: str) -> None:
    assert lines(edit, file, left) == [2]
    assert lines(edit, file, gone) == []
