"""The edit ``replace-expression``: another Python expression in the place of one, and not a byte beside it changes.

Expressions are compared as syntax trees, so that layout does not matter. The result is read again: Python must see the
old tree with exactly these expressions replaced.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits.live_text import Place, Text
from fp4patch.edits.operation import NO_OPTIONS, Surroundings, Template
from fp4patch.edits.python_expression import falsy, read_expression
from fp4patch.edits.refusal import Refusal
from fp4patch.edits.sites import ADDED, Replacement, settle

BOM = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class ReplaceExpression(Replacement):
    """Replace a Python expression by another, in files that have the name ``about``.

    Expressions are compared by their syntax tree: layout, comments and parentheses do not count. The ``tokens`` of
    ``retired`` are an expression here.
    """

    language: ClassVar = "python"
    texts: ClassVar = ("find", "replace")
    op: Literal["replace-expression"] = "replace-expression"
    within: str = ""
    """Name of the function to search. Empty: the whole file."""

    def rewrite(self, text: str, _template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with ``find`` replaced; NothingToDo if it does not apply; Drift if it is not understood."""
        if self.about in text:
            mark = BOM * text.startswith(BOM)
            try:
                read = _Reading(text.removeprefix(BOM), self)
                if self.about in read.names and (not self.within or self.within in read.functions):
                    outcome = _replace(self, read)
                    return Rewritten(mark + outcome.text, outcome.lines) if isinstance(outcome, Rewritten) else outcome
            except SyntaxError as error:
                return Drift("Python that can be read", error.msg, error.lineno, help="is this file whole?")
            except Refusal as refusal:
                return refusal.drift
        return NothingToDo(State.NOT_NEEDED, self.otherwise, elsewhere=True)

    def left(self, _tree: Surroundings, text: Text, /) -> Iterable[Place]:
        """Yield the expressions that are left in a text."""
        return text.expressions(self.find)


def _replace(edit: ReplaceExpression, read: _Reading) -> Outcome:
    sites = read.sites(edit.find)
    lines = [node.lineno for node in sites]
    parts = map(ast.dump, ast.walk(read_expression(edit.replace)))
    # If ``find`` is a part of ``replace``, a site may be one that was replaced before.
    if _meaning(edit.find) in parts and (there := read.sites(edit.replace)):
        raise Refusal(f"`{edit.find}` alone", f"`{edit.replace}`", there[0].lineno, advice=ADDED)
    if retired := settle(edit, lines, lambda sign: [node.lineno for node in read.sites(sign)]):
        return retired
    text = read.put(edit.replace, sites, _meaning(edit.find))
    if text is None:  # Python 3.11 does not know where an expression in an f-string is; LibCST does
        from fp4patch.edits.python_concrete import replaced  # noqa: PLC0415 - LibCST takes a while to load

        text = replaced(read.text, edit.find, edit.replace, edit.within)
    if _tree(text) != _replaced(read.text, edit):
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(text, tuple(sorted(set(lines))))


class _Reading(ast.NodeVisitor):
    """A module, its names, its functions, and the expressions that an edit asks for, where it asks for them."""

    def __init__(self, text: str, edit: ReplaceExpression) -> None:
        self.text = text
        self.within = edit.within
        asked = [edit.find, edit.replace, *(rule.tokens for rule in edit.retired)]
        self.found: dict[str, list[ast.expr]] = {_meaning(code): [] for code in asked}
        self.kinds = tuple({type(read_expression(code)) for code in asked})
        self.names: set[str] = set()
        self.functions: set[str] = set()
        self.inside = 0
        self.visit(_parsed(text))

    def visit(self, node: ast.AST) -> None:
        """Look at a node and at what is in it, but for the body of ``if False:``."""
        if isinstance(node, ast.If) and falsy(node.test):
            for part in node.orelse:
                self.visit(part)
            return
        self.names.update(_identifiers(node))
        named = False
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.add(node.name)
            named = node.name == self.within
        self.inside += named
        if isinstance(node, self.kinds) and (self.inside or not self.within):
            self.found.get(ast.dump(node), []).append(node)
        self.generic_visit(node)
        self.inside -= named

    def sites(self, expression: str) -> list[ast.expr]:
        """Return the expressions that mean the same as this one."""
        return self.found[_meaning(expression)]

    def put(self, expression: str, sites: Sequence[ast.expr], meaning: str) -> str | None:
        """Return the text with this expression in the place of each of these; None where Python does not know their
        places."""
        data = self.text.encode()
        begins = [0, *(end.end() for end in re.finditer(rb"\r\n?|\n", data))]
        for node in sorted(sites, key=lambda node: (node.lineno, node.col_offset), reverse=True):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start, end = begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset
            try:
                if _meaning(data[start:end].decode()) != meaning:
                    return None
            except (SyntaxError, UnicodeDecodeError):
                return None
            data = data[:start] + expression.encode() + data[end:]
        return data.decode()


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


def _meaning(expression: str) -> str:
    return ast.dump(read_expression(expression))


def _tree(code: str) -> str:
    try:
        return ast.dump(_parsed(code))
    except SyntaxError:
        return ""


def _replaced(code: str, edit: ReplaceExpression) -> str:
    """Python's own tree of the text, with the expressions replaced in it."""
    find, new = _meaning(edit.find), read_expression(edit.replace)

    class Replace(ast.NodeTransformer):
        inside = 0

        def visit(self, node: ast.AST) -> ast.AST:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == edit.within
            if isinstance(node, ast.If) and falsy(node.test):
                node.orelse = [part for old in node.orelse if isinstance(part := self.visit(old), ast.stmt)]
                return node
            self.inside += named
            if isinstance(node, ast.expr) and (self.inside or not edit.within) and ast.dump(node) == find:
                return new
            self.generic_visit(node)
            self.inside -= named
            return node

    return ast.dump(Replace().visit(_parsed(code)))
