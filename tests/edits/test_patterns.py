"""Errors in an edit's own texts are the author's, and are reported by key; valid texts are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fp4patch.catalog.manifest import load
from fp4patch.core.state import State
from fp4patch.edits import (
    AddOperand,
    DropOperand,
    Edit,
    Insert,
    InsertCommands,
    ReplaceCommand,
    ReplaceExpression,
    ReplaceTokens,
    Retired,
    WrapAsm,
)

OPEN = Retired(tokens="f(/* x", state=State.UPSTREAMED)


@pytest.mark.parametrize(
    ("edit", "keys"),
    [
        (AddOperand(file="a.h", defines="A", operands=("B", "C"), beside=("D",), signs=(), conditions=1), ["beside"]),
        (DropOperand(file="a.h", defines="A B", operands=("C D",), conditions=1), ["defines", "operands"]),
        (Insert(file="a.h", before="/* struct A", template="a.cuh", absent=("int a;", "R\"(x")), ["before", "absent"]),
        (WrapAsm(search=("*",), encoders="e", floor="/*", lowered="__CUDA_ARCH__ >= 900"), ["floor"]),
        (ReplaceTokens(search=("*",), about="a", find="// only", replace=""), ["find"]),
        (ReplaceTokens(search=("*",), about="a", find="a", replace="/*"), ["replace"]),
        (ReplaceTokens(search=("*",), about="a", find="a", replace="b", retired=(OPEN,)), ["retired[0].tokens"]),
        (ReplaceExpression(search=("*",), about="a", find="x = 1", replace="[1"), ["find", "replace"]),
        (ReplaceExpression(search=("*",), about="a", find="x", replace="y  # why"), []),
        (ReplaceCommand(search=("*",), about="set", find="set(A", replace="set(A)"), ["find"]),
        (ReplaceCommand(search=("*",), about="set", find="set(A)\nset(B)", replace="set(A)"), ["find"]),
        (ReplaceCommand(search=("*",), about="set", find="set(A)", replace="set(A B)"), ["replace"]),
        (InsertCommands(search=("*",), function="f", after="set A", template="t"), ["after"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_by_its_key(edit: Edit, keys: list[str], tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    assert [key for key, _, _ in edit.mistakes(tmp_path)] == keys


def test_every_text_of_the_shipped_patches_can_be_read() -> None:
    patches = load().patches.values()
    assert not [wrong for one in patches for edit in one.edits for wrong in edit.mistakes(Path(one.directory))]
