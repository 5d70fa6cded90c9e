"""The condition of CMake's ``if`` as Python's ``ast`` has it: cmake-commands(7) orders it as tests, NOT, AND, OR.

A variable is a name, a text with references a formatted one. What a comparison makes of its sides is a call around
them: ``numeric_cast``, ``version_cast``, ``list_cast``; ``MATCHES`` and the tests of one side are calls by their name.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fp4patch.edits.cmake import Argument, Form, constant
from fp4patch.edits.gpu_condition import meant

# Example: ${CUDA_ARCHS}
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CASTS = {"": "numeric_cast", "STR": "", "VERSION_": "version_cast"}
_ORDERS: Mapping[str, type[ast.cmpop]] = {
    "EQUAL": ast.Eq,
    "LESS": ast.Lt,
    "LESS_EQUAL": ast.LtE,
    "GREATER": ast.Gt,
    "GREATER_EQUAL": ast.GtE,
}
_COMPARES = {cast + order: (made, order) for cast, made in _CASTS.items() for order in _ORDERS}
_ONE_SIDE = frozenset(("COMMAND", "POLICY", "TARGET", "TEST", "EXISTS", "IS_DIRECTORY", "IS_ABSOLUTE", "DEFINED"))


class Condition(NamedTuple):
    """A condition. ``is_whole``: nothing is written behind it that was not read."""

    tree: ast.expr
    is_whole: bool


def read_condition(arguments: Sequence[Argument]) -> Condition:
    """Return the condition that the arguments of ``if``, ``elseif`` or ``while`` are."""
    reader = _Reader(arguments)
    return Condition(reader.either(), reader.at == len(arguments))


class _Reader:
    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.arguments = arguments
        self.at = 0

    def word(self) -> str:
        """Return the next argument, if it can be an operator."""
        argument = self.arguments[self.at] if self.at < len(self.arguments) else None
        return argument.text if argument and argument.form in (Form.UNQUOTED, Form.PARENTHESIS) else ""

    def take(self, word: str) -> bool:
        found = self.word() == word
        self.at += found
        return found

    def either(self) -> ast.expr:
        values = [self.both()]
        while self.take("OR"):
            values.append(self.both())
        return ast.BoolOp(ast.Or(), values) if len(values) > 1 else values[0]

    def both(self) -> ast.expr:
        values = [self.one()]
        while self.take("AND"):
            values.append(self.one())
        return ast.BoolOp(ast.And(), values) if len(values) > 1 else values[0]

    def one(self) -> ast.expr:
        if self.take("NOT"):
            return ast.UnaryOp(ast.Not(), self.one())
        if self.take("("):
            inner = self.either()
            self.take(")")
            return inner
        if (test := self.word()) in _ONE_SIDE and self.at + 1 < len(self.arguments):
            self.at += 1
            return _call(test, _text(self._next()))
        argument = self._next()
        return self._compared(_side(argument)) or _truth(argument)

    def _compared(self, left: ast.expr) -> ast.expr | None:
        """Return the comparison of a text with what follows; None if no operator does."""
        operator = self.word()
        if operator == "MATCHES":
            self.at += 1
            return _call(operator, left, _text(self._next()))
        if operator == "IN_LIST":
            self.at += 1
            return ast.Compare(left, [ast.In()], [_call("list_cast", _side(self._next()))])
        if operator not in _COMPARES:
            return None
        self.at += 1
        cast, order = _COMPARES[operator]
        sides = [_call(cast, side) if cast else side for side in (left, _side(self._next()))]
        return ast.Compare(sides[0], [_ORDERS[order]()], sides[1:])

    def _next(self) -> Argument | None:
        argument = self.arguments[self.at] if self.at < len(self.arguments) else None
        self.at += 1
        return argument


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), [*arguments], [])


def _truth(argument: Argument | None) -> ast.expr:
    """Return what an argument alone asks: a variable, or whether a text is one of the constants that are true."""
    known = constant(argument.text) if argument else None
    if known is not None:
        return ast.Constant(known)
    is_text = argument is not None and argument.form is not Form.UNQUOTED
    return _call("is_true", _text(argument)) if is_text else _side(argument)


def _side(argument: Argument | None) -> ast.expr:
    """Return a side of a comparison: a word without quotes may be the name of a variable."""
    if argument and argument.form is Form.UNQUOTED and _IDENTIFIER.fullmatch(argument.text):
        return ast.Constant(argument.text) if meant(argument.text) is not None else ast.Name(argument.text)
    return _text(argument)


def _text(argument: Argument | None) -> ast.expr:
    """Return a text with the values of the variables in it."""
    if argument is None:
        return ast.Name("nothing")
    if argument.form is Form.BRACKET:
        return ast.Constant(argument.text)
    literals = _REFERENCE.split(argument.text)  # every second one is a name
    if any("${" in literal or "$ENV{" in literal for literal in literals[::2]):
        return ast.Name(re.sub(r"\W", "_", argument.text))
    if literals[::2] == ["", ""]:
        return ast.Name(literals[1])
    written: list[ast.expr] = [ast.Constant(_ESCAPE.sub(r"\1", literal)) for literal in literals[::2]]
    if len(written) == 1:
        return written[0]
    names: list[ast.expr] = [ast.FormattedValue(ast.Name(name), -1) for name in literals[1::2]]
    values = [value for pair in zip(written, [*names, None], strict=True) for value in pair if value is not None]
    return ast.JoinedStr(values)
