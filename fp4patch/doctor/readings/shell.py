"""Shell scripts, as bash runs them with an environment in which the user sets nothing.

It follows variables, lists, functions, loops over literal lists and conditions on variables. What a command prints is
not followed. A command is taken to succeed; what depends on its status or on a file is a condition that is not known.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.version import Version

from fp4patch.doctor.readings.damage import MARK, STATEMENTS, parsed
from fp4patch.doctor.readings.grammar import line_of, named, nodes, text_of
from fp4patch.doctor.readings.reading import (
    EMPTY,
    NO,
    UNKNOWN,
    YES,
    Command,
    Kind,
    Read,
    Reading,
    Truth,
    Value,
    Variable,
    Variables,
    all_of,
    any_of,
    both,
    joined,
    merged,
    texts,
    unknown,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 12
"""Functions that call each other, and shells in shells."""
_LONGEST = 64
"""Elements of a loop that are followed."""
# Example: NAME+=
_ASSIGNS = re.compile(r"\b([A-Za-z_]\w*)(?:\[[^]]*\])?\+?=")
# Example: NAME=value
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Example: -euxc
_RUNS_TEXT = re.compile(r"-[a-z]*c[a-z]*")
_SHELLS = ("sh", "bash", "dash", "zsh")
_WRAPPERS = {
    "sudo": "ugCDp",
    "env": "uCS",
    "nice": "n",
    "time": "fo",
    "nohup": "",
    "exec": "a",
    "command": "",
    "timeout": "ks",
}
"""Programs that run the rest of their words, with the options that take a word of their own."""
_QUIET = {":": True, "true": True, "false": False}
_NUMBERS = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")


_RAN = Truth(True, assumed=True)


@dataclass(frozen=True)
class _Piece:
    """A part of a word."""

    value: Value
    quoted: bool = True
    items: tuple[Value, ...] | None = None
    """Words of a list, if it is one: ``"${A[@]}"``."""


def read(
    text: str, variables: Variables | None = None, *, entries: Sequence[str] = (), folder: str = "", line: int = 1
) -> Read:
    """Return what a script says. ``variables``: those of its environment; ``entries``: functions that are called.

    ``line``: that of its first line in the file that has it.
    """
    shell = _Shell(dict(variables or {}), folder, line)
    shell.script(text, entries)
    return shell.result


def read_shell(text: str, cuda: Version) -> Read:
    """Return what a script says."""
    return read(text)


def read_pkgbuild(text: str, cuda: Version) -> Read:
    """Return what a PKGBUILD says, whose functions makepkg calls."""
    return read(text, entries=("prepare", "build", "check", "package"))


def ran(words: Sequence[Value], variables: Variables, *, folder: str = "", line: int = 1) -> Read:
    """Return what one command says that is given by its words."""
    shell = _Shell(dict(variables), folder, line)
    shell.program(list(words), line)
    return shell.result


class _Shell:
    """One shell, from the first line of a script to its last."""

    def __init__(self, variables: Variables, folder: str, line: int, depth: int = 0) -> None:
        self.result = Read()
        self.variables = variables
        self.arguments: tuple[Value, ...] | None = None
        self._folder = folder
        self._before = line - 1
        """Lines of the file before the script."""
        self._depth = depth
        self._branch = ""
        """On what the branch depends that is run."""
        self._ended = ""
        """What ended the script or the function: ``exit``, ``return``."""
        self._exports_all = False
        self._exports: frozenset[str] = frozenset()
        """Variables without a value that the next assignment puts into the environment."""
        self._functions: dict[str, Node] = {}
        self._called: set[str] = set()
        self._locals: dict[str, Variable | None] | None = None
        """What the variables that a function has of its own are outside of it; None outside of functions."""
        self._perhaps_local: frozenset[str] = frozenset()
        self._returned: list[Variables] = []
        """What branches of a function have left that return from it."""
        self._doubt = ""
        """On what everything depends, after lines that are not read."""
        self._rest = ""
        """On what the rest of a function depends, after these."""
        self._reads_nothing = False
        """True if the standard input is /dev/null."""

    def script(self, text: str, entries: Sequence[str] = ()) -> None:
        self._text_of_script(text)
        for name in entries:
            if name in self._functions:
                self._ended = ""
                self._call(name, ())
        for name in [name for name in self._functions if name not in self._called]:
            with self._kept(), self._under(f"{name} is called"):
                self._ended = ""
                self._call(name, None)

    def _text_of_script(self, text: str) -> None:
        """Run the statements of a text: those before lines that are not read, then the others under a condition."""
        tree, not_read = parsed(text)
        certain = [child for child in tree.children if not not_read or child.end_point[0] + 1 < not_read[0][0]]
        self._block(certain)
        if not_read and not self._ended:
            for first, last in ((self._before + one, self._before + other) for one, other in not_read):
                part = self.result.skip(first, last, "the grammar of bash does not have it so")
                self._doubt = self._doubt or f"what is in {part}"
            self._block(tree.children[len(certain) :])

    def program(self, words: list[Value], line: int) -> None:
        """Run a command that is given by its words."""
        self._program(words, [], set(), line, "")

    def _line(self, node: Node) -> int:
        return self._before + line_of(node)

    # --- state

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Have what happens inside leave the state as it was, as a subshell does."""
        before = dict(self.variables), self._folder, self._ended, self._exports_all, self._exports
        scope = self._locals, self._perhaps_local
        yield
        self.variables, self._folder, self._ended, self._exports_all, self._exports = before
        self._locals, self._perhaps_local = scope

    @property
    def _condition(self) -> str:
        """All that what is run depends on."""
        return both(self._branch, self._rest, self._doubt)

    @contextmanager
    def _under(self, condition: str) -> Iterator[None]:
        before, self._branch = self._branch, both(self._branch, condition)
        yield
        self._branch = before

    def _returns(self, condition: str, state: Variables) -> None:
        """Note a branch that returns, without which the rest of the function runs."""
        self._returned.append(state)
        self._rest = both(self._rest, f"no return under {condition}")

    @contextmanager
    def _reading_nothing(self, nothing: bool) -> Iterator[None]:
        before, self._reads_nothing = self._reads_nothing, nothing
        yield
        self._reads_nothing = before

    def _assign(
        self,
        name: str,
        value: Value,
        line: int,
        *,
        items: tuple[Value, ...] | None = None,
        export: bool = False,
        appends: bool = False,
    ) -> None:
        before = self.variables.get(name)
        exported = export or self._exports_all or bool(before and before.exported)
        exported |= name in self._exports
        kind = Kind.DEFAULT if value.default else Kind.APPENDED if appends else Kind.ASSIGNED
        certain = export or not before
        doubt = "" if certain or before is None else before.export_condition
        self.variables[name] = Variable(value, line, kind, exported, self._condition or doubt, doubt, items)
        if exported:
            self.result.readings.append(Reading(name, (value,), line, kind, self._condition or doubt))

    def _lose(self, names: Iterable[str], why: str) -> None:
        for name in names:
            before = self.variables.get(name)
            line = before.line if before else 0
            exported = bool(before and before.exported) or name in self._exports or self._exports_all
            self.variables[name] = Variable(
                unknown(f"{name}, {why}"), line, exported=exported, condition=self._condition
            )

    def _skip(self, names: Iterable[Value], line: int) -> Truth:
        """Pass over lines that are not read, after which nothing is known of the names in them."""
        for name in texts(names):
            lost = unknown(f"{name}, in lines that are not read")
            self.variables[name] = Variable(
                lost, line, exported=True, condition=self._condition, export_condition=self._condition
            )
        self.arguments = None
        return UNKNOWN

    def _branches(self, condition: str, *branches: Callable[[], object]) -> None:
        """Run alternatives of which one is taken, and keep what all of them leave."""
        states, returned = [], list[Variables]()
        begin = dict(self.variables), self._folder
        scope, perhaps, scopes = self._locals, self._perhaps_local, list[dict[str, Variable | None]]()
        for branch in branches:
            self.variables, self._folder = dict(begin[0]), begin[1]
            self._locals = scope
            with self._under(condition):
                branch()
            if not self._ended:
                states.append((self.variables, self._folder))
                scopes.append(self._locals or {})
                perhaps |= self._perhaps_local
            elif self._ended == "return" and scope is not None:
                returned.append(self.variables)
            ended, self._ended = self._ended, ""
        if states:
            for state in returned:
                self._returns(condition, state)
            self.variables = merged(condition, [state for state, _ in states])
            folders = {folder for _, folder in states}
            self._folder = folders.pop() if len(folders) == 1 else begin[1]
            if scope is not None:
                self._locals = {name: was for one in scopes for name, was in one.items()}
                doubtful = {name for name in self._locals if any(name not in one for one in scopes)}
                self._perhaps_local = perhaps | doubtful
        else:
            self.variables, self._folder = merged(condition, returned) if returned else begin[0], begin[1]
            self._locals, self._ended = scope, "return" if returned else ended

    # --- statements

    def _run(self, node: Node) -> Truth:
        """Run a statement."""
        if self._ended:
            return UNKNOWN
        run = getattr(self, f"_{node.type}", None)
        if run and node.type in STATEMENTS:
            return run(node)  # type: ignore[no-any-return]
        status = YES
        children = node.children
        for at, child in enumerate(children):
            if child.is_named and child.type != "comment":
                background = at + 1 < len(children) and children[at + 1].type == "&"
                if background:
                    with self._kept():
                        self._run(child)
                    status = YES
                else:
                    status = self._run(child)
        return status

    def _comment(self, node: Node) -> Truth:
        return YES

    def _subshell(self, node: Node) -> Truth:
        with self._kept():
            return self._all(node.named_children)

    def _pipeline(self, node: Node) -> Truth:
        for at, child in enumerate(node.named_children):
            with self._kept(), self._reading_nothing(self._reads_nothing and not at):
                self._run(child)
        return _RAN

    def _all(self, statements: Iterable[Node]) -> Truth:
        status = YES
        for statement in statements:
            status = self._run(statement)
        return status

    def _negated_command(self, node: Node) -> Truth:
        return ~self._all(node.named_children)

    def _compound_statement(self, node: Node) -> Truth:
        if node.children[0].type == "((":
            self._lose(_ASSIGNS.findall(text_of(node)), "by arithmetic")
            return UNKNOWN
        return self._block(node.children)

    def _do_group(self, node: Node) -> Truth:
        return self._block(node.children)

    def _block(self, children: Sequence[Node]) -> Truth:
        status = YES
        for at, child in enumerate(children):
            if child.is_named:
                if at + 1 < len(children) and children[at + 1].type == "&":
                    with self._kept():
                        self._run(child)
                else:
                    status = self._run(child)
        return status

    def _list(self, node: Node) -> Truth:
        left, sign, right = node.children[0], node.children[1].type, node.children[-1]
        status = self._run(left)
        if self._ended:
            return status
        goes_on = status if sign == "&&" else ~status if not status.assumed else UNKNOWN
        if sign == "||" and status.assumed:  # it is taken to succeed
            condition = f"{_short(left)} fails"
            with self._kept(), self._under(condition):
                self._run(right)
            return _RAN
        if goes_on.holds is None:
            condition = _short(left) if sign == "&&" else f"not {_short(left)}"
            self._branches(condition, lambda: self._run(right), lambda: None)
            return UNKNOWN
        if not goes_on.holds:
            if goes_on.by_default:
                with self._kept(), self._under(_short(left)):
                    self._run(right)
            return status
        if goes_on.by_default:
            return self._by_default(lambda: self._run(right), _short(left), lambda: YES)
        return self._run(right)

    def _by_default(self, taken: Callable[[], Truth], condition: str, other: Callable[[], Truth]) -> Truth:
        """Run what happens where the user sets nothing; if that ends the script, what happens else."""
        before, folder = dict(self.variables), self._folder
        status = taken()
        after, ended = self.variables, self._ended
        if ended:
            self.variables, self._folder, self._ended = before, folder, ""
            return other()
        for name, now in after.items():
            if now != before.get(name):
                after[name] = replace(now, value=replace(now.value, default=True), kind=Kind.DEFAULT)
        with self._kept(), self._under(f"not {condition}"):
            self.variables = dict(before)
            other()
        return status

    def _if_statement(self, node: Node) -> Truth:
        branches: list[tuple[Node | None, list[Node]]] = []
        parts = [node, *(child for child in node.children if child.type in ("elif_clause", "else_clause"))]
        for part in parts:
            children = [child for child in part.children if child.type not in ("elif_clause", "else_clause", "comment")]
            then = next((at for at, child in enumerate(children) if child.type in ("then", "else")), len(children))
            tests = [child for child in children[:then] if child.is_named]
            body = children[then + 1 :]
            branches.append((tests[-1] if tests else None, body))
            if len(tests) > 1:
                for test in tests[:-1]:
                    self._run(test)
        return self._one_of(branches)

    def _one_of(self, branches: Sequence[tuple[Node | None, list[Node]]]) -> Truth:
        if not branches:
            return YES
        (test, body), *others = branches
        if test is None:
            return self._block(body)
        truth = self._run(test)
        if truth.assumed:
            truth = UNKNOWN
        condition = _short(test)
        if truth.holds is None:
            self._branches(condition, lambda: self._block(body), lambda: self._one_of(others))
            return UNKNOWN
        if not truth.by_default:
            return self._block(body) if truth.holds else self._one_of(others)
        if truth.holds:
            return self._by_default(lambda: self._block(body), condition, lambda: self._one_of(others))
        return self._by_default(lambda: self._one_of(others), condition, lambda: self._block(body))

    def _case_statement(self, node: Node) -> Truth:
        value = self._text(node.child_by_field_name("value"))
        if value.default and value.unknown and re.fullmatch(r"\$\w+", value.text):
            value = Value("", default=True)
        items = [child for child in node.named_children if child.type == "case_item"]
        return self._case(value, items, _short(node))

    def _case(self, value: Value, items: Sequence[Node], condition: str) -> Truth:
        if not items:
            return YES
        item, *others = items
        close = next(at for at, child in enumerate(item.children) if child.type == ")")
        patterns = [text_of(child).strip("\"'") for child in item.children[:close] if child.is_named]
        body = item.children[close + 1 :]
        decided = "*" in patterns or value.known is not None
        if not decided or any(re.search(r"[$()\\`]", pattern) for pattern in patterns):
            self._branches(condition, lambda: self._block(body), lambda: self._case(value, others, condition))
            return UNKNOWN
        if "*" in patterns or any(fnmatchcase(value.text, pattern) for pattern in patterns):
            if value.default:
                return self._by_default(
                    lambda: self._block(body), condition, lambda: self._case(value, others, condition)
                )
            return self._block(body)
        return self._case(value, others, condition)

    def _for_statement(self, node: Node) -> Truth:
        name, body = text_of(named(node, "variable")), named(node, "body")
        has_values = any(child.type == "in" for child in node.children)
        values = (
            self._words(node.children_by_field_name("value")) if has_values else list(self.arguments or [unknown("$@")])
        )
        broken = any(text_of(word) in ("break", "continue") for word in nodes(body, "command_name"))
        if broken or len(values) > _LONGEST or any(value.unknown and len(values) == 1 for value in values):
            return self._some_times(node, f"for {name}", name)
        for value in values:
            self._assign(name, value, self._line(node))
            if value.unknown:  # no word, or several
                self._branches(f"for {name}", lambda: self._run(body), lambda: None)
            else:
                self._run(body)
        return YES

    def _c_style_for_statement(self, node: Node) -> Truth:
        return self._some_times(node, "a loop")

    def _while_statement(self, node: Node) -> Truth:
        *tests, _ = (child for child in node.named_children if child.type != "comment")
        status = self._all(tests)
        goes_on = status if node.children[0].type == "while" else ~status
        if goes_on.holds is False and not goes_on.by_default:
            return YES
        return self._some_times(node, _short(node))

    def _some_times(self, node: Node, condition: str, *names: str) -> Truth:
        """Run a loop once, for its commands; what it assigns is not known, in it and afterwards."""
        body = named(node, "body")
        assigned = [text_of(named(one, "name")) for one in nodes(node, "variable_assignment")]
        self._lose([*names, *assigned], f"in {condition}")
        with self._kept(), self._under(condition):
            self._run(body)
            returned = self.variables if self._ended == "return" and self._locals is not None else None
        if returned is not None:
            self._returns(condition, returned)
        return UNKNOWN

    def _function_definition(self, node: Node) -> Truth:
        self._functions[text_of(named(node, "name"))] = node
        return YES

    def _call(self, name: str, arguments: tuple[Value, ...] | None) -> Truth:
        """Run a function. ``arguments`` None: they are not known."""
        self._called.add(name)
        if self._depth >= _DEEPEST:
            return UNKNOWN
        body = named(self._functions[name], "body")
        scope, self._locals, self._perhaps_local = (self._locals, self._perhaps_local), {}, frozenset()
        caller = self._branch, self._returned, self._rest
        self._branch, self._returned, self._rest = self._condition, [], ""
        before, self.arguments = self.arguments, arguments
        self._depth += 1
        status = self._run(body)
        self._depth -= 1
        self.arguments = before
        if self._returned and self._ended != "exit":
            self.variables = merged(f"{name} returns", [*self._returned, self.variables])
            status = UNKNOWN
        self._branch, self._returned, self._rest = caller
        for one, was in self._locals.items():
            states: list[Variables] = [{one: was} if was else {}]
            if one in self._perhaps_local:
                states.append({one: self.variables[one]} if one in self.variables else {})
            self.variables.pop(one, None)
            self.variables |= merged(f"{one} is local in {name}", states)
        self._locals, self._perhaps_local = scope
        if self._ended == "return":
            self._ended, status = "", UNKNOWN
        return status

    def _test_command(self, node: Node) -> Truth:
        inside = node.named_children
        if len(inside) != 1:
            return UNKNOWN
        return self._test(inside[0], node.children[0].type == "[[")

    def _test(self, node: Node, extended: bool) -> Truth:
        """Return whether the expression of a ``[`` or ``[[`` holds."""
        operator = node.child_by_field_name("operator")
        sign = text_of(operator) if operator else ""
        if node.type == "parenthesized_expression" and len(node.named_children) == 1:
            return self._test(node.named_children[0], extended)
        if node.type == "unary_expression":
            operand = node.named_children[-1]
            if sign == "!":
                return ~self._test(operand, extended)
            if sign in ("-z", "-n"):
                empty = _is_empty(self._text(operand))
                return empty if sign == "-z" else ~empty
            if sign == "-v":
                known = text_of(operand) in self.variables
                return YES if known else Truth(False, by_default=True)
            return UNKNOWN
        if node.type == "binary_expression":
            left, right = named(node, "left"), named(node, "right")
            if sign in ("&&", "-a"):
                return all_of((self._test(left, extended), self._test(right, extended)))
            if sign in ("||", "-o"):
                return any_of((self._test(left, extended), self._test(right, extended)))
            return self._compared(left, sign, right, extended)
        if node.type in ("word", "string", "raw_string", "simple_expansion", "expansion", "number", "concatenation"):
            return ~_is_empty(self._text(node))
        return UNKNOWN

    def _compared(self, left: Node, sign: str, right: Node, extended: bool) -> Truth:
        one, other = self._text(left), self._text(right)
        if sign in ("=", "==", "!=") and not other.unknown and not other.text:
            empty = _is_empty(one)
            return empty if sign != "!=" else ~empty
        if one.unknown or other.unknown:
            return UNKNOWN
        if sign in ("=", "==", "!="):
            is_pattern = extended and right.type not in ("string", "raw_string") and _GLOB.search(other.text)
            same = fnmatchcase(one.text, other.text) if is_pattern else one.text == other.text
            holds = same is (sign != "!=")
        elif sign in _NUMBERS and all(re.fullmatch(r"-?\d+", value.text) for value in (one, other)):
            holds = _NUMBERS[sign](int(one.text), int(other.text))
        else:
            return UNKNOWN
        return Truth(holds, one.default or other.default)

    def _variable_assignments(self, node: Node) -> Truth:
        return self._all(node.named_children)

    def _variable_assignment(self, node: Node, begin: Variables | None = None, *, export: bool = False) -> Truth:
        """Assign. ``begin``: variables with which its value is expanded, if they are not those of now."""
        name, given = named(node, "name"), node.child_by_field_name("value")
        appends = any(child.type == "+=" for child in node.children)
        if name.type != "variable_name":
            self._lose([text_of(named(name, "name"))], "of which an element is set")
            return YES
        key = text_of(name)
        before = self.variables.get(key)
        if given is not None and given.type == "array":
            items = tuple(self._words(given.named_children))
            items = (
                (*(before.items if before.items is not None else (before.value,)), *items)
                if appends and before
                else items
            )
            self._assign(key, joined(items), self._line(node), items=items, appends=appends, export=export)
            return YES
        now, self.variables = self.variables, self.variables if begin is None else begin
        value = self._text(given)
        self.variables = now
        if appends:
            if before and before.items is not None:
                self._lose([key], "a list to which a text is appended")
                return YES
            value = (before.value if before else Value("", default=True)) + value
        self._assign(key, value, self._line(node), appends=appends, export=export)
        return YES

    def _declaration_command(self, node: Node) -> Truth:
        word, *rest = node.children
        options = [text_of(child) for child in rest if child.type == "word" and text_of(child).startswith("-")]
        exports = word.type == "export" or any("x" in one for one in options)
        begin = dict(self.variables)
        if word.type != "export" and not any("g" in one for one in options):
            assigned = [named(child, "name") for child in rest if child.type == "variable_assignment"]
            names = [*assigned, *(child for child in rest if child.type == "variable_name")]
            self._make_local([text_of(child) for child in names if child.type == "variable_name"], self._line(node))
        for child in rest:
            if child.type == "variable_assignment":  # its words are expanded before the first is assigned
                self._variable_assignment(child, begin, export=exports and "-n" not in options)
            elif child.type == "variable_name":
                name = text_of(child)
                if (before := self.variables.get(name)) and exports:
                    self.variables[name] = replace(before, exported="-n" not in options)
                    if "-n" not in options:
                        given = Reading(
                            name, (before.value,), before.line, before.kind, self._condition or before.condition
                        )
                        self.result.readings.append(given)
                elif exports and self._condition:
                    self.result.unread.append((self._line(node), f"{text_of(node)}, under {self._condition}"))
                elif exports:
                    self._exports = self._exports - {name} if "-n" in options else self._exports | {name}
                elif word.type in ("local", "declare", "typeset"):
                    self.variables.setdefault(name, Variable(EMPTY, self._line(node)))
        return YES

    def _make_local(self, names: Sequence[str], line: int) -> None:
        """Have a function variables of its own from here on, which are exported if those outside are."""
        for name in names:
            if self._locals is None or (name in self._locals and name not in self._perhaps_local):
                continue
            outside = self.variables.pop(name, None)
            if name in self._perhaps_local:
                self._lose([name], "which can be local before")
                continue
            self._locals = self._locals | {name: outside}
            if outside and outside.exported:  # it is not in the environment as long as it has no value
                self.variables[name] = replace(
                    outside, value=unknown(f"{name}, local"), items=None, condition=f"{name} has a value"
                )

    def _unset_command(self, node: Node) -> Truth:
        for child in node.named_children:
            self.variables.pop(text_of(child), None)
            self._exports -= {text_of(child)}
        return YES

    def _redirected_statement(self, node: Node) -> Truth:
        body = node.child_by_field_name("body")
        if body is None:
            return YES
        reads = Value("", "")
        has_text = False
        for redirect in node.named_children:
            if redirect.type == "heredoc_redirect":
                begin = text_of(next(nodes(redirect, "heredoc_start")))
                inside = next(nodes(redirect, "heredoc_body"), None)
                if inside is not None:
                    quoted = begin[:1] in "\"'\\"
                    reads, has_text = (Value(text_of(inside)) if quoted else self._inside(inside)), True
                rest = [child for child in redirect.named_children if child.type in ("pipeline", "list", "command")]
                behind = redirect.children_by_field_name("argument")
                with self._reading_nothing(False):
                    self._with(body, reads.text if has_text else "", behind)
                return self._all(rest) if rest else _RAN
        sources = [text_of(one) for one in node.named_children if one.type == "file_redirect" and "<" in text_of(one)]
        behind = [
            word
            for one in node.named_children
            if one.type == "file_redirect"
            for word in one.children_by_field_name("destination")[1:]
        ]
        nothing = bool(re.fullmatch(r"0?<\s*/dev/null", sources[-1])) if sources else self._reads_nothing
        with self._reading_nothing(nothing and not any(one.type.startswith("here") for one in node.named_children)):
            return self._with(body, "", behind)

    def _with(self, body: Node, reads: str, behind: Sequence[Node] = ()) -> Truth:
        """Run a statement with what it reads. ``behind``: words of a command that stand behind a redirection."""
        if body.type == "command":
            return self._command(body, reads, behind)
        if body.type in STATEMENTS:
            return self._run(body)
        return self._all([body])

    # --- commands

    def _command(self, node: Node, reads: str = "", behind: Sequence[Node] = ()) -> Truth:
        prefix = [child for child in node.children if child.type == "variable_assignment"]
        arguments: list[Node] = []
        words: list[Value] = []
        for child in node.children:
            if child.type == "command_name":
                words += self._words(child.children)
            elif child.type == "herestring_redirect":
                reads = self._text(child.named_children[-1]).text
            elif child.type not in ("file_redirect", "heredoc_redirect", "variable_assignment"):
                arguments.append(child)
        arguments += behind
        words += self._words(arguments)  # before the assignments in front of it
        before = dict(self.variables)
        for assignment in prefix:
            self._variable_assignment(assignment, export=True)
        own = {text_of(named(one, "name")) for one in prefix}
        has_text = any(child.type == "herestring_redirect" for child in node.children)
        with self._reading_nothing(self._reads_nothing and not has_text):
            status = self._program(words, arguments, own, self._line(node), reads)
        if own:
            self.variables = before
        return status

    def _program(self, words: list[Value], arguments: list[Node], own: set[str], line: int, reads: str) -> Truth:
        """Run a command with variables that it has alone."""
        if not words:
            return YES
        name = words[0].known
        if name == MARK:
            return self._skip(words[1:], line)
        if name in self._functions:
            return self._call(name, tuple(words[1:]))
        if name in _QUIET:
            return Truth(_QUIET[name])
        if name in _BUILTINS:
            return self._builtin(name, words[1:], arguments, line)
        while name in _WRAPPERS and len(words) > 1:
            words = self._unwrapped(name, words[1:], own, line)
            name = words[0].known if words else ""
        exported = {key: one for key, one in self.variables.items() if one.exported}
        is_script = all(word.text.startswith("-") for word in words[1:]) or any(w.text == "-s" for w in words[1:])
        text = reads if name in _SHELLS and is_script else ""
        if name in _SHELLS and len(words) > 2 and _RUNS_TEXT.fullmatch(words[1].text):
            if words[2].unknown:
                self.result.unread.append((line, f"{words[2].unknown} in a text that {name} runs"))
            else:
                text = words[2].text
        if text and self._depth < _DEEPEST:
            begin = line + 1 if text is reads and "\n" in text else line
            inner = _Shell(dict(exported), self._folder, begin, self._depth + 1)
            inner._branch = self._condition
            inner.script(text)
            self.result.add(inner.result)
            return _RAN
        if words:
            given = Command(tuple(words), line, self._condition, exported, frozenset(own), self._folder, reads)
            self.result.commands.append(given)
        return _RAN

    def _unwrapped(self, name: str, words: list[Value], own: set[str], line: int) -> list[Value]:
        """Return the words behind those of a program that runs the rest; what it assigns is that command's."""
        at = 0
        while at < len(words) and words[at].text.startswith("-"):
            at += 1 + (len(words[at].text) == 2 and words[at].text[1] in _WRAPPERS[name])
        if name == "timeout":
            at += 1
        while name in ("env", "sudo") and at < len(words) and (found := ASSIGNMENT.fullmatch(words[at].text)):
            self._assign(found[1], replace(words[at], text=found[2]), line, export=True)
            own.add(found[1])
            at += 1
        return words[at:]

    def _builtin(self, name: str, words: list[Value], arguments: list[Node], line: int) -> Truth:
        texts = [word.text for word in words]
        if name in ("exit", "return"):
            self._ended = name
        elif name in ("cd", "pushd"):
            given = [text for text in texts if not text.startswith("-")]
            self._folder = given[0] if given else "~"
        elif name == "shift":
            count = int(texts[0]) if texts and texts[0].isdigit() else 1
            self.arguments = self.arguments[count:] if self.arguments else self.arguments
        elif name == "set":
            changes = {"-a", "+a", "allexport"} & set(texts)
            if changes and self._condition:
                self.result.unread.append((line, f"set {texts[0]}, under {self._condition}"))
            elif changes:
                self._exports_all = "+a" not in texts and "+o" not in texts
            if "--" in texts:
                self.arguments = tuple(words[texts.index("--") + 1 :])
        elif name == "eval":
            inner = joined(words)
            if inner.unknown:
                self.result.unread.append((line, f"eval {inner.text}"))
                self._lose(_ASSIGNS.findall(inner.text), "by eval")
            else:
                self._text_of_script(inner.text)
        elif name == "read" and self._reads_nothing and all(word.isidentifier() or word == "-r" for word in texts):
            for word in [word for word in texts if word != "-r"] or ["REPLY"]:
                self._assign(word, EMPTY, line)
            return NO
        elif name in ("read", "mapfile", "readarray", "getopts"):
            self._lose([text for text in texts if text.isidentifier()], f"by {name}")
            return UNKNOWN if name in ("read", "getopts") else YES
        elif name == "printf" and texts[:1] == ["-v"]:
            self._lose(texts[1:2], "by printf")
        elif name in ("test", "["):
            signs = [text_of(one) for one in arguments]
            if len(arguments) == 2 and signs[0] in ("-z", "-n"):
                empty = _is_empty(self._text(arguments[1]))
                return empty if signs[0] == "-z" else ~empty
            if len(arguments) == 3:
                return self._compared(arguments[0], signs[1], arguments[2], extended=False)
            return UNKNOWN
        else:  # source, . and others of which nothing is followed
            self.result.commands.append(
                Command((Value(name), *words), line, self._condition, {}, frozenset(), self._folder)
            )
        return YES if name != "printf" else _RAN

    # --- words

    def _words(self, given: Iterable[Node]) -> list[Value]:
        """Return the words that the shell makes of these, which it takes apart at blanks outside of quotes."""
        result = list[Value]()
        for node in given:
            result += self._split(list(self._pieces(node)))
        return result

    def _split(self, pieces: list[_Piece]) -> list[Value]:
        words: list[Value] = []
        open_: Value | None = None
        for piece in pieces:
            if piece.items is not None:
                parts = list(piece.items)
                ends = False
                if not parts:
                    continue
            elif piece.quoted or piece.value.unknown:
                parts, ends = [piece.value], False
            else:
                text = piece.value.text
                parts = [replace(piece.value, text=part) for part in text.split()]
                if text[:1].isspace() and open_ is not None:
                    words.append(open_)
                    open_ = None
                ends = text[-1:].isspace()
            for at, part in enumerate(parts):
                if at:
                    assert open_ is not None
                    words.append(open_)
                    open_ = None
                open_ = part if open_ is None else open_ + part
            if ends and open_ is not None:
                words.append(open_)
                open_ = None
        return [*words, open_] if open_ is not None else words

    def _text(self, node: Node | None) -> Value:
        """Return a word as an assignment takes it: as one."""
        if node is None:
            return EMPTY
        parts = [joined(piece.items) if piece.items is not None else piece.value for piece in self._pieces(node)]
        return joined(parts, "")

    def _pieces(self, node: Node) -> Iterator[_Piece]:
        kind, text = node.type, text_of(node)
        if (
            kind
            in ("word", "number", "extglob_pattern", "regex", "variable_name", "special_variable_name", "test_operator")
            or not node.is_named
        ):
            plain = re.sub(r"\\(\n|.)", lambda found: "" if found[1] == "\n" else found[1], text, flags=re.DOTALL)
            yield _Piece(
                unknown(text) if _BRACES.search(text) or (kind == "extglob_pattern" and "(" in text) else Value(plain)
            )
        elif kind == "raw_string":
            yield _Piece(Value(text[1:-1]))
        elif kind == "ansi_c_string":
            yield _Piece(unknown(text) if "\\" in text else Value(text[2:-1]))
        elif kind == "string":
            if (
                len(node.named_children) == 1
                and (items := self._items(node.named_children[0])) is not None
                and text[1:-1] == text_of(node.named_children[0])
            ):
                yield _Piece(EMPTY, items=items)
            else:
                yield _Piece(self._inside(node, 1))
        elif kind == "translated_string":
            yield _Piece(self._inside(node.named_children[0], 1))
        elif kind == "concatenation":
            if _BRACES.search(text) and not re.search(r"[\"'$]", text):
                yield _Piece(unknown(text))
                return
            for child in node.children:
                yield from self._pieces(child)
        elif kind in ("simple_expansion", "expansion"):
            lead = len(text) - len(text.lstrip())
            if (items := self._items(node)) is not None:
                split = tuple(word for item in items for word in (self._split([_Piece(item, quoted=False)])))
                yield _Piece(EMPTY, items=split)
            else:
                if lead:
                    yield _Piece(Value(text[:lead]))
                yield _Piece(self._expanded(node), quoted=False)
        else:
            if kind == "command_substitution":
                with self._kept():
                    self._all(node.named_children)
            yield _Piece(unknown(text), quoted=False)

    def _inside(self, node: Node, quotes: int = 0) -> Value:
        """Return a text in which expansions are replaced, and nothing is taken apart."""
        result, source = EMPTY, node.text or b""
        at = quotes
        for child in node.named_children:
            if child.type in ("string_content", "heredoc_content"):
                continue
            begin, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
            whole = text_of(child)
            lead = len(whole) - len(whole.lstrip())
            result += Value(_unescaped(source[at : begin + lead].decode()))
            items = self._items(child)
            if items is not None:
                result += joined(items)
            elif child.type in ("simple_expansion", "expansion"):
                result += self._expanded(child)
            else:
                with self._kept():
                    self._all(child.named_children if child.type == "command_substitution" else ())
                result += unknown(whole)
            at = end
        return result + Value(_unescaped(source[at : len(source) - quotes].decode()))

    def _items(self, node: Node) -> tuple[Value, ...] | None:
        """Return the words of ``$@`` or ``${A[@]}``; None for any other expansion."""
        text = text_of(node).strip()
        if text in ("$@", "${@}", "$*", "${*}"):
            return self.arguments if self.arguments is not None else (unknown("$@"),)
        found = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", text)
        if not found:
            return None
        variable = self.variables.get(found[1])
        if variable is None:
            return (Value("", text, default=True),)
        return variable.items if variable.items is not None else (variable.value,)

    def _expanded(self, node: Node) -> Value:
        """Return the value of ``$A`` or ``${A…}``."""
        text = text_of(node).strip()
        names = [
            child
            for child in node.named_children
            if child.type in ("variable_name", "special_variable_name", "subscript")
        ]
        operators = [child for child in node.children_by_field_name("operator") if child is not None]
        sign = text_of(operators[0]) if operators else ""
        if len(names) < 1 or names[0].type == "subscript" or text.startswith(("${!", "${#", "$#", "$?", "$$")):
            return unknown(text)
        name = text_of(names[0])
        value = self._variable(name)
        if not sign:
            return value if re.fullmatch(r"\$\{?\w+\}?", text) else unknown(text)
        rest = [child for child in node.children if child.start_byte >= operators[0].end_byte and child.type != "}"]
        if sign in (":-", "-", ":=", "="):
            is_missing = self._is_missing(name)
            if not is_missing and (value.unknown or value.text or not sign.startswith(":")):
                return value
            other = joined((self._text(child) for child in rest), "")
            other = replace(other, default=True) if is_missing else other
            if sign.endswith("="):
                self._assign(name, other, self._line(node))
            return other
        if sign in (":+", "+"):
            if self._is_missing(name):
                return Value("", default=True)
            if value.unknown:
                return unknown(text)
            return joined((self._text(child) for child in rest), "") if value.text or sign == "+" else EMPTY
        if sign in (":?", "?"):
            return value
        return self._changed(value, sign, list(rest), text)

    def _changed(self, value: Value, sign: str, rest: list[Node], text: str) -> Value:
        """Return what ``${A//x/y}``, ``${A^^}`` and their like make of a value."""
        if value.unknown:
            return unknown(text)
        parts = [text_of(child) for child in rest if child.is_named]
        if sign in ("^^", ",,") and not parts:
            return replace(value, text=value.text.upper() if sign == "^^" else value.text.lower())
        is_plain = all(re.fullmatch(r"[\w.;,:+ -]*", part) for part in parts)
        if sign in ("/", "//") and is_plain and 1 <= len(parts) <= 2 and parts[0]:
            new = parts[1] if len(parts) > 1 else ""
            return replace(value, text=value.text.replace(parts[0], new, -1 if sign == "//" else 1))
        if sign in ("#", "%") and is_plain and len(parts) == 1:
            cut = value.text.removeprefix(parts[0]) if sign == "#" else value.text.removesuffix(parts[0])
            return replace(value, text=cut)
        return unknown(text)

    def _is_missing(self, name: str) -> bool:
        """Return whether a variable can have a value of the user's environment alone."""
        is_argument = name.isdigit() and self.arguments is not None
        return name not in self.variables and not (is_argument and 0 < int(name) <= len(self.arguments or ()))

    def _variable(self, name: str) -> Value:
        if name.isdigit() and self.arguments is not None:
            at = int(name)
            return self.arguments[at - 1] if 0 < at <= len(self.arguments) else Value("") if at else unknown("$0")
        if (variable := self.variables.get(name)) is not None:
            return variable.items[0] if variable.items else variable.value
        self.result.used.add(name)
        return Value(f"${name}", f"${name}", default=True)


_BUILTINS = (
    "cd",
    "pushd",
    "popd",
    "exit",
    "return",
    "shift",
    "set",
    "eval",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "test",
    "[",
    "source",
    ".",
)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\"$`\\]|\n)", lambda found: "" if found[1] == "\n" else found[1], text)


def _is_empty(value: Value) -> Truth:
    if value.unknown:
        return Truth(True, by_default=True) if value.default and re.fullmatch(r"\$\w+", value.text) else UNKNOWN
    return Truth(not value.text, value.default)


def _short(node: Node) -> str:
    text = " ".join(text_of(node).split())
    return text if len(text) <= 40 else f"{text[:40]}…"
