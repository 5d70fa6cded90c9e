"""A Python expression as edits hold one. Apart from the edit that replaces them, whose LibCST takes a while to load."""

import ast


def read_expression(text: str) -> ast.expr:
    """Return the expression that a text is, in as many lines as it likes. SyntaxError or ValueError: it is none."""
    return ast.parse(f"({text}\n)", mode="eval").body


def falsy(node: ast.expr) -> bool:
    """Tell whether a condition is a constant that never holds: ``if False:``, ``if 0:``."""
    return isinstance(node, ast.Constant) and not node.value
