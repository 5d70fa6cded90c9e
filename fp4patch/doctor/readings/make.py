"""Makefiles, as GNU make reads them where the user sets nothing: variables, functions, conditions, recipes.

The value of a variable is that at the end of the file where it is recursive. What the shell prints is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.grammar import line_of, lines_of, named, nodes, root, text_of
from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import (
    UNKNOWN,
    Kind,
    Read,
    Reading,
    Truth,
    Value,
    Variable,
    both,
    elements_of,
    joined,
    shared,
    unknown,
    without,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 24
# Example: -gencode
_FLAG = re.compile(r"(?:^|\s)-{1,2}(?:gencode|generate-code|arch|gpu-architecture|D\w)")
_KINDS = {"?=": Kind.DEFAULT, "+=": Kind.APPENDED}
_SILENT = ("info", "warning", "error")


def _is_damaged(node: Node) -> bool:
    """Return whether make refuses a line, or the grammar has it otherwise: as the begin of the next one."""
    heads = [node.child_by_field_name("name"), *(child for child in node.children if child.type == "targets")]
    is_long = any(head and re.search(r"(?<!\\)\n", text_of(head)) for head in heads)
    return node.type == "ERROR" or is_long or (node.type == "variable_assignment" and node.has_error)


@dataclass(frozen=True)
class _Text:
    """A part of a variable: a text that is expanded where the variable is used, or what it was expanded to."""

    text: str = ""
    values: tuple[Value, ...] | None = None
    condition: str = ""


@dataclass(frozen=True)
class _Variable:
    """A variable of make."""

    parts: tuple[_Text, ...]
    line: int
    kind: Kind = Kind.ASSIGNED
    recursive: bool = True


def read_make(text: str, cuda: Version) -> Read:
    """Return what a Makefile says."""
    makefile = _Makefile()
    makefile.run(text)
    makefile.finish()
    return makefile.result


class _Makefile:
    """A Makefile, from its first line to its last."""

    def __init__(self) -> None:
        self.result = Read()
        self.variables: dict[str, _Variable] = {}
        self._exported: set[str] = set()
        self._exports_all = False
        self._rules: list[tuple[Node, str]] = []
        self._used: set[str] = set()
        self._condition = ""
        self._before = 0
        self._depth = 0

    def run(self, text: str, line: int = 1) -> None:
        """Read lines of a Makefile."""
        before, self._before = self._before, line - 1
        self._all(root("make", text if text.endswith("\n") else f"{text}\n").children)
        self._before = before

    def finish(self) -> None:
        """Read the recipes, and what the variables hold at the end."""
        for rule, condition in self._rules:
            with self._under(condition):
                self._recipe(rule)
        expanded = {name: self.value(name) for name in list(self.variables)}
        for name, values in expanded.items():
            variable = self.variables[name]
            text = " ".join(value.text for value in values)
            is_flags = _FLAG.search(text) is not None
            exports = name in self._exported or self._exports_all
            if (list_name(name) or is_flags) and (name not in self._used or exports):
                group = "" if list_name(name) else "words"
                given = tuple(
                    replace(value, default=value.default or variable.kind is Kind.DEFAULT) for value in values
                )
                self.result.readings.append(Reading(name, given, variable.line, variable.kind, group=group))
            if is_flags:
                words = [value.text for value in values if not value.condition and not value.unknown]
                self.result.macros |= {
                    w[2:].partition("=")[0]: w.partition("=")[2] or "1" for w in words if re.match(r"-D\w", w)
                }

    @contextmanager
    def _under(self, condition: str) -> Iterator[None]:
        before, self._condition = self._condition, both(self._condition, condition)
        yield
        self._condition = before

    # --- lines

    def _all(self, children: Sequence[Node]) -> None:
        for node in children:
            self._run(node)

    def _run(self, node: Node) -> None:
        kind = node.type
        if _is_damaged(node):
            self._skip(node)
        elif kind == "variable_assignment" and node.child_by_field_name("target_or_pattern") is None:
            value = node.child_by_field_name("value")
            self._assign(
                text_of(named(node, "name")),
                text_of(named(node, "operator")),
                text_of(value) if value else "",
                self._line(node),
            )
        elif kind in ("export_directive", "override_directive"):
            inner = [child for child in node.named_children if child.type == "variable_assignment"]
            self._all(inner)
            names = [text_of(named(child, "name")) for child in inner]
            names += [
                text_of(word) for child in node.named_children if child.type == "list" for word in child.named_children
            ]
            if kind == "export_directive":
                self._exported |= set(names)
                self._exports_all |= not names and not inner
        elif kind == "unexport_directive":
            self._exported -= {text_of(word) for word in nodes(node, "word")}
        elif kind == "conditional":
            self._conditional(
                node, [child for child in node.named_children if child.type in ("elsif_directive", "else_directive")]
            )
        elif kind in ("define_directive", "shell_assignment", "undefine_directive"):
            name = node.child_by_field_name("name")
            if name is not None:
                self.variables[text_of(name)] = _Variable(
                    (_Text(values=(unknown(text_of(node)[:40]),)),), self._line(node)
                )
        elif kind == "rule":
            self._rules.append((node, self._condition))
        elif kind == "function_call":
            self._expanded(text_of(node), {})
        elif kind == "text":
            self._expanded(text_of(node), {})
            if "$" not in text_of(node):  # which could be a rule
                self._skip(node)

    def _skip(self, node: Node) -> None:
        """Pass over lines that are not read, after which nothing is known of what they assign."""
        first, last = lines_of(node)
        self.result.skip(self._before + first, self._before + last, "make does not have it so")
        for name in re.findall(r"([\w.-]+)\s*[:?+]*=", text_of(node)):
            self.variables[name] = _Variable((_Text(values=(unknown("a line that is not read"),)),), self._line(node))

    def _line(self, node: Node) -> int:
        return self._before + line_of(node)

    def _assign(self, name: str, sign: str, text: str, line: int) -> None:
        text = re.sub(r"\s*\\\n\s*", " ", text)
        text = re.sub(r"(?<!\\)#.*", "", text).lstrip().rstrip("\n")  # blanks before a comment are of the value
        name = joined(self._expanded(name, {})).text
        before = self.variables.get(name)
        if sign == "?=" and before is not None:
            values = [value for part in before.parts for value in part.values or ()]
            if any(part.condition for part in before.parts) or any(value.condition for value in values):
                self.variables[name] = replace(
                    before, parts=(_Text(values=(unknown(f"{name} ?= {text}"),)),), recursive=False
                )
            return
        if sign in ("+=",):
            if before is None:
                self.variables[name] = _Variable((_Text(text),), line, Kind.APPENDED)
            else:
                part = _Text(text) if before.recursive else _Text(values=self._expanded(text, {}))
                self.variables[name] = replace(before, parts=(*before.parts, part), line=before.line)
            return
        recursive = sign in ("=", "?=")
        part = _Text(text) if recursive else _Text(values=self._expanded(text, {}))
        self.variables[name] = _Variable((part,), line, _KINDS.get(sign, Kind.ASSIGNED), recursive)

    def _conditional(self, node: Node, others: Sequence[Node]) -> None:
        truth, condition = self._truth(named(node, "condition"))
        body = [child for child in node.children_by_field_name("consequence") if child.is_named]

        def other() -> None:
            if others and others[0].type == "else_directive":
                self._all([child for child in others[0].children_by_field_name("consequence") if child.is_named])
            elif others:
                self._conditional(others[0], others[1:])

        if truth.holds is None:
            begin = dict(self.variables)
            with self._under(condition):
                self._all(body)
            taken, self.variables = self.variables, dict(begin)
            with self._under(f"not {condition}"):
                other()
            names = dict.fromkeys((*taken, *self.variables))
            pairs = {name: (taken.get(name), self.variables.get(name)) for name in names}
            self.variables = {name: self._either(name, condition, *pair) for name, pair in pairs.items()}
        elif truth.by_default:
            begin = dict(self.variables)
            self._all(body) if truth.holds else other()
            for name, now in self.variables.items():
                if begin.get(name) is not now:
                    self.variables[name] = replace(now, kind=Kind.DEFAULT)
        else:
            self._all(body) if truth.holds else other()

    def _either(self, name: str, condition: str, one: _Variable | None, other: _Variable | None) -> _Variable:
        if one == other and one is not None:
            return one
        first = one or other
        assert first
        if one and other and one.recursive and other.recursive:
            common = shared((one.parts, other.parts))
            rest = [
                replace(part, condition=both(part.condition, under))
                for under, variable in ((condition, one), (f"not {condition}", other))
                for part in without(variable.parts, common)
            ]
            return replace(one, parts=(*common, *rest), line=max(one.line, other.line))
        values = [self._values(variable, name) if variable else None for variable in (one, other)]
        merged = elements_of((condition, values[0]), (f"not {condition}", values[1]))
        if not (one and other) and not merged:
            merged = (unknown(f"{name}, under {condition}"),)  # set to nothing, or not set
        return replace(first, parts=(_Text(values=merged),), recursive=False)

    def _truth(self, node: Node) -> tuple[Truth, str]:
        text = text_of(node)
        condition = " ".join(text.split())
        if found := re.match(r"\s*if(n?)def\s+([^\s#]+)", text):
            name = found[2]
            if "$" in name:
                return UNKNOWN, condition
            truth = self._is_defined(name)
            return (~truth if found[1] else truth), condition
        if found := re.match(r"\s*if(n?)eq\s*(.*)", text, re.DOTALL):
            sides = _sides(found[2].strip())
            if sides is None:
                return UNKNOWN, condition
            one, other = (self._expanded(side, {}) for side in sides)
            names = [re.fullmatch(r"\$[({]([\w.-]+)[)}]", side) for side in sides]
            missing = any(name and name[1] not in self.variables for name in names)
            truth = Truth(True, by_default=True) if missing and "" in sides else _equal(one, other)
            if truth.holds and any(side != side.strip() for side in sides):
                truth = UNKNOWN  # values have no blanks around them here
            return (~truth if found[1] else truth), condition
        return UNKNOWN, condition

    def _is_defined(self, name: str) -> Truth:
        """Return whether a variable has a text, be it one that expands to nothing."""
        known = self.variables.get(name)
        if known is None:
            return Truth(False, by_default=True)
        if any(part.values is None and part.text and not part.condition for part in known.parts):
            return Truth(True, known.kind is Kind.DEFAULT)
        values = [value for part in known.parts for value in part.values or () if not part.condition]
        if any(value.text and not value.unknown and not value.condition for value in values):
            return Truth(True, any(value.default for value in values))
        is_open = any(part.condition for part in known.parts) or any(
            value.unknown or value.condition for value in values
        )
        return UNKNOWN if is_open else Truth(False)

    def _recipe(self, rule: Node) -> None:
        """Read the commands of a rule that say themselves what they compile for."""
        environment = {
            name: Variable(
                joined(self.value(name)), self.variables[name].line, self.variables[name].kind, exported=True
            )
            for name in self.variables
            if name in self._exported or self._exports_all
        }
        for line in nodes(rule, "recipe_line"):
            text = text_of(line).lstrip("@-+ ")
            words = self._expanded(
                re.sub(r"\\\n\t?", " ", text).replace("$$", "\x01"),
                {"@": "$@", "<": "$<", "^": "$^", "*": "$*"},
                keep=True,
            )
            given = joined(words)
            script = given.text.replace("\x01", "$")
            found = shell.read(script, environment, line=self._line(line))
            for command in found.commands:
                own = tuple(
                    word if not given.unknown or "$(" not in word.text else unknown(word.text) for word in command.words
                )
                self.result.commands.append(
                    replace(command, words=own, condition=both(command.condition, self._condition))
                )
            self.result.used |= found.used
            self.result.unread += found.unread

    # --- values

    def value(self, name: str) -> tuple[Value, ...]:
        """Return the words of a variable at this point."""
        variable = self.variables.get(name)
        if variable is None:
            return (Value(f"$({name})", f"$({name})", default=True),)
        return self._values(variable, name)

    def _values(self, variable: _Variable, name: str) -> tuple[Value, ...]:
        if self._depth > _DEEPEST:
            return (unknown(f"$({name})"),)
        self._depth += 1
        found = list[Value]()
        for part in variable.parts:
            values = part.values if part.values is not None else self._expanded(part.text, {})
            found += [replace(value, condition=both(value.condition, part.condition)) for value in values]
        self._depth -= 1
        if variable.kind is Kind.DEFAULT:
            found = [replace(value, default=True) for value in found]
        return tuple(found)

    def _expanded(self, text: str, local: dict[str, str], *, keep: bool = False) -> tuple[Value, ...]:
        """Return the words of a text in which variables and functions are replaced.

        ``local``: values that come first; ``keep``: blanks stay as they are, and the result is one word.
        """
        pieces: list[Value | None] = []  # None: a blank
        plain = ""

        def flush() -> None:
            nonlocal plain
            if plain:
                parts = re.split(r"(\s+)", plain) if not keep else [plain]
                pieces.extend(Value(part) if keep or not part.isspace() else None for part in parts if part)
            plain = ""

        at = 0
        while at < len(text):
            letter = text[at]
            if letter != "$" or at + 1 == len(text):
                plain += letter
                at += 1
                continue
            following = text[at + 1]
            if following == "$":
                plain += "$"
                at += 2
                continue
            if following in "({":
                end = _close(text, at + 1)
                inside, at = text[at + 2 : end], end + 1
            else:
                inside, at = following, at + 2
            values = self._reference(inside, local)
            flush()
            if keep:
                pieces.append(joined(values))
            else:
                for index, value in enumerate(values):
                    pieces.extend([None, value] if index else [value])
                if not values:
                    pieces.append(Value(""))
        flush()
        if keep:
            whole = Value("")
            for piece in pieces:
                whole += piece if piece else Value(" ")
            return (whole,)
        words: list[Value] = []
        open_: Value | None = None
        for piece in pieces:
            if piece is None:
                words += [open_] if open_ is not None and (open_.text or open_.unknown) else []
                open_ = None
            else:
                open_ = piece if open_ is None else open_ + piece
        return tuple([*words, open_] if open_ is not None and (open_.text or open_.unknown) else words)

    def _reference(self, inside: str, local: dict[str, str]) -> tuple[Value, ...]:
        found = re.match(r"([a-z-]+)\s+(.*)", inside, re.DOTALL)
        if found and (do := _FUNCTIONS.get(found[1])):
            return do(self, _split(found[2]), local)
        if found and found[1] in (
            "shell",
            "wildcard",
            "file",
            "value",
            "origin",
            "flavor",
            "realpath",
            "abspath",
            "let",
            "intcmp",
            "guile",
        ):
            return (unknown(f"$({inside})"),)
        if "$" in inside:
            name = joined(self._expanded(inside, local))
            if name.unknown:
                return (unknown(f"$({inside})"),)
            inside = name.text
        if inside in local:
            return tuple(Value(part) for part in local[inside].split()) if local[inside] else ()
        if changed := re.fullmatch(r"([\w.-]+):([^=]*)=(.*)", inside, re.DOTALL):
            old, new = changed[2], changed[3]
            if "%" not in old:
                old, new = f"%{old}", f"%{new}"
            self._used.add(changed[1])
            return tuple(_patsubst(value, old, new) for value in self.value(changed[1]))
        self._used.add(inside)
        if inside not in self.variables:
            self.result.used.add(inside)
        return self.value(inside)

    # --- functions

    def _foreach(self, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
        name, values, text = (*arguments[:2], ",".join(arguments[2:]))
        found = list[Value]()
        for value in self._expanded(values, local):
            inner = self._expanded(text, local | {name.strip(): value.text})
            marked = [
                replace(one, unknown=one.unknown or value.unknown, condition=both(one.condition, value.condition))
                for one in inner
            ]
            found += marked
        return tuple(found)

    def _eval(self, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
        text = joined(self._expanded(",".join(arguments), local, keep=True))
        if text.unknown or text.condition:
            for name in re.findall(r"([\w.-]+)\s*[:?+]*=", text.text):
                self.variables[name] = _Variable((_Text(values=(unknown("$(eval)"),)),), 1)
        else:
            last = max([1, *(variable.line for variable in self.variables.values())])
            self.run(text.text, last)
        return ()

    def _each(self, change: Callable[[Value, str], Value]) -> Callable[[list[str], dict[str, str]], tuple[Value, ...]]:
        def run(arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
            first = joined(self._expanded(arguments[0], local))
            return tuple(change(value, first.text) for value in self._expanded(",".join(arguments[1:]), local))

        return run

    def _conditional_value(self, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
        test = self._expanded(arguments[0].strip(), local)
        then, other = arguments[1] if len(arguments) > 1 else "", ",".join(arguments[2:])
        known = joined(test)
        if known.unknown or known.condition:
            text = arguments[0].strip()
            one, two = self._expanded(then.strip(), local), self._expanded(other.strip(), local)
            return elements_of((text, one), (f"not {text}", two))
        return self._expanded((then if known.text else other).strip(), local)


def _sides(text: str) -> tuple[str, str] | None:
    """Return what an ``ifeq`` compares; blanks before and after the comma are none of it, others are."""
    text = re.sub(r"(?<!\\)#.*", "", text).strip()
    if text.startswith("("):
        inside = _split(text[1:-1]) if text.endswith(")") else []
        return (inside[0].rstrip(), inside[1].lstrip()) if len(inside) == 2 else None
    found = re.fullmatch(r"([\"'])(.*?)\1\s*([\"'])(.*?)\3", text)
    return (found[2], found[4]) if found else None


def _equal(one: tuple[Value, ...], other: tuple[Value, ...]) -> Truth:
    sides = joined(one), joined(other)
    if any(side.unknown or side.condition for side in sides):
        return UNKNOWN
    return Truth(sides[0].text == sides[1].text, sides[0].default or sides[1].default)


def _close(text: str, at: int) -> int:
    """Return the offset of the parenthesis that closes the one that is here."""
    opens, depth = text[at], 0
    closes = ")" if opens == "(" else "}"
    for index in range(at, len(text)):
        depth += (text[index] == opens) - (text[index] == closes)
        if not depth:
            return index
    return len(text)


def _split(text: str) -> list[str]:
    """Return the arguments of a function."""
    found, depth, begin = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and not depth:
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def _patsubst(value: Value, old: str, new: str) -> Value:
    if value.unknown:
        return value
    if "%" not in old:
        return replace(value, text=new) if value.text == old else value
    head, _, tail = old.partition("%")
    if not (value.text.startswith(head) and value.text.endswith(tail) and len(value.text) >= len(head) + len(tail)):
        return value
    stem = value.text[len(head) : len(value.text) - len(tail)]
    return replace(value, text=new.replace("%", stem, 1))


def _matches(value: Value, patterns: Sequence[Value]) -> bool:
    return any(re.fullmatch(".*".join(map(re.escape, pattern.text.split("%", 1))), value.text) for pattern in patterns)


def _filter(out: bool) -> Callable[[_Makefile, list[str], dict[str, str]], tuple[Value, ...]]:
    def run(makefile: _Makefile, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
        patterns = makefile._expanded(arguments[0], local)
        values = makefile._expanded(",".join(arguments[1:]), local)
        if any(value.unknown for value in (*patterns, *values)):
            return (unknown("$(filter)"),)
        return tuple(value for value in values if _matches(value, patterns) != out)

    return run


def _subst(makefile: _Makefile, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
    old, new = (joined(makefile._expanded(one, local, keep=True)) for one in arguments[:2])
    values = makefile._expanded(",".join(arguments[2:]), local)
    if old.unknown or new.unknown or " " in old.text or " " in new.text or not old.text:
        return (unknown("$(subst)"),)
    return tuple(
        value if value.unknown else replace(value, text=value.text.replace(old.text, new.text)) for value in values
    )


def _words_of(
    pick: Callable[[tuple[Value, ...], int], Sequence[Value]], numbered: bool = False
) -> Callable[[_Makefile, list[str], dict[str, str]], tuple[Value, ...]]:
    def run(makefile: _Makefile, arguments: list[str], local: dict[str, str]) -> tuple[Value, ...]:
        number = 0
        if numbered:
            given = joined(makefile._expanded(arguments[0], local))
            if given.unknown or not given.text.strip().isdigit():
                return (unknown("$(word)"),)
            number, arguments = int(given.text), arguments[1:]
        values = makefile._expanded(",".join(arguments), local)
        if any(value.unknown or value.condition for value in values):
            return (unknown("$(word)"),)
        return tuple(value for value in pick(values, number) if value.text)

    return run


_Function = Callable[[_Makefile, list[str], dict[str, str]], tuple[Value, ...]]
_FUNCTIONS: dict[str, _Function] = {
    "foreach": _Makefile._foreach,
    "eval": _Makefile._eval,
    "if": _Makefile._conditional_value,
    "addprefix": lambda m, a, local: m._each(lambda value, first: replace(value, text=first + value.text))(a, local),
    "addsuffix": lambda m, a, local: m._each(lambda value, first: replace(value, text=value.text + first))(a, local),
    "strip": lambda m, a, local: m._expanded(",".join(a), local),
    "subst": _subst,
    "patsubst": lambda m, a, local: tuple(
        _patsubst(value, joined(m._expanded(a[0], local)).text, joined(m._expanded(a[1], local)).text)
        for value in m._expanded(",".join(a[2:]), local)
    ),
    "filter": _filter(out=False),
    "filter-out": _filter(out=True),
    "firstword": _words_of(lambda values, _: values[:1]),
    "lastword": _words_of(lambda values, _: values[-1:]),
    "word": _words_of(lambda values, number: values[number - 1 : number], numbered=True),
    "words": _words_of(lambda values, _: (Value(str(len(values))),)),
    "sort": _words_of(lambda values, _: [Value(text) for text in sorted({value.text for value in values})]),
    **dict.fromkeys(_SILENT, lambda m, a, local: ()),
    **dict.fromkeys(
        ("or", "and", "call", "findstring", "join", "basename", "dir", "notdir", "wordlist", "suffix"),
        lambda m, a, local: (unknown("a function"),),
    ),
}
