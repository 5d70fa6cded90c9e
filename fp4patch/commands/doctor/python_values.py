"""Values of names of a tree's Python during the evaluation of its text, and the known facts about a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class NotKnown(Exception):  # noqa: N818 - not an error: an answer
    """The result of the text is not known without running it; the message states the place and the reason."""


class Raised(Exception):  # noqa: N818 - the tree's error, not one of ours
    """The tree's own exception: its type's name and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind


class Unknown:
    """The one value of which nothing is known."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


class Local(Unknown):
    """A function within a function: it may change what is around it."""


LOCAL = Local()


@dataclass(frozen=True)
class World:
    """Model of everything outside the tree."""

    modules: Mapping[str, SimpleNamespace]
    """Modules by the name that ``import`` gives; what a namespace does not have is UNKNOWN."""
    functions: Mapping[str, Callable[..., Any]]
    """In the place of the tree's functions of these names."""


@dataclass(frozen=True, eq=False)
class Module:
    """A file."""

    path: str
    bindings: Mapping[str, ast.stmt | None]
    """Statement that binds each global name; None if there is more than one, or it is not at the top level."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a file, or a method of an object."""

    node: ast.FunctionDef
    module: Module
    instance: Instance | None = None


@dataclass(frozen=True, eq=False)
class Class:
    """A class without bases and decorators."""

    node: ast.ClassDef
    module: Module


@dataclass(eq=False)
class Instance:
    """An object of such a class."""

    of: Class
    attributes: dict[str, Any] = field(default_factory=dict)


def bindings(tree: ast.Module) -> dict[str, ast.stmt | None]:
    """Return the statement that binds each global name of a file."""
    found: dict[str, ast.stmt | None] = {}

    def see(statement: ast.stmt, *, top: bool) -> None:
        for name in bound_by(statement):
            found[name] = statement if top and name not in found else None
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in ast.iter_child_nodes(statement):
                for below in ast.walk(inner):
                    if isinstance(below, ast.stmt):
                        for name in bound_by(below):
                            found[name] = None

    for statement in tree.body:
        see(statement, top=True)
    for name in _changed_by(tree):
        if not isinstance(found.get(name), ast.Import | ast.ImportFrom):
            found[name] = None
    return found


def _changed_by(tree: ast.Module) -> Iterable[str]:
    """Global names on which a method is called for what it does, when the module is imported."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        match node := pending.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                yield name
        pending += ast.iter_child_nodes(node)


def bound_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign):
        targets: Iterable[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.For):
        targets = [statement.target]
    else:
        return []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


_HARMLESS = frozenset({"staticmethod", "functools.cache", "cache", "functools.lru_cache", "lru_cache"})
"""Decorators that do not change what a function gives."""


def undecorated(node: ast.FunctionDef) -> bool:
    """True if a call runs the function itself: it has no decorators, or harmless ones."""
    return all(ast.unparse(d.func if isinstance(d, ast.Call) else d) in _HARMLESS for d in node.decorator_list)


def is_static(node: ast.FunctionDef) -> bool:
    """True if it is a static method."""
    return any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)


def opaque(value: Any) -> bool:
    """Return whether Python's result would depend on unknown facts: the value is, or holds, something else than plain
    data."""
    if isinstance(value, list | tuple | set):
        return any(opaque(part) for part in value)
    if isinstance(value, dict):
        return any(opaque(part) for part in (*value.keys(), *value.values()))
    return isinstance(value, Unknown | Instance | SimpleNamespace)


def truth_of(value: Any) -> bool | None:
    """Return the truth value of a condition; None if it is not known."""
    return None if isinstance(value, Unknown | Instance) else bool(value)


def plain_data(value: Any) -> bool:
    """Return whether Python prints it in the same way as the tree's own value."""
    if isinstance(value, list | tuple):
        return all(plain_data(part) for part in value)
    return value is None or isinstance(value, str | int)
