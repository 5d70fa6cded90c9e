"""Files that are data or lines of words: TOML, CMake's presets, Bazel's options, justfiles, xmake's description."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from packaging.version import Version

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import Kind, Read, Reading, Value, Variable, unknown
from fp4patch.doctor.readings.shell import ASSIGNMENT

# Example: -DC
_FLAG = re.compile(r"\s*-{1,2}(?:gencode|generate-code|arch|gpu-architecture|D\w)")


def read_toml(text: str, cuda: Version) -> Read:
    """Return what pyproject.toml or kernel-builder's build.toml says. ValueError: it is not TOML."""
    result = Read()
    _table(tomllib.loads(text), text, result)
    return result


def read_presets(text: str, cuda: Version) -> Read:
    """Return what CMake's presets say. ValueError: it is not JSON."""
    result = Read()
    _table(json.loads(text), text, result)
    for reading in result.readings:
        result.readings[result.readings.index(reading)] = replace(reading, kind=Kind.PASSED)
    return result


def _table(value: object, text: str, result: Read) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            given = (
                inner["value"]
                if isinstance(inner, Mapping) and set(inner) <= {"type", "value"} and "value" in inner
                else inner
            )
            items = given if isinstance(given, list) else [given]
            texts = [one for one in items if isinstance(one, str | int | float) and not isinstance(one, bool)]
            values = tuple(Value(str(one)) for one in texts)
            line = _line(text, str(key), str(texts[0]) if texts else "")
            if list_name(str(key)) and values:
                self_values = tuple(unknown(one.text) if "$" in one.text else one for one in values)
                result.readings.append(Reading(str(key), self_values, line))
            elif any(_FLAG.match(one.text) for one in values):
                result.readings.append(Reading(str(key), values, line, group="words"))
            elif isinstance(given, str) and str(key) in ("environment", "environment-pass"):
                result.readings += [Reading(name, (Value(one),), line) for name, one in _assignments(given)]
            else:
                _table(given, text, result)
    elif isinstance(value, list):
        for inner in value:
            _table(inner, text, result)


def _line(text: str, key: str, value: str) -> int:
    """Return the line of a key, that with the value if several have it."""
    lines = [
        at for at, line in enumerate(text.splitlines(), 1) if re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", line)
    ]
    every = text.splitlines()
    return next((at for at in lines if value and value in every[at - 1]), lines[0] if lines else 1)


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for word in shlex.split(text):
        if found := ASSIGNMENT.fullmatch(word):
            yield found[1], found[2]


def read_bazelrc(text: str, cuda: Version) -> Read:
    """Return what a .bazelrc says: a command, perhaps a configuration, and options in each line."""
    result = Read()
    for number, line in _logical(text):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            result.unread.append((number, "its quotes do not end"))
            continue
        if not words or words[0] in ("import", "try-import"):
            continue
        config = words[0].partition(":")[2]
        values = tuple(map(Value, words[1:]))
        condition = f"--config={config}" if config else ""
        result.readings += [replace(one, condition=condition) for one in _of_bazel(values, number)]
    return result


def _of_bazel(values: tuple[Value, ...], line: int) -> Iterator[Reading]:
    words = iter(values)
    for word in words:
        name, sign, value = word.text.partition("=")
        if name in ("--repo_env", "--action_env", "--test_env", "--host_action_env"):
            given = ASSIGNMENT.fullmatch(value if sign else next(words, Value("")).text)
            if given:
                yield Reading(given[1], (Value(given[2]),), line)
        elif list_name(name) and sign:
            yield Reading(name, (Value(value),), line, Kind.PASSED)
        elif re.fullmatch(r"--(?:@\w+//:)?\w*(?:copt|nvccopt|cuda_copts?)\w*", name) and sign:
            yield Reading("words", (Value(value),), line, Kind.PASSED, group="words")


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with those that continue it, and its number."""
    pending, begin = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        begin = begin or number
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        yield begin, pending
        pending, begin = "", 0
    if pending:
        yield begin, pending


# Example: export ARCHS := "12.0a"
_JUST = re.compile(r"(?P<export>export\s+)?(?P<name>[A-Za-z_][\w-]*)\s*:=\s*(?P<value>.*?)\s*(?:#.*)?")


def read_just(text: str, cuda: Version) -> Read:
    """Return what a justfile says: its variables, and the shell lines of its recipes."""
    result = Read()
    variables: dict[str, Variable] = {}
    for number, line in _logical(text):
        if line[:1] in (" ", "\t"):
            given = _with_variables(line.strip().lstrip("@-"), variables)
            exported = {name: one for name, one in variables.items() if one.exported}
            result.add(shell.read(given, exported, line=number))
        elif found := _JUST.fullmatch(line):
            value = re.fullmatch(r"(['\"])(.*)\1", found["value"])
            default = re.fullmatch(
                r"env(?:_var_or_default)?\(\s*['\"](\w+)['\"]\s*,\s*['\"](.*)['\"]\s*\)", found["value"]
            )
            given_value = (
                Value(value[2]) if value else Value(default[2], default=True) if default else unknown(found["value"])
            )
            exports = bool(found["export"])
            variables[found["name"]] = Variable(given_value, number, exported=exports)
            if exports:
                result.readings.append(
                    Reading(found["name"], (given_value,), number, Kind.DEFAULT if default else Kind.ASSIGNED)
                )
    return result


def _with_variables(text: str, variables: Mapping[str, Variable]) -> str:
    """Return a line of a recipe with the variables that are known."""

    def value(found: re.Match[str]) -> str:
        known = variables.get(found[1])
        return known.value.text if known and not known.value.unknown else f"${{{found[1].replace('-', '_')}}}"

    return re.sub(r"\{\{\s*([\w-]+)\s*\}\}", value, text)


# Example: add_cugencodes("native")
_XMAKE = re.compile(r"(?P<name>add_cugencodes|add_cuflags|add_values)\s*\((?P<values>[^()]*)\)")


def read_xmake(text: str, cuda: Version) -> Read:
    """Return what an xmake.lua says: the arguments of ``add_cugencodes`` and ``add_cuflags`` that are texts."""
    result = Read()
    plain = re.sub(r"--\[(=*)\[.*?\]\1\]", lambda one: re.sub(r"[^\n]", " ", one[0]), text, flags=re.DOTALL)
    lines = [_without_comment(line) for line in plain.split("\n")]
    condition = ""
    for found in _XMAKE.finditer("\n".join(lines)):
        line = "\n".join(lines).count("\n", 0, found.start()) + 1
        words = tuple(Value(one[2]) for one in re.finditer(r"(['\"])(.*?)\1", found["values"]))
        if re.sub(r"(['\"]).*?\1|[\s,]|\{.*?\}", "", found["values"]):
            words = (*words, unknown(found["values"].strip()))
        name = found["name"] if found["name"] == "add_cugencodes" else "words"
        result.readings.append(
            Reading(name, words, line, Kind.APPENDED, condition, group="" if name == "add_cugencodes" else "words")
        )
    return result


def _without_comment(line: str) -> str:
    """Return a line of Lua without its comment."""
    at, quote = 0, ""
    while at < len(line):
        if quote:
            at += line[at] == "\\"
            quote = "" if line[at : at + 1] == quote else quote
        elif line[at] in "'\"":
            quote = line[at]
        elif line.startswith("--", at):
            return line[:at]
        at += 1
    return line
