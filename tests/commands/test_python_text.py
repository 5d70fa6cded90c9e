"""A tree's own Python, evaluated from its text: what is known, what is not, and that nothing of it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from fp4patch.commands.doctor.python_text import Package
from fp4patch.commands.doctor.python_values import UNKNOWN, NotKnown, Raised, World

WORLD = World({"os": SimpleNamespace(environ={"LIST": "12.0 12.1"})}, {"release": lambda: "13.0"})
Evaluate = Callable[..., Any]


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """Return the result of ``f`` of a file, with further files beside it."""

    def run(source: str, others: Mapping[str, str] = MappingProxyType({})) -> Any:
        root = tmp_path / "package"
        (root / "jit").mkdir(parents=True, exist_ok=True)
        (root / "jit/one.py").write_text(source)
        for name, text in others.items():
            (root / name).write_text(text)
        return Package(root).call("jit/one.py", "f", (), WORLD)

    return run


def body(*lines: str, head: Sequence[str] = ()) -> str:
    return "\n".join([*head, "def f(x=None):", *(f"    {line}" for line in lines)]) + "\n"


KNOWN = {
    "a condition": (body("if x is None:", "    return 1", "return 2"), 1),
    "a loop with a break": (body("for i in range(9):", "    if i == 3:", "        break", "return i"), 3),
    "the else of a loop": (body("for i in [1]:", "    continue", "else:", "    return 2", "return 3"), 2),
    "a list that grows": (body("y = [1]", "y.append(2)", "y += [3]", "return y"), [1, 2, 3]),
    "another name for it": (body("y = [1]", "z = y", "z += [2]", "return y"), [1, 2]),
    "formatted text": (body('return f\'sm_{12}{"1" + "a" * (1 < 2)}\''), "sm_121a"),
    "what is in a dictionary": (body("return [k + v for k, v in {'a': 'b'}.items()]"), ["ab"]),
    "a comprehension": (body("return [a for a, b in [(1, 2), (3, 4)] if b in (4,)]"), [3]),
    "what is raised and caught": (body("try:", "    int('f')", "except ValueError as e:", "    return 1"), 1),
    "a name with a class of exceptions": (body("try:", "    return {}['a']", "except LookupError:", "    return 1"), 1),
    "what stands for the world": (
        body("return [int(p.split('.')[1]) for p in os.environ['LIST'].split(' ')]", head=["import os"]),
        [0, 1],
    ),
    "an import in a function": (body("from ..elsewhere import release", "return release()"), "13.0"),
    "and with an unknown one before": (body("return anything() and x is not None"), False),
    "or with an unknown one before": (body("return bool(anything() or x is None)"), True),
    "unknown beside what is known": (body("y = [anything(), 1]", "return y[1]"), 1),
    "what is handed nothing it could change": (body("anything(1, 'a')", "return 1"), 1),
    "a function that cannot be read through": (
        body("g()", "return 1", head=["def g():", "    while True:", "        pass"]),
        1,
    ),
}


@pytest.mark.parametrize(("source", "expected"), KNOWN.values(), ids=KNOWN)
def test_gives_what_python_gives(evaluate: Evaluate, source: str, expected: object) -> None:
    assert evaluate(source) == expected


@pytest.mark.parametrize(
    "source", [source for source, _ in KNOWN.values() if not any(w in source for w in ("release", "anything", "while"))]
)
def test_python_gives_the_same(evaluate: Evaluate, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIST", "12.0 12.1")
    names: dict[str, Any] = {}
    exec(source, names)
    assert evaluate(source) == names["f"]()


NOT_KNOWN = {
    "a branch on what is not known": (body("y = 1", "if anything():", "    y = 2", "return y"), ":3: `anything()`"),
    "a loop over it": (body("for y in anything():", "    pass"), ":2: what is in `anything()`"),
    "a list handed to it": (body("y = [1]", "anything(y)", "return y"), ":3: what `anything` does"),
    "a method that is not known": (body("y = [1]", "y.clear()", "return y"), ":3: what `y.clear` does"),
    "a list that it is added to": (body("y = [1]", "y += anything()", "return y"), ":3: what is in `anything()`"),
    "a function within": (
        body("y = [1]", "def g():", "    y.append(2)", "g()", "return y"),
        ":5: what `g` does",
    ),
    "what may swallow an exception": (
        body("with anything():", "    raise ValueError('no')", "return 1"),
        "what becomes of ValueError: no",
    ),
    "an object of the tree's own that decides": (
        body("if C():", "    return 1", head=["class C:", "    pass"]),
        "`C()` decides",
    ),
    "a loop without an end": (body("while True:", "    pass"), ":2: what `while True:` does"),
    "calls without an end": (body("return f([1])"), "too deep"),
    "steps without an end": (
        body("for a in range(9999):", "    for b in range(9999):", "        pass"),
        "more than",
    ),
    "a text without an end": (body("y = 'a'", "for i in range(99):", "    y = y + y"), "longer than"),
    "a global that changes": (
        body("g()", "return y", head=["y = 1", "def g():", "    global y", "    y = 2"]),
        "what `global y` does",
    ),
    "a decorator": (body("return 1", head=["@anything"]), "defines no function f"),
    "no such function": ("y = 1\n", "defines no function f"),
    "what is no Python": ("def f(:\n", "cannot be read"),
}


@pytest.mark.parametrize(("source", "why"), NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_stops_where_it_would_have_to_guess(evaluate: Evaluate, source: str, why: str) -> None:
    with pytest.raises(NotKnown) as refused:
        evaluate(source)
    assert "jit/one.py" in str(refused.value)
    assert why in str(refused.value)


def test_what_is_not_known_stays_so(evaluate: Evaluate) -> None:
    assert evaluate(body("return anything().else_[0] + 'a'")) is UNKNOWN
    assert evaluate(body("return y", head=["y = 1", "y = 2"])) is UNKNOWN
    assert evaluate(body("return y", head=["if 1:", "    y = 1"])) is UNKNOWN
    assert evaluate(body("return y", head=["y = [1]", "if anything:", "    y.append(2)"])) is UNKNOWN


def test_the_trees_own_exception_is_told_with_its_type(evaluate: Evaluate) -> None:
    with pytest.raises(Raised, match="RuntimeError: needs 13, not …"):
        evaluate(body("raise RuntimeError(f'needs {13}, not {anything()}')"))
    with pytest.raises(Raised, match="ValueError"):
        evaluate(body("a, b = '12.0a;12.1a'.split('.')"))


def test_follows_names_through_the_files_of_the_package(evaluate: Evaluate) -> None:
    source = body("return flags + C(3).g(1)", head=["from ..core import C", "from . import flags"])
    core = (
        "class C:\n    BOTH = ['d']\n    def __init__(self, n):\n        self.n = n\n"
        "    @staticmethod\n    def h(n):\n        return str(n)\n"
        "    def g(self, m, *, k=2):\n        return [self.h(self.n + m + k)] + self.BOTH\n"
    )
    others = {"jit/__init__.py": "from .two import flags\n", "jit/two.py": "flags = ['a'] + ['b']\n", "core.py": core}
    assert evaluate(source, others) == ["a", "b", "6", "d"]


def test_nothing_of_it_runs(evaluate: Evaluate, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    head = ["from pathlib import Path", f"Path({str(trap)!r}).touch()", f"open({str(trap)!r}, 'w')"]
    run = [f"open({str(trap)!r}, 'w')", f'exec("open({str(trap)!r}, chr(119))")', "().__class__.__mro__", "return 1"]
    assert evaluate(body(*run, head=head)) == 1
    assert not trap.exists()
