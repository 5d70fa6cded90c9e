"""Python for the edit ``replace``: code is an expression, compared as a syntax tree.

Python's own parser finds the expressions, in f-strings too, and proves the result. LibCST replaces them, since it keeps
each byte beside them; it takes a while to load, and is loaded for a file that is changed alone.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from typing import Any

from fp4patch.edits.refusal import OTHERWISE, Refusal

BOM = "\ufeff"
_LISTS = (ast.List, ast.Tuple, ast.Set)


def read_expression(text: str) -> ast.expr:
    """Return the expression that a text is, in as many lines as it likes. SyntaxError or ValueError: it is none."""
    return ast.parse(f"({text}\n)", mode="eval").body


def meaning(expression: str) -> str:
    """Return the syntax tree of an expression as text."""
    return ast.dump(read_expression(expression))


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

    def __init__(self, text: str, within: str) -> None:
        self._mark = BOM * text.startswith(BOM)
        self._text = text.removeprefix(BOM)
        self._within = within
        self._tree = _parsed(self._text)
        functions = (n for n in ast.walk(self._tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        self._parts: Sequence[ast.AST] = [f for f in functions if f.name == within] if within else [self._tree]

    def is_about(self, about: str, /) -> bool:
        """Tell whether the name occurs, and the function is here."""
        return bool(self._parts) and any(about in _identifiers(node) for node in ast.walk(self._tree))

    def lines(self, pattern: str, /) -> list[int]:
        """Return the line of each expression that means the same."""
        wanted = read_expression(pattern)
        kind, dump = type(wanted), ast.dump(wanted)
        nodes = {id(node): node for part in self._parts for node in ast.walk(part) if isinstance(node, kind)}
        return sorted(node.lineno for node in nodes.values() if ast.dump(node) == dump)

    def lists(self, call: str, argument: str, /) -> list[ArgumentList]:
        """Return what the calls of a function or method with that name get as an argument, in their order."""
        calls = {id(n): n for part in self._parts for n in ast.walk(part) if isinstance(n, ast.Call)}.values()
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
            stores = [n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            written = [s for s in self._tree.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
            own = [s.value for s in written if isinstance(s.targets[0], ast.Name) and s.targets[0].id == value.id]
            value = own[0] if len(own) == [n.id for n in stores].count(value.id) == 1 else value
        return value.elts if isinstance(value, _LISTS) else ()

    def nearest(self, _pattern: str, /) -> tuple[int | None, str]:
        """Return no place: how near an expression comes is not measured."""
        return None, ""

    def contains(self, whole: str, part: str, /) -> bool:
        """Tell whether an expression has another one in it."""
        return meaning(part) in map(ast.dump, ast.walk(read_expression(whole)))

    def replaced(self, find: str, replace: str, /) -> tuple[str, list[int]]:
        """Return the text with each expression replaced that means the same, and their lines."""
        lines, intended = self.lines(find), ast.dump(self._tree)
        for part in map(ast.dump, self._parts):
            intended = intended.replace(part, part.replace(meaning(find), meaning(replace)))
        rows = [*StringIO(self._text, newline="")]
        for first, last in reversed(self._statements(lines, len(rows))):
            rows[first - 1 : last] = [_replaced("".join(rows[first - 1 : last]), find, replace, self._within)]
        text = "".join(rows)
        try:
            sound = ast.dump(_parsed(text)) == intended
        except SyntaxError:
            sound = False
        if not sound:
            raise Refusal(*OTHERWISE, lines[0])
        return self._mark + text, lines

    def _statements(self, lines: Sequence[int], rows: int) -> list[tuple[int, int]]:
        """Return first and last line of each statement of the module that has one of some lines: LibCST takes long for
        a whole module. All lines, where two statements share one."""
        heads = [[part.lineno, *(d.lineno for d in getattr(part, "decorator_list", ()))] for part in self._tree.body]
        spans = [(min(head), part.end_lineno or 0) for head, part in zip(heads, self._tree.body, strict=True)]
        if any(after[0] <= before[1] for before, after in pairwise(spans)):
            return [(1, rows)]
        return [(first, last) for first, last in spans if any(first <= line <= last for line in lines)]


def _replaced(text: str, find: str, replace: str, within: str) -> str:
    """Return the text with each ``find`` replaced by LibCST."""
    import libcst as cst  # noqa: PLC0415 - see above

    wanted, kind, new = meaning(find), type(cst.parse_expression(find)), cst.parse_expression(replace)

    class Put(cst.CSTTransformer):
        """Put the new expression in the place of each that means the same as the old one."""

        inside = 0 if within else 1

        def on_visit(self, node: cst.CSTNode) -> bool:
            self.inside += isinstance(node, cst.FunctionDef) and node.name.value == within
            return True

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            inside = self.inside
            self.inside -= isinstance(original_node, cst.FunctionDef) and original_node.name.value == within
            if not (inside and isinstance(original_node, kind)):
                return updated_node
            if meaning(cst.Module([]).code_for_node(original_node)) != wanted:
                return updated_node
            # Parentheses of the old one may hold lines together: they stay, around those of the new one.
            lpar, rpar = (*updated_node.lpar, *new.lpar), (*new.rpar, *updated_node.rpar)
            return new.with_changes(lpar=lpar, rpar=rpar)

    module = cst.parse_module(text).visit(Put())
    # LibCST overlooks the last newline behind a comment that ends with a backslash.
    return module.with_changes(has_trailing_newline=text.endswith(("\n", "\r"))).code


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself has; dotted ones part by part."""
    if not isinstance(node, ast.Constant):
        for _, value in ast.iter_fields(node):
            for name in value if isinstance(value, list) else (value,):
                if isinstance(name, str):
                    yield from name.split(".")


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # upstream's strings are upstream's business
        return ast.parse(code)
