"""Errors in an edit's own texts are the author's, and are reported by key; valid texts are accepted."""

from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.results import State
from fp4patch.edits import Edit, Insert, Replace, Retired, WrapAsm

OPEN = Retired(tokens="f(/* x", state=State.UPSTREAMED)


@pytest.mark.parametrize(
    ("edit", "keys"),
    [
        (Insert(search=("a.h",), before="/*", template="t", absent=("int a;", 'R"(x')), ["before", "absent"]),
        (WrapAsm(search=("*.cu",), encoders="e", floor="/*", lowered="__CUDA_ARCH__ >= 900"), ["floor"]),
        (Replace(search=("*.cu",), about="a", find="// only", replace=""), ["find"]),
        (Replace(search=("*.cu",), about="a", find="a", replace="/*"), ["replace"]),
        (Replace(search=("*.cu",), about="a", find="a", replace="b", retired=(OPEN,)), ["retired[0].tokens"]),
        (Replace(search=("*.py",), about="a", find="x = 1", replace="[1"), ["find", "replace"]),
        (Replace(search=("*.py",), about="a", find="x", replace="y  # why"), []),
        (Replace(search=("*.cmake",), about="set", find="set(A", replace="set(A)"), ["find"]),
        (Replace(search=("*.cmake",), about="set", find="set(A)\nset(B)", replace="set(A)"), ["replace"]),
        (Replace(search=("*.cmake",), about="set", find="set(A)", replace="set(A B)"), ["replace"]),
        (Replace(search=("*.cu", "*.py"), about="a", find="b", replace="c"), ["search"]),
        (Replace(search=("*.cu",), find="b", replace="c"), ["about"]),
        (Insert(search=("a.sh",), before="a", template="t"), ["search"]),
    ],
)
def test_what_cannot_be_read_is_named_by_its_key(edit: Edit, keys: list[str], tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    assert [key for key, _, _ in edit.mistakes(tmp_path)] == keys


def test_every_text_of_the_shipped_patches_can_be_read() -> None:
    patches = load().patches.values()
    assert not [wrong for one in patches for edit in one.edits for wrong in edit.mistakes(Path(one.directory))]
