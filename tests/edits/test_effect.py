"""What conditions come to for given values: as the programs of their languages say, or not known."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from share import seed

from fp4patch.adapters.vllm import cmake
from fp4patch.edits.cmake_code import CMakeCode
from fp4patch.edits.cxx_code import CxxCode
from fp4patch.edits.effect import Case, Effect
from fp4patch.edits.python_code import PythonCode
from fp4patch.edits.sources import LANGUAGES

CASES: list[Case] = [{"major": major, "minor": minor} for major, minor in ((12, 0), (12, 1), (9, 0), (8, 9), (0, 3))]


def python(text: str, cases: Sequence[Case] = CASES, within: str = "") -> list[list[object]]:
    return [list(row) for row in PythonCode(LANGUAGES["python"].read(text), within).conditions(cases)]


def cxx(text: str, cases: Sequence[Case] = CASES) -> list[list[object]]:
    return [list(row) for row in CxxCode(LANGUAGES["c++"].read(text), "").conditions(cases)]


def expression(chance: random.Random, depth: int, words: dict[str, str]) -> str:
    """Return an expression of comparisons; ``words`` has the operators of its language."""
    if not depth:
        left = chance.choice(["major", "minor", f"major {words['*']} 10 + minor", "(major - minor)", "major % 3"])
        return f"{left} {chance.choice(['==', '!=', '<', '<=', '>', '>='])} {chance.choice([0, 1, 3, 9, 12, 89, 120])}"
    left, right = (expression(chance, depth - chance.choice([1, 1, depth]), words) for _ in "ab")
    sign = chance.choice(["and", "or"])
    return chance.choice(
        [f"({left}) {words[sign]} {right}", f"{left} {words[sign]} {right}", f"{words['not']}({left})"]
    )


def test_python_says_the_same() -> None:
    chance = random.Random(seed())
    for _ in range(300):
        text = expression(chance, chance.randint(0, 3), {"and": "and", "or": "or", "not": "not ", "*": "*"})
        expected = [eval(text, dict(case)) for case in CASES]
        assert python(f"if {text}:\n    pass\n") == [expected], text


def test_a_compiler_says_the_same(tmp_path: Path) -> None:
    chance = random.Random(seed())
    words = {"and": "&&", "or": "||", "not": "!", "*": "*"}
    texts = [expression(chance, chance.randint(0, 3), words) for _ in range(100)]
    lines = "".join(f"  if ({text}) putchar('1'); else putchar('0');\n" for text in texts)
    main = "".join(f"  f({case['major']}, {case['minor']});\n" for case in CASES)
    program = f"#include <cstdio>\nvoid f(int major, int minor) {{\n{lines}}}\nint main() {{\n{main}}}\n"
    (tmp_path / "program.cpp").write_text(program)
    subprocess.run(["g++", "-w", "program.cpp", "-o", "program"], cwd=tmp_path, check=True, timeout=120)
    said = subprocess.run(tmp_path / "program", capture_output=True, text=True, check=True, timeout=10).stdout
    rows = [said[number * len(texts) : (number + 1) * len(texts)] for number in range(len(CASES))]
    for number, (text, found) in enumerate(zip(texts, cxx(f"void f() {{\n{lines}}}"), strict=True)):
        assert found == [int(row[number]) for row in rows], text


CMAKE = [
    'ARCHS MATCHES "12\\\\.[01][af]"',
    "ARCHS MATCHES 12",
    'ARCHS MATCHES "^(9|12)\\\\.0"',
    '"12.1a" IN_LIST ARCHS',
    'NOT "12.1a" IN_LIST ARCHS AND ARCHS',
    'ARCHS STREQUAL "12.0a"',
    '"${ARCHS}" STREQUAL "9.0a" OR ARCHS MATCHES "1a"',
    'NOT ARCHS OR ("${ARCHS}" MATCHES "0a" AND NOT ARCHS STREQUAL "9.0a")',
    "ARCHS",
    "NOT ARCHS",
    '"${ARCHS}"',
    '"${COUNT}"',
    '"${COUNT}.5" OR "0.0"',
    "COUNT EQUAL 2 OR ARCHS",
    "NOT (COUNT EQUAL 2 AND ARCHS)",
    '"x${ARCHS}x${COUNT}" STREQUAL "x12.0ax1"',
    "OFF OR COUNT",
    "[[12.0a]] STREQUAL ARCHS",
    "COUNT LESS 2 AND NOT COUNT GREATER_EQUAL 1",
    'ARCHS STRLESS "12.1"',
    '"12.${COUNT}" VERSION_GREATER_EQUAL 12.1',
    '"12.${COUNT}" VERSION_EQUAL "12.2" OR ARCHS STREQUAL "12.0a"',
]


def test_cmake_says_the_same(tmp_path: Path) -> None:
    program = cmake()
    assert program
    cases: list[Case] = [
        {"ARCHS": archs, "COUNT": count}
        for archs, count in (
            ("12.0a", 1),
            ("12.0a;12.1a", 2),
            ("9.0a", 1),
            ("", 0),
            ("ARCHS-NOTFOUND", 0),
            ("12.1f", 2),
        )
    ]
    asks = "".join(f"if({text})\n  message(1)\nelse()\n  message(0)\nendif()\n" for text in CMAKE)
    rows = []
    for case in cases:
        sets = "".join(f'set({name} "{value}")\n' for name, value in case.items())
        script = tmp_path / "asks.cmake"
        script.write_text(f"cmake_minimum_required(VERSION 3.20)\n{sets}{asks}")
        said = subprocess.run([program, "-P", script], capture_output=True, text=True, check=True, timeout=60)
        rows.append([line == "1" for line in said.stderr.split()])
    found = CMakeCode(LANGUAGES["cmake"].read(asks), "").conditions(cases)
    for number, (text, results) in enumerate(zip(CMAKE, found, strict=True)):
        assert list(results) == [row[number] for row in rows], text


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("ok = major == 12 and extra()", [[None, None, False, False, False], [None]]),
        ("ok = major == 12 or extra()", [[True, True, None, None, None], [None]]),
        ("ok = extra() == 3", []),
        ("sm = major * 10 + minor\nok = sm in (89, 120)", [[True, False, False, True, False]]),
        ("sm = extra(major)\n", [[None]]),
        ("major = int(text)\nok = major < 9", [[False, False, False, True, True]]),
        ("ok = f'{major}' == '12'", [[True, True, False, False, False]]),
        ("ok = f'{major:x}' == 'c'", [[None] * 5, [None]]),
        ("sm = major\nsm = 5\nok = sm == 12", [[None], [True, True, False, False, False]]),
        ("match major:\n    case 12: ok = minor == 0", [[None] * 5]),
        ("ok = (minor - 1) // 2 == 0", [[None, True, None, False, False], [None]]),
        ("ok = 10 // minor == 10", [[None, True, None, False, False], [None]]),
        ("ok = (major, minor)[0] == 12", [[True, True, False, False, False]]),
        ("if (sm := major) == 12: pass", [[None] * 5]),
        ("import os\nok = [print(1) for major in range(2)]", []),
    ],
)
def test_what_is_not_known_is_not_said(text: str, results: list[list[object]]) -> None:
    assert python(text) == results


def test_only_the_function_is_read() -> None:
    text = "def f(major):\n    return major == 12\n\ndef g(major):\n    return major == 9\n"
    assert python(text, within="f") == [[True, True, False, False, False]]


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("int f() { return major == 12 && g(); }", [[None, None, False, False, False]]),
        ("int f() { return g(major == 12, 1); }", [[1, 1, 0, 0, 0]]),
        ("int f() { int major = 0, minor; get(&major, minor); }", []),
        ("int f() { const bool x = major == 12; return !x; }", [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]]),
        (
            "int f() { bool x = major == 12; x |= minor; return !x; }",
            [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [None], [0, 0, 1, 1, 1]],
        ),
        ("int f() { return a.major == 12; }", []),
        ("int f() { return ((major) == 12) ? 1 : 2; }", [[1, 1, 0, 0, 0]]),
        ("int f() { switch (major) { case 12: return 1; } }", [[None] * 5]),
        ("int f() { int x = g(); x <<= major == 12; return x == 2; }", [[1, 1, 0, 0, 0]]),
        ("bool f() { return T{major} == T{12}; }", [[None] * 5]),
        ("int f() { return v<major>() < 3; }", [[None] * 5]),
    ],
)
def test_of_cxx_what_is_not_known_is_not_said(text: str, results: list[list[object]]) -> None:
    assert cxx(text) == results


def test_cases_must_be_whole() -> None:
    assert not Effect(of={"a": (1, 2)}, because="x").is_sound
    assert not Effect(of={"a": (1, 2, 3), "b": (1, 2)}, because="x").is_sound
    assert Effect(of={"a": (1, 2, 3), "b": (1, 2, 3)}, because="x").is_sound
