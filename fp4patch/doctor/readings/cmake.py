"""CMake files, as CMake runs them where the user sets nothing: variables, lists, conditions, loops, functions.

What another file or program gives is not followed. A function that is not in the file can change each variable that it
is given by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from packaging.version import Version

from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import (
    NO,
    UNKNOWN,
    Kind,
    Read,
    Reading,
    Truth,
    Value,
    all_of,
    any_of,
    both,
    elements_of,
    unknown,
)
from fp4patch.doctor.readings.releases import compared, is_release
from fp4patch.edits.cmake import Argument, Command, Form, parse

Values = tuple[Value, ...]
_REFERENCE = re.compile(r"\$(ENV|CACHE)?\{([^${}]*)\}|\\([\s\S])")
_TRUE = frozenset(("1", "ON", "YES", "TRUE", "Y"))
_FALSE = frozenset(("0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", ""))
_BEGINS = ("if", "foreach", "while", "function", "macro", "block")
_OF_USER = re.compile(r"ARCH|SM|GENCODE")
"""Names of variables that a user sets, and which nothing else does before."""
_VERSION = {"GREATER": ">", "LESS": "<", "EQUAL": "==", "GREATER_EQUAL": ">=", "LESS_EQUAL": "<="}
_OPTIONS = frozenset(
    ("add_compile_options", "target_compile_options", "cuda_add_library", "cuda_add_executable", "cuda_compile")
)
_SAYS = frozenset(
    (
        "message",
        "mark_as_advanced",
        "cmake_minimum_required",
        "project",
        "include_directories",
        "install",
        "enable_language",
        "cmake_policy",
    )
)
_PASSES = frozenset(
    ("execute_process", "externalproject_add", "add_custom_command", "add_custom_target", "fetchcontent_declare")
)
_DEFINES = frozenset(("add_compile_definitions", "add_definitions", "target_compile_definitions"))
# Example: ENABLE_NVFP4=1
_MACRO = re.compile(r"(?:-D)?([A-Z_][A-Z0-9_]{3,})(?:=([\w.]+))?")
_DEEPEST = 8
_HIDDEN = str.maketrans("${\\", "\1\2\3")
_SHOWN = str.maketrans("\1\2\3", "${\\")


def read_cmake(text: str, cuda: Version) -> Read:
    """Return what a CMake file says."""
    script = _Script(cuda)
    script.run(parse(text).commands)
    script.finish()
    return script.result


class _Script:
    """A CMake file, from the first command to the last."""

    def __init__(self, cuda: Version) -> None:
        self.result = Read()
        self.variables: dict[str, Values] = {}
        self._cuda = cuda
        self._lines: dict[str, int] = {}
        self._kinds: dict[str, Kind] = {}
        self._used: set[str] = set()
        self._functions: dict[str, tuple[Command, Sequence[Command]]] = {}
        self._called: set[str] = set()
        self._doubtful: set[str] = set()
        """Functions that are defined anew under a condition that is not known."""
        self._cache: dict[str, Values] = {}
        self._parent: dict[str, Values | None] | None = None
        """What a function sets for its caller."""
        self._condition = ""
        self._by_default = False
        self._targets: dict[tuple[str, str], Reading] = {}
        self._depth = 0
        self._ended = False

    # --- blocks

    def run(self, commands: Sequence[Command]) -> None:
        """Run commands one after another."""
        at = 0
        while at < len(commands) and not self._ended:
            command = commands[at]
            end = _end(commands, at) if command.name in _BEGINS else at
            inside = commands[at + 1 : end]
            if command.name == "if":
                self._if([(command, at + 1), *_branches(commands, at, end)], commands, end)
            elif command.name == "foreach":
                self._foreach(command, inside)
            elif command.name == "while":
                self._some_times(inside, "a loop")
            elif command.name in ("function", "macro"):
                if command.arguments:
                    name = command.arguments[0].text.lower()
                    self._doubtful |= {name} if self._condition and name in self._functions else set()
                    self._functions[name] = command, inside
            elif command.name == "block":
                self.run(inside)
            else:
                self._command(command)
            at = end + 1

    def finish(self) -> None:
        """Read what functions do that the file does not call, and what its variables hold at its end."""
        for name in [name for name in self._functions if name not in self._called]:
            before = dict(self.variables)
            with self._under(f"{name}() is called"):
                self._called.add(name)
                self.run(self._functions[name][1])
            self.variables = before
        for name, values in self.variables.items():
            counts = list_name(name) and (name not in self._used or name == "CMAKE_CUDA_ARCHITECTURES")
            if counts or re.fullmatch(r"CMAKE_CUDA_FLAGS\w*|CUDA_NVCC_FLAGS\w*", name):
                group = "" if counts else "words"
                given = Reading(
                    name, values, self._lines.get(name, 1), self._kinds.get(name, Kind.ASSIGNED), group=group
                )
                self.result.readings.append(given)
        self.result.readings += self._targets.values()

    @contextmanager
    def _under(self, condition: str) -> Iterator[None]:
        before, self._condition = self._condition, both(self._condition, condition)
        yield
        self._condition = before

    def _if(self, branches: Sequence[tuple[Command, int]], commands: Sequence[Command], end: int) -> None:
        if not branches:
            return
        (command, begin), *others = branches
        body = commands[begin : others[0][1] - 1 if others else end]
        if command.name == "else":
            self.run(body)
            return
        truth, condition = self._truth(command.arguments), _words(command)
        if truth.holds is None:
            self._either(condition, lambda: self.run(body), lambda: self._if(others, commands, end))
        elif not truth.by_default:
            self.run(body) if truth.holds else self._if(others, commands, end)
        else:
            before, self._by_default = self._by_default, True
            self.run(body) if truth.holds else self._if(others, commands, end)
            self._by_default = before
            ended, self._ended = self._ended, False
            if ended:  # the file ends where the user sets nothing
                self._if(others, commands, end) if truth.holds else self.run(body)

    def _either(self, condition: str, one: Callable[[], None], other: Callable[[], None]) -> None:
        begin, states = dict(self.variables), []
        for branch, under in ((one, condition), (other, f"not {condition}")):
            self.variables = dict(begin)
            with self._under(under):
                branch()
            if not self._ended:
                states.append((under, self.variables))
            ended, self._ended = self._ended, False
        if not states:
            self._ended = ended
        elif len(states) == 1:
            self.variables = states[0][1]
        else:
            names = dict.fromkeys(name for _, state in states for name in state)
            merged = {name: elements_of(*((under, state.get(name)) for under, state in states)) for name in names}
            is_set = {name for name in names if all(name in state for _, state in states)}
            self.variables = {name: values for name, values in merged.items() if values or name in is_set}

    def _some_times(self, body: Sequence[Command], condition: str) -> None:
        before = dict(self.variables)
        with self._under(condition):
            self.run(body)
        for name, values in self.variables.items():
            if before.get(name) != values:
                self.variables[name] = (unknown(f"{name}, in {condition}"),)

    def _foreach(self, command: Command, body: Sequence[Command]) -> None:
        name, *rest = self._arguments(command)
        words = [value.text for value in rest]
        if words[:1] == ["RANGE"] or (words[:1] == ["IN"] and "ZIP_LISTS" in words):
            self.variables[name.text] = (unknown(name.text),)
            self._some_times(body, _words(command))
            return
        values = list[Value]()
        if words[:1] == ["IN"]:
            mode = ""
            for value in rest[1:]:
                if value.text in ("LISTS", "ITEMS"):
                    mode = value.text
                else:
                    values += self._list(value.text) if mode == "LISTS" else [value]
        else:
            values = rest
        broken = any(inside.name in ("break", "continue") for inside in body)
        if broken or len(values) > 64 or any(value.unknown for value in values):
            self.variables[name.text] = (unknown(name.text),)
            self._some_times(body, _words(command))
            return
        before = self.variables.get(name.text)
        for value in values:
            self.variables[name.text] = (replace(value, condition=""),)
            with self._under(value.condition):
                self._either(value.condition, lambda: self.run(body), lambda: None) if value.condition else self.run(
                    body
                )
        self._set(name.text, before)

    def _call(self, command: Command) -> None:
        self._called.add(command.name)
        if command.name in self._doubtful:
            self.result.unread.append((command.line, f"{command.name} is defined twice"))
            self.variables = {name: (unknown(f"{name}, by {command.name}"),) for name in self.variables}
            return
        if self._depth >= _DEEPEST:
            return
        head, body = self._functions[command.name]
        values = self._arguments(command)
        names = [argument.text for argument in head.arguments[1:]]
        given: dict[str, Values] = {name: (value,) for name, value in zip(names, values, strict=False)}
        given |= dict.fromkeys(names[len(values) :], ())
        given |= {"ARGN": tuple(values[len(names) :]), "ARGV": tuple(values)}
        before = dict(self.variables)
        self.variables |= given
        self._depth += 1
        parents: dict[str, Values | None] = {}
        outer, self._parent = self._parent, parents if head.name == "function" else None
        self.run(body)
        self._ended = False
        self._parent = outer
        self._depth -= 1
        if head.name == "function":
            self.variables = before
            for name, value in parents.items():
                self._set(name, value)
        else:
            for name in given:
                self._set(name, before.get(name))

    def _set(self, name: str, values: Values | None) -> None:
        self.variables.pop(name, None)
        if values is not None:
            self.variables[name] = values

    # --- commands

    def _command(self, command: Command) -> None:
        name = command.name
        if name in self._functions:
            self._call(command)
        elif name in ("set", "list", "string", "unset", "option"):
            getattr(self, f"_{name}_command")(command, self._arguments(command))
        elif name == "return":
            self._ended = True
        elif name == "message":
            self._ended = (
                bool(command.arguments)
                and command.arguments[0].text in ("FATAL_ERROR", "SEND_ERROR")
                and not self._condition
            )
            self._ended |= bool(command.arguments) and command.arguments[0].text == "FATAL_ERROR"
        elif name in _DEFINES:
            self._macros(command)
        elif name in ("set_target_properties", "set_property", "set_source_files_properties"):
            self._properties(command)
        elif name in _PASSES:
            values = tuple(self._arguments(command))
            under = f"{name} {values[0].text}" if values else name
            self.result.readings.append(
                Reading("words", values, command.line, Kind.PASSED, under, group="words", partial=True)
            )
        elif name not in _SAYS:
            self._other(command)

    def _other(self, command: Command) -> None:
        values = self._arguments(command)
        if command.name == "find_package" and values and values[0].text == "Torch":
            self.result.used.add("TORCH_CUDA_ARCH_LIST")
        if any("gencode" in value.text or "-arch" in value.text or "generate-code" in value.text for value in values):
            target = values[0].text if not command.name.startswith("add_compile") else ""
            words = tuple(inner for value in values for inner in self._of_language(value))
            self._add(
                target,
                Reading("words", words, command.line, condition=self._condition, group="words", partial=bool(target)),
            )
        if command.name not in _OPTIONS:
            for argument in command.arguments:
                if argument.text in self.variables:
                    self.variables[argument.text] = (unknown(f"{argument.text}, by {command.name}"),)
                elif re.fullmatch(r"[A-Za-z_]\w*", argument.text) and list_name(argument.text):
                    self.variables[argument.text] = (unknown(f"{argument.text}, by {command.name}"),)
                    self._lines[argument.text] = command.line

    def _of_language(self, value: Value) -> Iterator[Value]:
        """Yield the words of ``$<$<COMPILE_LANGUAGE:CUDA>:…>``, which has them for CUDA sources."""
        found = re.fullmatch(r"\$<\$<COMPILE_LANGUAGE:CUDA>:(.*)>", value.text, re.DOTALL)
        if found:
            yield from (replace(value, text=part.removeprefix("SHELL:")) for part in found[1].split(";"))
        else:
            yield replace(value, text=value.text.removeprefix("SHELL:"))

    def _add(self, target: str, reading: Reading) -> None:
        key = target, reading.name
        before = self._targets.get(key)
        values = tuple(replace(value, condition=both(value.condition, reading.condition)) for value in reading.values)
        joins = before and reading.name == "words"
        self._targets[key] = replace(
            reading, values=(*(before.values if joins and before else ()), *values), condition=""
        )

    def _properties(self, command: Command) -> None:
        names = [argument.text for argument in command.arguments]
        if "CUDA_ARCHITECTURES" not in names[1:-1]:
            return
        at = names.index("CUDA_ARCHITECTURES") + 1
        given = command.arguments[at:] if command.name == "set_property" else command.arguments[at : at + 1]
        elements = tuple(value for argument in given for value in self._unquoted(argument))
        target = names[1] if command.name == "set_property" else names[0]
        self._add(target, Reading(names[at - 1], elements, command.line, condition=self._condition, partial=True))

    def _macros(self, command: Command) -> None:
        if not self._condition:
            for value in self._arguments(command):
                if found := _MACRO.fullmatch(value.text):
                    self.result.macros[found[1]] = found[2] or "1"

    def _set_command(self, command: Command, values: list[Value]) -> None:
        if not values:
            return
        name, *rest = values
        words = [value.text for value in rest]
        if found := re.fullmatch(r"ENV\{(\w+)\}", name.text):
            given = Reading(found[1], tuple(rest[:1]) or (Value(""),), command.line, condition=self._condition)
            self.result.readings.append(given)
            return
        cached = "CACHE" in words
        if cached:
            at = words.index("CACHE")
            forced = "FORCE" in words[at:]
            rest = rest[:at]
            if not forced:
                kept = (unknown(f"{name.text}, under {self._condition}"),) if self._condition else _flat(rest)
                self._cache.setdefault(name.text, kept)
            if not forced and name.text in self.variables:
                return
            rest = [replace(value, default=value.default or not forced) for value in rest]
        in_parent = words[-1:] == ["PARENT_SCOPE"]
        if in_parent:
            rest = rest[:-1]
            if self._parent is not None:
                self._parent[name.text] = _flat(rest)
            return
        if self._by_default:
            rest = [replace(value, default=True) for value in rest]
        if rest or cached:
            self.variables[name.text] = _flat(rest)
        else:
            self._set(name.text, self._cache.get(name.text))
        self._lines[name.text] = command.line
        self._kinds[name.text] = Kind.DEFAULT if any(value.default for value in rest) else Kind.ASSIGNED

    def _option_command(self, command: Command, values: list[Value]) -> None:
        if values and values[0].text not in self.variables:
            self.variables[values[0].text] = (
                replace(values[2], default=True) if len(values) > 2 else Value("OFF", default=True),
            )

    def _unset_command(self, command: Command, values: list[Value]) -> None:
        for value in values[:1]:
            if len(values) > 1:
                self._cache.pop(value.text, None)
            self._set(value.text, self._cache.get(value.text))

    def _list_command(self, command: Command, values: list[Value]) -> None:
        if len(values) < 2:
            return
        mode, name, rest = values[0].text, values[1].text, values[2:]
        before = self.variables.get(name, ())
        self._lines[name] = command.line
        if mode in ("APPEND", "PREPEND"):
            rest = [replace(value, default=True) for value in rest] if self._by_default else rest
            if not before and name not in self.variables and _is_given(name):
                before = (Value(f"${{{name}}}", f"${{{name}}}", default=True),)
            self.variables[name] = (*before, *_flat(rest)) if mode == "APPEND" else (*_flat(rest), *before)
            self._kinds.setdefault(name, Kind.APPENDED)
        elif mode in ("REMOVE_ITEM", "REMOVE_DUPLICATES") and name not in self.variables:
            return
        elif mode == "REMOVE_ITEM" and not any(value.unknown or value.condition for value in (*rest, *before)):
            gone = {value.text for value in rest}
            self.variables[name] = tuple(value for value in before if value.text not in gone)
        elif mode == "REMOVE_DUPLICATES" and not any(value.unknown or value.condition for value in before):
            firsts = {value.text: value for value in reversed(before)}
            self.variables[name] = tuple(firsts[text] for text in dict.fromkeys(value.text for value in before))
        elif mode in ("LENGTH", "GET", "FIND", "JOIN", "SUBLIST"):
            self.variables[values[-1].text] = (unknown(f"list({mode} {name})"),)
        else:
            self.variables[name] = (unknown(f"list({mode} {name})"),)

    def _string_command(self, command: Command, values: list[Value]) -> None:
        mode, *rest = values
        words = [value.text for value in rest]
        if mode.text in ("APPEND", "PREPEND") and words:
            before = self._joined(self.variables.get(words[0], ()))
            added = Value("")
            for value in rest[1:]:
                added += value
            self._assign_text(words[0], before + added if mode.text == "APPEND" else added + before, command.line)
        elif mode.text == "CONCAT" and words:
            whole = Value("")
            for value in rest[1:]:
                whole += value
            self._assign_text(words[0], whole, command.line)
        elif mode.text == "REPLACE" and len(rest) == 4 and not any(value.unknown for value in rest):
            changed = replace(rest[3], text=rest[3].text.replace(words[0], words[1]))
            self._assign_text(words[2], changed, command.line)
        elif mode.text in ("TOLOWER", "TOUPPER", "STRIP") and len(rest) == 2 and not rest[0].unknown:
            changed_to = {"TOLOWER": words[0].lower(), "TOUPPER": words[0].upper(), "STRIP": words[0].strip()}
            self._assign_text(words[1], replace(rest[0], text=changed_to[mode.text]), command.line)
        else:
            at = {
                "REPLACE": 2,
                "REGEX": 3 if words[:1] == ["REPLACE"] else 2,
                "TOLOWER": 1,
                "TOUPPER": 1,
                "STRIP": 1,
            }.get(mode.text, 0)
            at = at if mode.text != "REGEX" else 3 if words[:1] == ["REPLACE"] else 2
            for name in {words[at]} if at < len(words) else set(words):
                self.variables[name] = (unknown(f"string({mode.text})"),)
                self._lines[name] = command.line

    def _assign_text(self, name: str, value: Value, line: int) -> None:
        self.variables[name] = _flat([value])
        self._lines[name] = line

    # --- arguments

    def _list(self, name: str) -> list[Value]:
        self._used.add(name)
        if name in self.variables:
            return list(self.variables[name])
        return [Value(f"${{{name}}}", f"${{{name}}}", default=True)] if _is_given(name) or True else []

    def _joined(self, values: Values) -> Value:
        result = Value("")
        for at, value in enumerate(values):
            marked = replace(value, unknown=value.unknown or value.condition) if len(values) > 1 else value
            result = result + Value(";" if at else "") + marked
        return result

    def _arguments(self, command: Command) -> list[Value]:
        found = list[Value]()
        for argument in command.arguments:
            if argument.form is Form.BRACKET:
                found.append(Value(argument.text))
            elif argument.form is Form.QUOTED and not (
                command.name in ("set", "list") and argument.text.startswith("${")
            ):
                found.append(self._expanded(argument.text))
            elif argument.form in (Form.UNQUOTED, Form.QUOTED):  # a list in quotes is the same list
                found += self._unquoted(argument)
            else:
                found.append(Value(argument.text))
        return found

    def _unquoted(self, argument: Argument) -> list[Value]:
        whole = re.fullmatch(r"\$\{([\w./+-]+)\}", argument.text)
        if whole and whole[1] in self.variables:
            self._used.add(whole[1])
            return [value for value in self.variables[whole[1]] if value.text]
        value = self._expanded(argument.text)
        if "$<" in value.text:
            return [value]
        return [replace(value, text=part.replace("\\;", ";")) for part in re.split(r"(?<!\\);", value.text) if part]

    def _expanded(self, text: str) -> Value:
        """Return a text with the values of the variables in it, the innermost first."""
        mark, default, condition = "", False, ""
        for _ in range(12):
            found = _REFERENCE.search(text) if "${" in text or "{" in text else None
            while found and found[3] is not None:
                found = _REFERENCE.search(text, found.end())
            if not found:
                break
            if found[1] == "ENV":
                self.result.used.add(found[2])
                value = Value("", f"$ENV{{{found[2]}}}", default=True)
            else:
                self._used.add(found[2])
                known = self.variables.get(found[2])
                value = self._joined(known) if known is not None else Value("", f"${{{found[2]}}}", default=True)
            if value.condition and found[0] != text:  # the text is there in any case, with it or without
                value = replace(value, unknown=value.unknown or value.condition, condition="")
            mark, default, condition = mark or value.unknown, default or value.default, both(condition, value.condition)
            shown = (value.unknown or value.text).translate(_HIDDEN)  # it is not expanded again
            text = text[: found.start()] + shown + text[found.end() :]
        text = re.sub(r"\\([^A-Za-z0-9;])", r"\1", text) if "\\" in text else text
        text = text.replace("\\n", "\n").replace("\\t", "\t") if "\\" in text else text
        return Value(text.translate(_SHOWN), mark, default, condition)

    # --- conditions

    def _truth(self, arguments: Sequence[Argument]) -> Truth:
        truth, rest = self._or(list(arguments))
        return truth if not rest else UNKNOWN

    def _or(self, words: list[Argument]) -> tuple[Truth, list[Argument]]:
        truth, words = self._and(words)
        found = [truth]
        while words and words[0].text == "OR" and words[0].form is Form.UNQUOTED:
            truth, words = self._and(words[1:])
            found.append(truth)
        return (any_of(found) if len(found) > 1 else found[0]), words

    def _and(self, words: list[Argument]) -> tuple[Truth, list[Argument]]:
        truth, words = self._not(words)
        found = [truth]
        while words and words[0].text == "AND" and words[0].form is Form.UNQUOTED:
            truth, words = self._not(words[1:])
            found.append(truth)
        return (all_of(found) if len(found) > 1 else found[0]), words

    def _not(self, words: list[Argument]) -> tuple[Truth, list[Argument]]:
        if words and words[0].text == "NOT":
            truth, words = self._not(words[1:])
            return ~truth, words
        if words and words[0].form is Form.PARENTHESIS and words[0].text == "(":
            truth, words = self._or(words[1:])
            return truth, words[1:]
        return self._term(words)

    def _term(self, words: list[Argument]) -> tuple[Truth, list[Argument]]:
        if not words:
            return UNKNOWN, []
        first = words[0].text
        if first == "DEFINED" and len(words) > 1:
            return self._is_defined(words[1].text), words[2:]
        if first in ("EXISTS", "TARGET", "COMMAND", "POLICY", "TEST", "IS_DIRECTORY", "IS_ABSOLUTE") and len(words) > 1:
            return UNKNOWN, words[2:]
        if len(words) > 2 and re.fullmatch(
            r"(?:VERSION_|STR)?(?:GREATER|LESS|EQUAL)(?:_EQUAL)?|MATCHES|IN_LIST|PATH_EQUAL", words[1].text
        ):
            return self._compared(words[0], words[1].text, words[2]), words[3:]
        return self._constant(words[0]), words[1:]

    def _is_defined(self, name: str) -> Truth:
        if found := re.fullmatch(r"ENV\{(\w+)\}", name):
            self.result.used.add(found[1])
            return Truth(False, by_default=True)
        if (values := self.variables.get(name)) is not None:
            if values and all(value.condition or value.unknown for value in values):
                return UNKNOWN
            return Truth(True, any(value.default for value in values))
        return Truth(False, by_default=True) if _OF_USER.search(name) else UNKNOWN

    def _constant(self, argument: Argument) -> Truth:
        value = self._expanded(argument.text)
        text = value.text
        if argument.form is Form.QUOTED or "$" in argument.text:
            if value.unknown:
                is_user = value.default and _OF_USER.search(value.unknown)
                return Truth(False, by_default=True) if is_user and value.unknown == text.strip('"') else UNKNOWN
            if argument.form is Form.QUOTED:
                return Truth(text.upper() in _TRUE, value.default) if text.upper() in _TRUE | _FALSE else NO
        if text.upper() in _TRUE or text.isdigit():
            return Truth(text.upper() in _TRUE or int(text) != 0, value.default)
        if text.upper() in _FALSE or text.upper().endswith("-NOTFOUND"):
            return Truth(False, value.default)
        known = self.variables.get(text)
        if known is None:
            return Truth(False, by_default=True) if _OF_USER.search(text) and argument.text == text else UNKNOWN
        self._used.add(text)
        joined = self._joined(known)
        if joined.unknown or joined.condition:
            return UNKNOWN
        is_false = joined.text.upper() in _FALSE or joined.text.upper().endswith("-NOTFOUND")
        return Truth(not is_false, joined.default)

    def _operand(self, argument: Argument) -> Value:
        if argument.form is Form.UNQUOTED and argument.text in self.variables:
            self._used.add(argument.text)
            return self._joined(self.variables[argument.text])
        return self._expanded(argument.text)

    def _compared(self, left: Argument, sign: str, right: Argument) -> Truth:
        one, other = self._operand(left), self._operand(right)
        if sign.startswith("VERSION_"):
            how = _VERSION[sign.removeprefix("VERSION_")]
            if is_release(left.text) and (one.unknown or left.text == one.text) and not other.unknown:
                return compared(self._cuda, how, other.text)
            return UNKNOWN
        if one.unknown or other.unknown or one.condition or other.condition:
            return UNKNOWN
        by_default = one.default or other.default
        if sign == "STREQUAL":
            return Truth(one.text == other.text, by_default) if one.text or other.text else UNKNOWN
        if sign == "IN_LIST":
            found = self.variables.get(right.text)
            if found is None or any(value.unknown or value.condition for value in found):
                return UNKNOWN
            return Truth(one.text in [value.text for value in found], by_default)
        if sign in _VERSION and re.fullmatch(r"-?\d+", one.text) and re.fullmatch(r"-?\d+", other.text):
            pair = int(one.text), int(other.text)
            holds = {"<": pair[0] < pair[1], ">": pair[0] > pair[1], "==": pair[0] == pair[1]}
            holds |= {"<=": not holds[">"], ">=": not holds["<"]}
            return Truth(holds[_VERSION[sign]], by_default)
        return UNKNOWN


def _flat(values: Sequence[Value]) -> Values:
    """Return the elements of a list: a text with a semicolon in it is several of them."""
    found = list[Value]()
    for value in values:
        parts = [value.text] if "$<" in value.text else re.split(r"(?<!\\);", value.text)
        found += [replace(value, text=part) for part in parts]
    return tuple(found) if len(found) != 1 or found[0].text or found[0].unknown else ()


def _is_given(name: str) -> bool:
    return name.startswith("CMAKE_") or bool(_OF_USER.search(name))


def _end(commands: Sequence[Command], at: int) -> int:
    """Return the index of the command that ends the block that begins here; the last one's if none does."""
    depth = 0
    name = commands[at].name
    for index in range(at, len(commands)):
        if commands[index].name == name:
            depth += 1
        elif commands[index].name == f"end{name}":
            depth -= 1
            if not depth:
                return index
    return len(commands)


def _branches(commands: Sequence[Command], at: int, end: int) -> list[tuple[Command, int]]:
    depth, found = 0, list[tuple[Command, int]]()
    for index in range(at + 1, end):
        name = commands[index].name
        depth += (name == "if") - (name == "endif")
        if not depth and name in ("elseif", "else"):
            found.append((commands[index], index + 1))
    return found


def _words(command: Command) -> str:
    text = " ".join(argument.text for argument in command.arguments)
    return f"{command.name}({text[:40]}{'…' * (len(text) > 40)})"
