"""Texts that a Python module puts together: by ``+``, ``%``, ``format``, ``join`` and f-strings."""

import ast
import re
from collections.abc import Iterator

from fp4patch.edits.python_source import Module

UNKNOWN = "\0"
"""In the place of what is not written in the module."""


def texts(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the value of each text that is put together."""
    names: dict[str, ast.expr] = {}
    for node in module.nodes(""):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = node.value
    for node in module.nodes(""):
        if isinstance(node, ast.BinOp | ast.JoinedStr | ast.Call | ast.Constant):
            value = _text(node, names, 20)
            if value is not None and value != UNKNOWN:
                yield node.lineno, value


def _text(node: ast.AST, names: dict[str, ast.expr], depth: int) -> str | None:  # noqa: PLR0911 - a case a line
    """Return the value of an expression; None if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part, names, depth) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_text(side, names, depth) for side in (node.left, node.right)]
        return None if sides == [None, None] else "".join(UNKNOWN if side is None else side for side in sides)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        form = _text(node.left, names, depth)
        values = iter(node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])
        return None if form is None else re.sub(r"%[^a-zA-Z%]*[a-zA-Z]", lambda _: _next(values, names, depth), form)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = _text(node.func.value, names, depth)
        if owner is not None and node.func.attr == "format":
            values = iter(node.args)
            return re.sub(r"\{[^{}]*\}", lambda _: _next(values, names, depth), owner)
        if (
            owner is not None
            and node.func.attr == "join"
            and node.args
            and isinstance(node.args[0], ast.List | ast.Tuple)
        ):
            return owner.join(_piece(part, names, depth) for part in node.args[0].elts)
    if isinstance(node, ast.Name) and depth and node.id in names:
        return _text(names[node.id], names, depth - 1)
    return None


def _next(values: Iterator[ast.expr], names: dict[str, ast.expr], depth: int) -> str:
    value = next(values, None)
    return UNKNOWN if value is None else _piece(value, names, depth)


def _piece(node: ast.AST, names: dict[str, ast.expr], depth: int) -> str:
    node = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value)
    value = _text(node, names, depth)
    return UNKNOWN if value is None else value
