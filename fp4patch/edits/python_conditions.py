"""Conditions of Python on names whose values are given."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fp4patch.edits.effect import Case, Results
from fp4patch.edits.python_source import meaning

_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
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
_CALLS: Mapping[str, Callable[..., Any]] = {"int": int, "range": range, "set": set, "tuple": tuple, "bool": bool}
_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError)


class _UnknownError(Exception):
    """The value of an expression is not known."""


def conditions(roots: Sequence[ast.AST], cases: Sequence[Case]) -> Iterator[Results]:
    """Yield what each condition on the expressions comes to in each case, in some functions or a module."""
    known = [{meaning(name): value for name, value in case.items()} for case in cases]
    given = {*known[0]}
    for root in roots:
        yield from _below(root, [dict(values) for values in known], given)


def _below(node: ast.AST, known: Sequence[dict[str, Any]], given: set[str]) -> Iterator[Results]:
    """Yield the conditions in a node, in the order in which they are written."""
    if _is_condition(node, known[0]):
        yield [_result(node, values) for values in known]
        return
    for child in ast.iter_child_nodes(node):
        yield from _below(child, known, given)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not _mentions(node.value, known[0]):
            return
        results = [_result(node.value, values) for values in known]
        for target in targets:
            name = ast.dump(ast.Name(getattr(target, "id", ""), ast.Load()))
            if name in given:
                continue  # its value is that of the case
            if not isinstance(target, ast.Name) or name in known[0] or None in results:
                yield [None]  # what it is later on is not known
            else:
                for values, result in zip(known, results, strict=True):
                    values[name] = result


def _is_condition(node: ast.AST, known: Mapping[str, Any]) -> bool:
    compares = isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )
    return (compares and _mentions(node, known)) or isinstance(known.get(ast.dump(node)), bool)


def _mentions(node: ast.AST, known: Mapping[str, Any]) -> bool:
    return any(ast.dump(part) in known for part in ast.walk(node))


def _result(node: ast.AST, known: Mapping[str, Any]) -> object:
    try:
        return _value(node, known)
    except (_UnknownError, *_ERRORS):
        return None


def _value(node: ast.AST, known: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - one for each kind of expression
    """Return the value of an expression. _UnknownError, or an error of Python's own: it is not known."""
    if (name := ast.dump(node)) in known:
        return known[name]
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List() | ast.Set():
            return tuple(_value(item, known) for item in node.elts)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, known)
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, known)
        case ast.BinOp() if type(node.op) in _BINARY:
            return _BINARY[type(node.op)](_value(node.left, known), _value(node.right, known))
        case ast.BoolOp():
            return _both_or_either(node, known)
        case ast.Compare() if all(type(op) in _BINARY for op in node.ops):
            values = [_value(side, known) for side in (node.left, *node.comparators)]
            rows = zip(values, node.ops, values[1:], strict=False)
            return all(_BINARY[type(op)](left, right) for left, op, right in rows)
        case ast.IfExp():
            return _value(node.body if _value(node.test, known) else node.orelse, known)
        case ast.Subscript():
            return _value(node.value, known)[_value(node.slice, known)]
        case ast.Call(func=ast.Name(id=called)) if called in _CALLS and not node.keywords:
            return _CALLS[called](*(_value(argument, known) for argument in node.args))
    raise _UnknownError


def _both_or_either(node: ast.BoolOp, known: Mapping[str, Any]) -> bool:
    """One part decides whatever the others are."""
    decides = isinstance(node.op, ast.Or)
    results = [_result(part, known) for part in node.values]
    if any(result is not None and bool(result) is decides for result in results):
        return decides
    if None in results:
        raise _UnknownError
    return not decides
