"""Python for the edit ``replace``: code is an expression."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from fp4patch.edits.effect import Case, Results
from fp4patch.edits.given_values import GivenValues
from fp4patch.edits.operation import Change
from fp4patch.edits.python_source import Module, Substitution, meaning, read_expression

_LISTS = (ast.List, ast.Tuple, ast.Set)


@dataclass(frozen=True)
class ArgumentList:
    """What a call gets as one of its arguments, if it is meant to be a list, a tuple or a set."""

    line: int
    text: str
    """The expression, as Python prints it."""
    items: tuple[str, ...]
    """Its items as Python prints them, also of a name that the module sets once; none if it is something else."""
    is_written_out: bool

    def longer(self, item: str) -> str:
        """Return the expression with an item behind its own; empty if it has none, or is no list or set."""
        return f"{self.text[:-1]}, {item}{self.text[-1]}" if self.is_written_out and self.items else ""


class PythonCode:
    """A module. ``within``: the name of a function; only in functions of that name is searched."""

    def __init__(self, module: Module, within: str) -> None:
        self._module = module
        self._within = within
        self._nodes = module.nodes(within)

    def is_about(self, about: str, /) -> bool:
        """Tell whether the name occurs, and the function is here."""
        return bool(self._nodes) and about in self._module.names

    def lines(self, pattern: str, /) -> list[int]:
        """Return the line of each expression that means the same."""
        return sorted(node.lineno for node in self._module.same(self._within, pattern))

    def conditions(self, cases: Sequence[Case], /) -> Iterator[Results]:
        """Yield the conditions on the expressions of the cases."""
        named = [node for node in self._nodes if getattr(node, "name", "") == self._within]
        for root in named if self._within else [self._module.tree]:
            values = GivenValues([(read_expression(name), [case[name] for case in cases]) for name in cases[0]])
            yield from values.conditions(root)

    def lists(self, call: str, argument: str, /) -> list[ArgumentList]:
        """Return what the calls of a function or method with that name get as an argument, in their order."""
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        named = [n for n in calls if call in (getattr(n.func, "id", ""), getattr(n.func, "attr", ""))]
        values = [key.value for node in named for key in node.keywords if key.arg == argument]
        return [
            ArgumentList(
                v.lineno, ast.unparse(v), tuple(map(ast.unparse, self._items(v))), isinstance(v, ast.List | ast.Set)
            )
            for v in sorted(values, key=lambda value: value.lineno)
        ]

    def _items(self, value: ast.expr) -> Sequence[ast.expr]:
        if isinstance(value, ast.Name):
            stores = [n for n in self._module.nodes("") if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            written = [s for s in self._module.tree.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
            own = [s.value for s in written if isinstance(s.targets[0], ast.Name) and s.targets[0].id == value.id]
            value = own[0] if len(own) == [n.id for n in stores].count(value.id) == 1 else value
        return value.elts if isinstance(value, _LISTS) else ()

    def nearest(self, pattern: str, /) -> tuple[int | None, str]:
        """Return the line of the expression that agrees longest, from its outside in, and where it differs."""
        wanted = list(_steps(read_expression(pattern)))
        best = 0
        place = None
        found = ""
        for node in self._nodes:
            if not isinstance(node, ast.expr) or type(node) is not type(wanted[0].node):
                continue
            steps = list(_steps(node))
            agree = [here.what == there.what for here, there in zip(steps, wanted, strict=False)]
            alike = len(list(takewhile(bool, agree)))
            if alike > best:
                best, place = alike, node.lineno
                here, there = (_written(side[alike:]) for side in (steps, wanted))
                found = f"`{here}` where `{there}` was expected"
        return place, found

    def contains(self, whole: str, part: str, /) -> bool:
        """Tell whether an expression has another one in it."""
        return meaning(part) in map(ast.dump, ast.walk(read_expression(whole)))

    def replaced(self, find: str, replace: str, /) -> Change:
        """Return the change of each expression that means the same."""
        lines = tuple(sorted(set(self.lines(find))))
        return Change([Substitution(find, replace, self._within, lines)], lines)


class _Step(NamedTuple):
    """A node in the order in which a tree is written, and what it is but for the nodes in it."""

    node: ast.AST
    what: object


def _steps(node: ast.AST) -> Iterator[_Step]:
    parts = [value for _, value in ast.iter_fields(node) if not isinstance(value, ast.AST | list)]
    yield _Step(node, (type(node), *map(repr, parts)))
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context):
            yield from _steps(child)


def _written(steps: Sequence[_Step]) -> str:
    """Return the source of the first node; a mark for one that has none, such as an operator."""
    if not steps:
        return "nothing more"
    node = steps[0].node
    return ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
