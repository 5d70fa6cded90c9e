"""Nix expressions: attributes with texts and lists, names of the same file, and the shell scripts of phases."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.grammar import line_of, lines_of, named, root, text_of
from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import EMPTY, Kind, Read, Reading, Value, both, joined, unknown

if TYPE_CHECKING:
    from tree_sitter import Node

Scope = dict[str, "Node"]
# Example: preBuild
_SCRIPT = re.compile(r"(?:pre|post)[A-Z]\w*|\w+Phase|\w*Hook|\w*[Ss]cript|buildCommand|text")
# Example: -DC
_FLAG = re.compile(r"\s*-{1,2}(?:gencode|generate-code|arch|gpu-architecture|D\w)")
_DEEPEST = 24
_FEATURES = ("cmakeFeature", "cmakeOptionType", "cmakeBool")


def read_nix(text: str, cuda: Version) -> Read:
    """Return what a Nix expression says."""
    reader = _Expression()
    reader.walk(root("nix", text), {}, "")
    return reader.result


class _Expression:
    """A Nix expression, of which each attribute is looked at."""

    def __init__(self) -> None:
        self.result = Read()
        self._depth = 0

    def walk(self, node: Node, scope: Scope, condition: str) -> None:
        """Look at each attribute in an expression."""
        if node.type == "ERROR":
            self.result.skip(*lines_of(node), "Nix does not have it so")
            return
        if node.type in ("let_expression", "rec_attrset_expression"):
            scope = scope | _bindings(node)
        elif node.type == "function_expression":
            scope = scope | _formals(node)
        elif node.type == "if_expression":
            test = text_of(named(node, "condition"))
            self.walk(named(node, "consequence"), scope, both(condition, test))
            self.walk(named(node, "alternative"), scope, both(condition, f"not {test}"))
            return
        elif node.type == "binding":
            self._binding(node, scope, condition)
        elif node.type == "apply_expression":
            self._application(node, scope, condition)
        for child in node.named_children:
            self.walk(child, scope, condition)

    def _binding(self, node: Node, scope: Scope, condition: str) -> None:
        path, given = named(node, "attrpath"), named(node, "expression")
        name, line = text_of(path.named_children[-1]).strip('"'), line_of(node)
        values = self.values(given, scope)
        if list_name(name):
            self.result.readings.append(Reading(name, values, line, condition=condition))
        elif (
            _SCRIPT.fullmatch(name)
            and given.type == "indented_string_expression"
            and not any(value.unknown and "\n" in value.unknown for value in values)
        ):
            found = shell.read(joined(values).text, line=line_of(given))
            self.result.commands += [replace(one, condition=both(one.condition, condition)) for one in found.commands]
            self.result.readings += [one.under(both(one.condition, condition)) for one in found.readings]
            self.result.unread += found.unread
        elif any(_FLAG.match(value.text) for value in values):
            self.result.readings.append(Reading(name, values, line, condition=condition, group="words"))

    def _application(self, node: Node, scope: Scope, condition: str) -> None:
        """Read ``lib.cmakeFeature "NAME" value``."""
        function = named(node, "function")
        if function.type != "apply_expression":
            return
        called = text_of(named(function, "function")).rpartition(".")[2]
        if called in _FEATURES:
            (name, *_), values = (
                self.values(function.child_by_field_name("argument"), scope),
                self.values(node.child_by_field_name("argument"), scope),
            )
            self.result.readings.append(
                Reading(
                    name.text,
                    values,
                    line_of(node),
                    Kind.PASSED,
                    condition,
                    group="" if list_name(name.text) else "words",
                )
            )

    def values(self, node: Node | None, scope: Scope) -> tuple[Value, ...]:
        """Return the texts of a list, or of one text."""
        if node is None or self._depth > _DEEPEST:
            return (unknown("a recursion"),)
        self._depth += 1
        try:
            return self._values(node, scope)
        finally:
            self._depth -= 1

    def _values(self, node: Node, scope: Scope) -> tuple[Value, ...]:
        kind = node.type
        if node.has_error:
            return (unknown(text_of(node)[:60]),)
        if kind in ("string_expression", "indented_string_expression"):
            return (self._text(node, scope),)
        if kind in ("integer_expression", "float_expression"):
            return (Value(text_of(node)),)
        if kind == "list_expression":
            return tuple(
                value for child in node.named_children if child.type != "comment" for value in self.values(child, scope)
            )
        if kind in ("parenthesized_expression",):
            return self.values(node.named_children[0], scope)
        if kind == "variable_expression":
            name = text_of(node)
            inner = scope.get(name)
            return (
                self.values(inner, {key: one for key, one in scope.items() if key != name})
                if inner is not None
                else (unknown(name),)
            )
        if kind == "let_expression":
            return self.values(node.child_by_field_name("body"), scope | _bindings(node))
        if kind == "with_expression":
            return self.values(node.child_by_field_name("body"), scope)
        if kind == "if_expression":
            test = text_of(named(node, "condition"))
            one, other = (self.values(node.child_by_field_name(part), scope) for part in ("consequence", "alternative"))
            marked = [replace(value, condition=both(value.condition, test)) for value in one]
            return (*marked, *(replace(value, condition=both(value.condition, f"not {test}")) for value in other))
        if kind == "binary_expression":
            sign = text_of(named(node, "operator"))
            left, right = (self.values(node.child_by_field_name(side), scope) for side in ("left", "right"))
            if sign == "++":
                return (*left, *right)
            if sign == "+" and len(left) == len(right) == 1:
                return (left[0] + right[0],)
        if kind == "apply_expression":
            return self._applied(node, scope)
        return (unknown(text_of(node)[:60]),)

    def _applied(self, node: Node, scope: Scope) -> tuple[Value, ...]:
        function, argument = named(node, "function"), named(node, "argument")
        if function.type == "apply_expression":
            called = text_of(named(function, "function")).rpartition(".")[2]
            first = named(function, "argument")
            if called in ("optionals", "optional"):
                test = text_of(first)
                return tuple(
                    replace(value, condition=both(value.condition, test)) for value in self.values(argument, scope)
                )
            if called == "concatStringsSep":
                by = joined(self.values(first, scope))
                return (joined(self.values(argument, scope), by.text),)
            if called in _FEATURES:
                return ()  # see _application
        if text_of(function).rpartition(".")[2] in ("toString", "escapeShellArg"):
            return self.values(argument, scope)
        return (unknown(text_of(node)[:60]),)

    def _text(self, node: Node, scope: Scope) -> Value:
        indented = node.type == "indented_string_expression"
        result = EMPTY
        for child in node.named_children:
            text = text_of(child)
            if child.type == "string_fragment":
                result += Value(text)
            elif child.type == "escape_sequence":
                result += Value({"\\n": "\n", "\\t": "\t"}.get(text, text[2:] if indented else text[1:]))
            elif child.type == "dollar_escape":
                result += Value("$")
            elif child.type == "interpolation":
                inner = named(child, "expression")
                values = self.values(inner, scope)
                result += values[0] if len(values) == 1 else unknown(text)
        return result


def _bindings(node: Node) -> Scope:
    """Return the names that a ``let`` or a ``rec`` binds."""
    found: Scope = {}
    for child in node.named_children:
        if child.type == "binding_set":
            for binding in child.named_children:
                if binding.type == "binding":
                    path = named(binding, "attrpath")
                    if len(path.named_children) == 1:
                        found[text_of(path)] = named(binding, "expression")
    return found


def _formals(node: Node) -> Scope:
    """Return the arguments of a function that have a default."""
    found: Scope = {}
    for child in node.named_children:
        if child.type == "formals":
            for formal in child.named_children:
                default = formal.child_by_field_name("default") if formal.type == "formal" else None
                if default is not None:
                    found[text_of(named(formal, "name"))] = default
    return found
