"""The grammars of languages that are read by tree-sitter, which the extra ``doctor`` brings."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from fp4patch.core.wording import install

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser


Lines = tuple[int, int]
"""First and last line of a part of a text, from 1 on."""


class NoReaderError(Exception):
    """The library that reads a language is not installed."""

    def __init__(self, language: str) -> None:
        super().__init__(f"{language} is read by a library that is not installed: {install('doctor')}")


@cache
def parser(language: str) -> Parser:
    """Return the parser of a language, by the name of its grammar. NoReaderError if it is not installed."""
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415 - the extra brings it

        return Parser(Language(import_module(f"tree_sitter_{language}").language()))
    except ImportError as error:
        raise NoReaderError(language) from error


def root(language: str, text: str) -> Node:
    """Return the syntax tree of a text."""
    return parser(language).parse(text.encode()).root_node


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode()


def named(node: Node, name: str) -> Node:
    """Return the part of a node that its grammar gives this name. ValueError: the node has none."""
    found = node.child_by_field_name(name)
    if found is None:
        raise ValueError(f"line {line_of(node)}: {node.type} has no {name}")
    return found


def line_of(node: Node) -> int:
    """Return the 1-based line of a node."""
    return int(node.start_point[0]) + 1


def lines_of(node: Node) -> Lines:
    """Return the lines of a node; one of which it has no character is none of them."""
    first, last = line_of(node), int(node.end_point[0]) + 1
    return first, last - 1 if last > first and not node.end_point[1] else last


def nodes(node: Node, *types: str) -> Iterator[Node]:
    """Yield the nodes of these types in a tree, in the order of the text."""
    pending = [node]
    while pending:
        here = pending.pop()
        if here.type in types:
            yield here
        pending += reversed(here.children)
