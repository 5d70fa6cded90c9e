"""What the grammar of bash does not have of a script, and the syntax tree of the rest.

bash reads a script command by command, so what stands before such lines is as it is without them. The lines, with all
of a construct whose head or end they damage, are taken out, and the rest is read anew until all of it is read.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from fp4patch.doctor.readings.grammar import Lines, lines_of, nodes, root, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

MARK = "fp4patch-unread"
"""A command of ours that stands in place of lines that are not read; its words are the names in them."""

_MOST = 8
"""Parts of a script that are taken out one by one; with more, its rest is."""
_HOLDERS = {
    "program": "",
    "function_definition": "",
    "compound_statement": "{",
    "subshell": "(",
    "do_group": "do",
    "if_statement": "then",
    "elif_clause": "then",
    "else_clause": "else",
    "for_statement": "do_group",
    "c_style_for_statement": "do_group",
    "while_statement": "do_group",
    "case_statement": "in",
    "case_item": ")",
}
"""Constructs that hold statements, and where these begin in each."""
_CLOSERS = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", ")", ";;", ";&", ";;&"))
"""Words that end something which began before."""
_OPENERS = {
    "if": "fi",
    "while": "done",
    "until": "done",
    "for": "done",
    "select": "done",
    "case": "esac",
    "{": "}",
    "(": ")",
    "((": "))",
    "[[": "]]",
    "$(": ")",
    "$((": "))",
    "${": "}",
    "<(": ")",
    ">(": ")",
    "function": "}",
    "`": "`",
}
"""Words that begin something, and what ends it."""
STATEMENTS = frozenset(
    (
        "command",
        "variable_assignment",
        "variable_assignments",
        "declaration_command",
        "test_command",
        "unset_command",
        "comment",
        "subshell",
        "pipeline",
        "negated_command",
        "compound_statement",
        "do_group",
        "list",
        "if_statement",
        "case_statement",
        "for_statement",
        "c_style_for_statement",
        "while_statement",
        "function_definition",
        "redirected_statement",
    )
)
_BODIES = ("compound_statement", "subshell", "do_group", "if_statement", "elif_clause", "else_clause")
"""Constructs in which bash wants a statement."""
_REFUSED = ("command_name", "command", ";;", "file_redirect", *_BODIES)
"""Parts of which bash refuses some that the grammar accepts."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_DOCUMENT = re.compile(r"(?<!<)<<(?!<)")
_ESCAPED_BLANK = re.compile(rb"\\[ \t]")
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def parsed(text: str) -> tuple[Node, list[Lines]]:
    """Return the syntax tree of a script without the lines that are not read, and these lines."""
    lines = text.split("\n")
    taken: list[Lines] = []
    while True:
        tree = _tree("\n".join(_without(lines, taken)))
        damage = _damage(tree, lines)
        if damage is None:
            return tree, taken
        first, last, ends = damage
        if ends and taken:  # what it ends began in lines that are not read
            first = min(first, taken[0][0])
        if len(taken) == _MOST:
            last = len(lines)
        before, taken = taken, _merged([*taken, _whole(lines, first, last)])
        if taken == before:
            taken = [(taken[0][0] if taken[-1][1] < len(lines) else 1, len(lines))]


def _tree(text: str) -> Node:
    """Return the syntax tree of a script.

    Assignments that end a line are ended by a semicolon: the grammar goes on to the next line.
    """
    source = text.encode()
    while True:
        tree = root("bash", source.decode())
        ends = [
            child.end_byte
            for command in nodes(tree, "command")
            for child, following in pairwise(command.children)
            if child.type == "variable_assignment"
            and b"\n" in source[child.end_byte : following.start_byte].replace(b"\\\n", b"")
        ]
        if not ends or source[ends[0] :].startswith(b";"):
            return tree
        source = source[: ends[0]] + b";" + source[ends[0] :]


def _without(lines: list[str], taken: list[Lines]) -> list[str]:
    result = list(lines)
    for first, last in taken:
        names = dict.fromkeys(_NAME.findall("\n".join(lines[first - 1 : last])))
        result[first - 1 : last] = [" ".join((MARK, *names)), *[""] * (last - first)]
    return result


