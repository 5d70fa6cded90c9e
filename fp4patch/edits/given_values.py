"""Conditions on names whose values are given, in expressions as Python's ``ast`` has them: C++ and CMake are read so,
too. What is not known is said of each result, never guessed."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fp4patch.edits.cmake import constant
from fp4patch.edits.effect import Results

_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: _natural(a) // _natural(b),
    ast.Mod: lambda a, b: _natural(a) % _natural(b),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: lambda a, b: a << (b & 63),
    ast.RShift: lambda a, b: a >> (b & 63),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a == b,
    ast.IsNot: lambda a, b: a != b,
}
_SIGNS: Mapping[type[ast.AST], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
    "int": int,
    "range": range,
    "set": set,
    "tuple": tuple,
    "bool": bool,
    # Of CMake, as `cmake_expression` names them.
    "numeric_cast": float,
    "version_cast": lambda text: tuple(int(part) for part in text.split(".")),
    "list_cast": lambda text: text.split(";"),
    "is_true": lambda text: _is_number(text) if constant(text) is None else constant(text),
    "MATCHES": lambda text, pattern: re.search(pattern, text) is not None,
}
_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, re.error)


def _is_number(text: str) -> bool:
    """Tell whether a text is a number other than 0, which is true in CMake as the constants are."""
    return re.fullmatch(r"[-+]?\d+(?:\.\d*)?", text) is not None and float(text) != 0


class CMakeText(str):
    """The value of a variable of CMake, which ``if`` takes for true or false as CMake does."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Tell whether ``if`` of a variable with this value holds."""
        return self != "" and constant(self) is not False and not self.upper().endswith("-NOTFOUND")


def _natural(number: int) -> int:
    if number < 0:
        raise ArithmeticError  # Python rounds down, C++ toward zero
    return number


class _UnknownError(Exception):
    """The value of an expression is not known."""


def _known(value: Any) -> Any:
    if value is None:
        raise _UnknownError
    return value


class GivenValues:
    """Expressions with their values, one for each case. A variable that is set once from them is known, too."""

    def __init__(self, given: Sequence[tuple[ast.expr, Sequence[Any]]]) -> None:
        self._given = [name for name, _ in given]
        self._known = list(given)
        self._cases = range(len(given[0][1]))

    def conditions(self, node: ast.AST) -> Iterator[Results]:
        """Yield what each condition on the names comes to, in the order in which they are written."""
        if self._is_condition(node):
            yield self.results(node)
            return
        for child in ast.iter_child_nodes(node):
            yield from self.conditions(child)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from self._set(target, node.value)

    def _is_condition(self, node: ast.AST) -> bool:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Call(func=ast.Name(id="switch")):
                return self._mentions(node)
            case ast.Match():
                return self._mentions(node.subject)
        values = self._values(node)
        return values is not None and isinstance(values[0], bool)

    def _values(self, node: ast.AST) -> Sequence[Any] | None:
        is_read = not isinstance(getattr(node, "ctx", None), ast.Store)
        return next((values for name, values in self._known if is_read and _same(name, node)), None)

    def _mentions(self, node: ast.AST) -> bool:
        return any(self._values(part) is not None for part in ast.walk(node))

    def _set(self, target: ast.expr, value: ast.expr) -> Iterator[Results]:
        if any(_same(name, target) for name in self._given):
            return  # its value is that of the case
        is_again = any(_same(name, target) for name, _ in self._known)
        if not is_again and not self._mentions(value):
            return
        results = self.results(value)
        if is_again or not isinstance(target, ast.Name) or None in results:
            yield [None]  # what it is later on is not known
        else:
            self._known.append((target, results))

    def results(self, node: ast.AST) -> list[Any]:
        """Return the value of an expression in each case; None where it is not known."""
        return [self._result(node, case) for case in self._cases]

    def _result(self, node: ast.AST, case: int) -> Any:
        try:
            return self._value(node, case)
        except (_UnknownError, *_ERRORS):
            return None

    def _value(self, node: ast.AST, case: int) -> Any:  # noqa: PLR0911 - one for each kind of expression
        """Return the value of an expression. _UnknownError, or an error of Python's own: it is not known."""
        if (values := self._values(node)) is not None:
            return _known(values[case])

        def value(part: ast.AST) -> Any:
            return self._value(part, case)

        match node:
            case ast.Constant():
                return node.value
            case ast.Tuple() | ast.List() | ast.Set():
                return tuple(map(value, node.elts))
            case ast.JoinedStr():
                return "".join(map(value, node.values))
            case ast.FormattedValue(conversion=-1, format_spec=None):
                return str(value(node.value))
            case ast.UnaryOp():
                return _SIGNS[type(node.op)](value(node.operand))
            case ast.BinOp() if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](value(node.left), value(node.right))
            case ast.BoolOp():
                return self._both_or_either(node, case)
            case ast.Compare() if all(type(op) in _BINARY for op in node.ops):
                sides = [value(side) for side in (node.left, *node.comparators)]
                rows = zip(sides, node.ops, sides[1:], strict=False)
                return all(_BINARY[type(op)](left, right) for left, op, right in rows)
            case ast.IfExp():
                return value(node.body if value(node.test) else node.orelse)
            case ast.Subscript():
                return value(node.value)[value(node.slice)]
            case ast.Call(func=ast.Name(id=called)) if called in _CALLS and not node.keywords:
                return _CALLS[called](*map(value, node.args))
        raise _UnknownError

    def _both_or_either(self, node: ast.BoolOp, case: int) -> bool:
        """One part decides whatever the others are."""
        decides = isinstance(node.op, ast.Or)
        results = [self._result(part, case) for part in node.values]
        if any(result is not None and bool(result) is decides for result in results):
            return decides
        if None in results:
            raise _UnknownError
        return not decides


def _same(one: object, other: object) -> bool:
    """Tell whether two expressions are written alike, wherever that is."""
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same, one, other))
    if type(one) is not type(other):
        return False
    if not isinstance(one, ast.AST):
        return one == other
    fields = (field for field in one._fields if field != "ctx")
    return all(_same(getattr(one, field, None), getattr(other, field, None)) for field in fields)
