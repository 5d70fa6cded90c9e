"""Python expressions replaced by LibCST, which also knows the places of those inside f-strings."""

import ast
from typing import cast

import libcst as cst

from fp4patch.edits.python_expression import read_expression


def replaced(text: str, find: str, replace: str, within: str) -> str:
    """Return the text with each ``find`` replaced; whether it reads as intended is for the caller to check."""
    module = cst.parse_module(text).visit(_Put(find, replace, within))
    # LibCST overlooks the last newline behind a comment that ends with a backslash.
    return module.with_changes(has_trailing_newline=text.endswith(("\n", "\r"))).code


class _Put(cst.CSTTransformer):
    """Put one expression in the place of each that means the same as another."""

    def __init__(self, find: str, replace: str, within: str) -> None:
        super().__init__()
        self.replace = replace
        self.within = within
        self.meaning = ast.dump(read_expression(find))
        self.kind = type(cst.parse_expression(find))
        self.open: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            self.open.append(node.name.value)
        return True

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        meant = isinstance(original_node, self.kind) and (not self.within or self.within in self.open)
        if isinstance(original_node, cst.FunctionDef):
            self.open.pop()
        if not meant or ast.dump(read_expression(cst.Module([]).code_for_node(original_node))) != self.meaning:
            return super().on_leave(original_node, updated_node)
        old = cst.ensure_type(updated_node, self.kind)
        new = cst.parse_expression(self.replace)
        # Parentheses of the old one may hold lines together: they stay, around those of the new one.
        new = new.with_changes(lpar=(*old.lpar, *new.lpar), rpar=(*new.rpar, *old.rpar))
        return cast("cst.CSTNodeT", new)