def _whole(lines: list[str], first: int, last: int) -> Lines:
    """Return lines with those that go on from them or to them; with the rest, if a quote or a document is open."""
    while first > 1 and _goes_on(lines[first - 2]):
        first -= 1
    while last < len(lines) and _goes_on(lines[last - 1]):
        last += 1
    inside = _ESCAPED.sub("", "\n".join(lines[first - 1 : last]))
    is_open = _DOCUMENT.search(inside) or any(inside.count(quote) % 2 for quote in "\"'`")
    return first, len(lines) if is_open else last


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _merged(parts: list[Lines]) -> list[Lines]:
    result: list[Lines] = []
    for first, last in sorted(parts):
        if result and first <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(last, result[-1][1])
        else:
            result.append((first, last))
    return result


def _damage(tree: Node, lines: list[str]) -> tuple[int, int, bool] | None:
    """Return the lines of the first statement that is damaged, and whether it ends what began before; None: none is."""
    lone = [node.start_byte for node in nodes(tree, *_REFUSED) if _is_refused(node)]
    if not lone and not tree.has_error:
        return None

    def damaged(node: Node) -> bool:
        return node.has_error or any(node.start_byte <= at < node.end_byte for at in lone)

    node = tree
    if node.type == "ERROR":
        return _error([node], node, lines)
    while True:
        at = next(n for n, child in enumerate(node.children) if damaged(child))
        child = node.children[at]
        begin = _HOLDERS.get(node.type, "")
        in_head = bool(begin) and not any(one.type == begin for one in node.children[:at])
        if child.is_missing or (in_head and child.type not in _HOLDERS):
            return *lines_of(node), False
        if child.type == "ERROR":
            return _error(node.children, child, lines)
        if child.type not in _HOLDERS:
            return *lines_of(child), child.start_byte in lone
        node = child


def _is_refused(node: Node) -> bool:
    """Return whether bash refuses, or takes otherwise, what the grammar accepts."""
    parent = node.parent
    match node.type:
        case "command_name":  # the end of what has not begun
            return text_of(node) in _CLOSERS and parent is not None and parent.children[0] == node
        case "command":  # a list behind a word; a blank with a backslash, which the grammar leaves out of its word
            text, at = node.text or b"", node.start_byte
            gaps = [text[one.end_byte - at : two.start_byte - at] for one, two in pairwise(node.children)]
            return any(map(_ESCAPED_BLANK.search, gaps)) or any(one.type == "subshell" for one in node.children)
        case ";;":
            return parent is None or parent.type != "case_item"
        case "file_redirect":  # a word behind a construct
            body = parent and parent.child_by_field_name("body")
            return bool(body and body.type in _HOLDERS and len(node.children_by_field_name("destination")) > 1)
        case _:  # no statement where bash wants one
            begin = _HOLDERS[node.type]
            types = [child.type for child in node.children]
            behind = node.children[types.index(begin) + 1 if begin in types else len(types) :]
            body = next((child for child in behind if child.type != "comment"), None)
            return body is None or not body.is_named or body.type in ("elif_clause", "else_clause")


def _error(beside: list[Node], error: Node, lines: list[str]) -> tuple[int, int, bool]:
    """Return the same of a part that has no place in the grammar: of its first word that begins no statement."""
    bad = next((one for one in error.children if one.is_missing or one.has_error or not _stands_alone(one)), error)
    if bad.has_error and bad is not error:
        return *lines_of(bad), False
    first, last = lines_of(bad)
    ends = _OPENERS.get(bad.type)
    if ends and ends not in lines[first - 1][bad.start_point[1] + len(bad.type) :]:
        last = len(lines)
    for one in (*beside, *error.children):  # what shares its first or last line is damaged, too
        if one.id != error.id and _stands_alone(one):
            begin, end = lines_of(one)
            if begin <= last and first <= end:
                first, last = min(first, begin), max(last, end)
    return first, last, bad.type in _CLOSERS


def _stands_alone(node: Node) -> bool:
    """Return whether a node is a statement, or what is between two."""
    return node.type in STATEMENTS or node.type in (";", "\n", "&", "comment")
