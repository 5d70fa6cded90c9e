"""Mutants of a patch's own new text, and the lines of a condition that no check tells from their mutants."""

import signal
from pathlib import Path

import pytest

from fp4patch.proof import condition_run
from fp4patch.proof.mutants import mutants


@pytest.mark.parametrize(
    ("language", "before", "after", "expected"),
    [
        ("python", "a == 1\n", "a == 2\n", ["a == 3"]),
        (
            "python",
            "x = a\n",
            "x = a and not b\n",
            ["x = a or not b", "x = True and not b", "x = a and True", "x = a and  b"],
        ),
        (
            "python",
            "x = f(a)\n",
            "x = f(a >= 13)\n",
            ["x = f(a > 13)", "x = f(a == 13)", "x = f(a < 13)", "x = f(a >= 14)"],
        ),
        (
            "python",
            "x = [1]\n",
            'x = [1, "sm_120", "12.1"]\n',
            ['x = [1, "sm_120", "13.1"]', 'x = [1, "sm_120", "12.2"]'],
        ),
        (
            "c++",
            "#if A\n",
            "#if A && (B <= 7)\n",
            [
                "#if A || (B <= 7)",
                "#if 1 && (B <= 7)",
                "#if A && 1",
                "#if A && (B < 7)",
                "#if A && (B == 7)",
                "#if A && (B > 7)",
                "#if A && (B <= 8)",
            ],
        ),
        ("c++", "x = a;\n", "x = a || f(b, c);\n", ["x = a && f(b, c);", "x = 0 || f(b, c);", "x = a || 0;"]),
        ("cmake", "if(A)\n", "if(A AND NOT B)\n", ["if(A OR NOT B)", "if(1 AND NOT B)", "if(A AND 1)", "if(A AND  B)"]),
        (
            "cmake",
            "set(A 12.0)\n",
            'set(A "12.0;12.1")\n',
            ['set(A "12.0")'],
        ),
        ("cmake", 'set(A "12.0f;9.0")\n', 'set(A "12.1a;12.0f;9.0")\n', ['set(A "12.0f;9.0")']),
        ("cmake", "set(A B)\n", 'set(A B "2;y")\n', ['set(A B "y")', 'set(A B "3;y")', 'set(A B "2")']),
    ],
)
def test_each_operator_constant_and_operand_of_new_text_is_turned_or_dropped(
    language: str, before: str, after: str, expected: list[str]
) -> None:
    assert sorted(mutant.text.strip() for mutant in mutants(language, before, after)) == sorted(expected)


def test_text_that_was_there_has_no_mutants() -> None:
    assert [*mutants("python", "x = a == 1\n", "x = a == 1\ny = b\n")] == []


def test_a_mutant_names_its_line() -> None:
    assert {mutant.line for mutant in mutants("python", "a\nb\n", "a\n\nb == 1\n")} == {3}


def test_a_program_that_does_not_end_gives_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import pathlib, sys\nexec(pathlib.Path(sys.argv[1]).read_text())\nprint(*sys.argv[2:])\n")
    texts = {"right": "x = 1", "wrong": "1 / 0", "ended": "sys.exit(0)", "endless": "while True: pass"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    signal.signal(signal.SIGALRM, condition_run.stop)
    gave = [condition_run.said(str(program), ["12.1"], str(tmp_path / name)) for name in texts]
    assert gave == ["12.1\n", None, None, None]
