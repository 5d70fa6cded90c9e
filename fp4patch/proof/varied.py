"""Names that the program of a condition varies: what it runs is then seen with more than one value of each.

A name is varied where the program gives it, as the key of a dictionary or the keyword of a call, a value that is made
of a variable with several values. That it stands in a message, in a comment or beside a constant varies nothing.
"""

import ast
from collections.abc import Collection, Iterator

_UNNAMED = frozenset(("environ", "getenv"))
"""A question for a variable of the environment that the text does not name: any of them may decide."""
_Values = list[ast.expr] | None
"""Expressions that a binding of a variable takes its values from; None: several values, of a loop."""


def varied(program: str) -> set[str]:
    """Return the names that a Python program varies; none of one that is not understood."""
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return set()
    moving = _moving(tree)
    return {name for name, value in _given(tree) if _reads(value, moving)} - _UNNAMED


def _given(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name to which the program gives a value that others ask for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(node, ast.Call):
            yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)


def _moving(tree: ast.Module) -> set[str]:
    """Return the variables with several values: of loops, parameters to which calls give several, and what is made of
    these. A variable that is also bound to one value elsewhere is none of them."""
    bindings: dict[str, list[_Values]] = {}
    for name, values in _bindings(tree):
        bindings.setdefault(name, []).append(values)
    moving: set[str] = set()
    while more := {
        name
        for name, each in bindings.items()
        if name not in moving and all(_are_several(values, moving) for values in each)
    }:
        moving |= more
    return moving


def _are_several(values: _Values, moving: Collection[str]) -> bool:
    return values is None or len({*map(ast.dump, values)}) > 1 or any(_reads(value, moving) for value in values)


def _reads(value: ast.expr, names: Collection[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(value))


def _bindings(tree: ast.Module) -> Iterator[tuple[str, _Values]]:
    """Yield each binding of a variable."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            values = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List | ast.Set) else None
            yield from ((name, values) for name in _names(node.target))
        elif isinstance(node, ast.Assign):
            yield from ((name, [node.value]) for target in node.targets for name in _names(target))
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value:
            yield from ((name, [node.value]) for name in _names(node.target))
        elif isinstance(node, ast.Lambda):
            yield from ((parameter.arg, []) for parameter in _parameters(node.args))
        elif isinstance(node, ast.FunctionDef):
            own = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == node.name]
            yield from _arguments(node.args, own)


def _names(target: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def _parameters(of: ast.arguments) -> list[ast.arg]:
    return [*of.posonlyargs, *of.args, *of.kwonlyargs]


def _arguments(of: ast.arguments, calls: list[ast.Call]) -> Iterator[tuple[str, _Values]]:
    """Yield the parameters of a function, each with what the calls of it give, or its default where one gives nothing.

    A parameter whose default is a variable of its own name, as in a loop, is that variable.
    """
    by_place = [*of.posonlyargs, *of.args]
    defaults = dict(zip([one.arg for one in reversed(by_place)], reversed(of.defaults), strict=False))
    defaults |= {one.arg: value for one, value in zip(of.kwonlyargs, of.kw_defaults, strict=True) if value}
    places = {one.arg: place for place, one in enumerate(by_place)}
    for name in (one.arg for one in _parameters(of)):
        default = defaults.get(name)
        if isinstance(default, ast.Name) and default.id == name and not calls:
            continue
        values = [] if calls or default is None else [default]
        for call in calls:
            given = [keyword.value for keyword in call.keywords if keyword.arg == name]
            given += call.args[places[name] : places[name] + 1] if name in places else []
            values += given or ([default] if default else [])
        yield name, values
