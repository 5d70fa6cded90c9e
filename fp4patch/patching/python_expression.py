"""A Python expression as edits hold one. Apart from the edit that replaces them, whose LibCST takes a while to load."""

from __future__ import annotations

import ast


def read_expression(text: str) -> ast.expr:
    """The expression that a text is, in as many lines as it likes. SyntaxError or ValueError: it is none."""
    return ast.parse(f"({text}\n)", mode="eval").body
