"""The edit ``replace-expression``: another Python expression in the place of one, and not a byte beside it changes.

LibCST keeps every blank and comment; expressions are compared as syntax trees, so that layout does not matter. The
result is read again: Python must see the old tree with exactly these expressions replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from fp4patch.model.edit import ReplaceExpression
from fp4patch.model.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.model.state import State
from fp4patch.patching.python_expression import read_expression
from fp4patch.patching.refusal import Refusal
from fp4patch.patching.sites import ADDED, settle

BOM = "\ufeff"


def replace_expression(edit: ReplaceExpression, text: str) -> Outcome:
    """The text with ``find`` replaced; NothingToDo where the edit does not apply; Drift if it is not understood."""
    if edit.about in text:
        mark = BOM * text.startswith(BOM)
        try:
            read = _Reading(text.removeprefix(BOM), edit)
            if edit.about in read.names and (not edit.within or edit.within in read.functions):
                outcome = _replace(edit, read)
                return Rewritten(mark + outcome.text, outcome.lines) if isinstance(outcome, Rewritten) else outcome
        except cst.ParserSyntaxError as error:
            return Drift("Python that can be read", error.message, error.raw_line, help="is this file whole?")
        except Refusal as refusal:
            return refusal.drift
    return NothingToDo(State.NOT_NEEDED, edit.otherwise, elsewhere=True)


def _replace(edit: ReplaceExpression, read: _Reading) -> Outcome:
    sites = read.sites(edit.find)
    lines = [read.line(node) for node in sites]
    if _holds(edit.replace, edit.find) and (there := read.sites(edit.replace)):
        raise Refusal(f"`{edit.find}` alone", f"`{edit.replace}`", read.line(there[0]), advice=ADDED)
    if retired := settle(edit, lines, lambda sign: [read.line(node) for node in read.sites(sign)]):
        return retired
    put = _Put(edit.replace, sites)
    module = cst.ensure_type(read.module.visit(put), cst.Module)
    if _tree(module.code) != _replaced(read.module.code, edit):
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(module.code, tuple(sorted(set(lines))))


class _Put(cst.CSTTransformer):
    """Puts an expression in the place of each of these, in one pass: a visit makes every node of the module anew."""

    def __init__(self, expression: str, sites: Sequence[cst.BaseExpression]) -> None:
        super().__init__()
        self.expression = expression
        self.sites = {id(site) for site in sites}

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        if id(original_node) not in self.sites or not isinstance(updated_node, cst.BaseExpression):
            return super().on_leave(original_node, updated_node)
        new = cst.parse_expression(self.expression)
        # Parentheses of the old one may hold lines together: they stay, around those of the new one.
        new = new.with_changes(lpar=(*updated_node.lpar, *new.lpar), rpar=(*new.rpar, *updated_node.rpar))
        return cast("cst.CSTNodeT", new)


class _Reading(cst.CSTVisitor):
    """A module, its names, its functions, and the expressions that an edit asks for, where it asks for them."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, text: str, edit: ReplaceExpression) -> None:
        super().__init__()
        self.within = edit.within
        asked = [edit.find, edit.replace, *(rule.tokens for rule in edit.retired)]
        self.found: dict[str, list[cst.BaseExpression]] = {_meaning(code): [] for code in asked}
        self.kinds = tuple({type(cst.parse_expression(code)) for code in asked})
        self.names: set[str] = set()
        self.functions: set[str] = set()
        self.open: list[str] = []
        # LibCST overlooks the last newline behind a comment that ends with a backslash.
        module = cst.parse_module(text).with_changes(has_trailing_newline=text.endswith(("\n", "\r")))
        if module.code != text:
            raise Refusal("Python that LibCST gives back to the byte", "something that it changes", 1)
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.module = wrapper.module
        wrapper.visit(self)
        self.positions = wrapper.resolve(PositionProvider)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Name):
            self.names.add(node.value)
        if isinstance(node, cst.FunctionDef):
            self.open.append(node.name.value)
            self.functions.add(node.name.value)
        if isinstance(node, self.kinds) and (not self.within or self.within in self.open):
            self.found.get(_meaning(self.module.code_for_node(node)), []).append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef):
            self.open.pop()

    def sites(self, expression: str) -> list[cst.BaseExpression]:
        """The expressions that mean the same as this one."""
        return self.found[_meaning(expression)]

    def line(self, node: cst.CSTNode) -> int:
        """The 1-based line on which it begins."""
        return int(self.positions[node].start.line)


def _holds(outer: str, inner: str) -> bool:
    """Whether one expression is a part of the other: then a site may be one that was replaced before."""
    return any(ast.dump(part) == _meaning(inner) for part in ast.walk(read_expression(outer)))


def _meaning(expression: str) -> str:
    return ast.dump(read_expression(expression))


def _tree(code: str) -> str:
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return ""


def _replaced(code: str, edit: ReplaceExpression) -> str:
    """Python's own tree of the text, with the expressions replaced in it."""
    find, new = _meaning(edit.find), read_expression(edit.replace)

    class Replace(ast.NodeTransformer):
        inside = 0

        def visit(self, node: ast.AST) -> ast.AST:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == edit.within
            self.inside += named
            if isinstance(node, ast.expr) and (self.inside or not edit.within) and ast.dump(node) == find:
                return new
            self.generic_visit(node)
            self.inside -= named
            return node

    return ast.dump(Replace().visit(ast.parse(code)))
