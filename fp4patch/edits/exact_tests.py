"""Search for tests for exactly SM120 that no edit is for: in C++ by tokens, in Python by the syntax tree.

Some select tuning that was measured on SM120, others shut SM121 out, and no program can tell them apart: they are
named. A test that SM121 passes by the same condition is not one of them.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from fp4patch.edits.cxx import Source, lex
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Look, Place

BECAUSE = "a test for exactly SM120 that no edit of this patch is for"
LANGUAGES = ("c++", "python")
_SM120, _SM121 = ("120", "1200"), ("121", "1210")
_SUBJECT = re.compile(r"(?i)capab|arch|major|minor|\bsm|\bcc\b|version")
"""What a Python comparison or a ``switch`` is about, where it is about a GPU."""
_MAJOR = re.compile(r"major[\w.() >-]*= = 12\b|\b12 = = [\w.() >-]*major")
_MINOR = re.compile(r"minor[\w.() >-]*(?:= = 0\b|< 1\b)|\b0 = = [\w.() >-]*minor|! [\w.() >-]*minor")
_CXX = re.compile(
    rb"[=!<][=\s(]*\b12(?:00?|10?)\b|\b12(?:00?|10?)\b[\s)]*[=!>]|\bcase\s+1200?\b|major[^;{}]{0,200}\b12\b|\b12\b[^;{}]{0,200}major"
)
_TWELVE = re.compile(rb"12(?<!\w12)(?:00?|10?)?\b").search
"""Every such test has one of these numbers. A pattern that begins with letters is searched ten times as fast."""
_PYTHON = re.compile(rb"capab|arch|major").search
_NUMBER = re.compile(rb"\b12(?:0|1|\s*,\s*0)\b|\b12\b[^\n]{0,80}minor|minor[^\n]{0,80}\b12\b").search


def may_have(language: str, gates: Set[str]) -> Look:
    """Return the quick look for files of a language with such a test. ``gates``: templates that are one."""
    names = [gate.encode() for gate in gates]
    if language == "python":
        return lambda content: _TWELVE(content) and _PYTHON(content) and _NUMBER(content)
    return lambda content: any(name in content for name in names) or (_TWELVE(content) and _CXX.search(content))


def places(language: str, gates: Set[str], text: str) -> list[Place]:
    """Return each such test, or the first line of a text that cannot be read. A gate has no reason to remain."""
    try:
        python = language == "python"
        found = _in_python(ast.parse(text.removeprefix("\ufeff"))) if python else _in_cxx(lex(text), gates)
        written = text.split("\n")
        return [
            Place(line, " ".join(written[line - 1].split())[:200], "" if gate else BECAUSE)
            for line, gate in sorted(set(found))
        ]
    except (LexError, SyntaxError, ValueError, RecursionError) as error:
        return [Place(1, f"{type(error).__name__}: {error}", "it cannot be read, and may test for exactly SM120")]


# --- C++ --------------------------------------------------------------------------------------------------------------


def _in_cxx(source: Source, gates: Set[str]) -> Iterator[tuple[int, bool]]:
    wanted = {*_SM120, *_SM121, "12", *gates}
    for at, token in enumerate(source.tokens):
        if token.text in wanted and source.is_live(token.start) and _is_exact(source, at, gates):
            yield token.line, token.text in gates


def _is_exact(source: Source, at: int, gates: Set[str]) -> bool:
    words, word = source.words, source.words[at]
    if word in gates:
        return words[at + 1 : at + 2] == ("<",)
    statement = _statement(source, at)
    if word == "12":
        text = " ".join(statement)
        return bool(_MAJOR.search(text) and _MINOR.search(text))
    first, end = at, at + 1
    while first and words[first - 1] == "(":
        first -= 1
    while words[end : end + 1] == (")",):
        end += 1
    left, right = "".join(words[max(0, first - 2) : first]), "".join(words[end : end + 2])
    if word in _SM121:
        return (left[-1:] == "<" and left != "<<") or (right[:1] == ">" and right not in (">=", ">>"))
    if set(_SM121) & set(statement):
        return False
    case = words[at - 1] == "case" and bool(_SUBJECT.search(_switched(words, at)))
    return case or left in ("==", "!=", "<=") or right in ("==", "!=", ">=")


def _statement(source: Source, at: int) -> Sequence[str]:
    """Return the words around one, as far as its directive, or the marks that end statements."""
    tokens, directive = source.tokens, source.tokens[at].directive

    def ends(index: int) -> bool:
        return not 0 <= index < len(tokens) or tokens[index].directive != directive or tokens[index].text in ";{}"

    first = last = at
    while not ends(first - 1):
        first -= 1
    while not ends(last + 1):
        last += 1
    return source.words[first : last + 1]


def _switched(words: Sequence[str], at: int) -> str:
    """Return the beginning of what the ``switch`` around a ``case`` is about."""
    switch = next((index for index in range(at, -1, -1) if words[index] == "switch"), None)
    return "" if switch is None else " ".join(words[switch + 1 : switch + 12]).partition("{")[0]


# --- Python -----------------------------------------------------------------------------------------------------------


def _in_python(tree: ast.AST) -> Iterator[tuple[int, bool]]:
    with_sm121: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and _has(node, 121):
            with_sm121 |= {id(part) for part in ast.walk(node)}
        if id(node) not in with_sm121 and _is_test(node):
            yield node.lineno, False  # type: ignore[attr-defined]  # each of these has one


def _is_test(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        return name == "is_device_capability" and bool(node.args) and _is(node.args[0], 120)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        text = " ".join(re.findall(r"\w+|[^\w\s]", ast.unparse(node)))
        return bool(_MAJOR.search(text) and _MINOR.search(text))
    if isinstance(node, ast.Compare) and _SUBJECT.search(ast.unparse(node)):
        operands = [node.left, *node.comparators]
        return any(
            _COMPARED[type(op)](*operands[at : at + 2]) for at, op in enumerate(node.ops) if type(op) in _COMPARED
        )
    return False


def _is(node: ast.AST, number: int) -> bool:
    """Tell whether an expression is a capability: 120, 1200 or (12, 0)."""
    if isinstance(node, ast.Constant):
        return node.value in (number, number * 10)
    return isinstance(node, ast.Tuple) and ast.unparse(node) == f"({number // 10}, {number % 10})"


def _has(node: ast.AST, number: int) -> bool:
    return any(_is(part, number) for part in ast.walk(node))


def _equal(left: ast.expr, right: ast.expr) -> bool:
    return _is(left, 120) or _is(right, 120)


def _among(_left: ast.expr, right: ast.expr) -> bool:
    return _has(right, 120) and not _has(right, 121)


_COMPARED: Mapping[type[ast.cmpop], Callable[[ast.expr, ast.expr], bool]] = {
    ast.Eq: _equal,
    ast.NotEq: _equal,
    ast.In: _among,
    ast.NotIn: _among,
    ast.Lt: lambda _, right: _is(right, 121),
    ast.LtE: lambda _, right: _is(right, 120),
    ast.Gt: lambda left, _: _is(left, 121),
    ast.GtE: lambda left, _: _is(left, 120),
}
