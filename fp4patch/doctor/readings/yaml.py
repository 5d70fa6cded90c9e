"""YAML: workflows, compose files, conda's recipes, Spack's environments; with the place of each value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packaging.version import Version

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.grammar import NoReaderError
from fp4patch.doctor.readings.names import list_name
from fp4patch.doctor.readings.reading import Image, Kind, Read, Reading, Value, Variable, unknown
from fp4patch.doctor.readings.shell import ASSIGNMENT

_SCRIPTS = frozenset(
    ("run", "script", "command", "commands", "before_script", "after_script", "build_script", "content", "then", "else")
)
_LARGEST = 100_000
"""Values of a document that are looked at, those of its aliases wherever they stand."""
# Example: ${{ matrix.arch }}
_TEMPLATE = re.compile(r"\$\{\{.*?\}\}|\{\{.*?\}\}")


def read_yaml(text: str, cuda: Version) -> Read:
    """Return what a YAML file says. ValueError: it is not YAML."""
    try:
        from ruamel.yaml import YAML  # noqa: PLC0415 - the extra brings it
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    except ImportError as error:
        raise NoReaderError("YAML") from error
    result = Read()
    try:
        for document in YAML(typ="rt").compose_all(text):
            if document is not None:
                _Document(result).node(document, "", {}, 0)
    except (YAMLError, AttributeError) as error:
        raise ValueError(str(error).partition("\n")[0] or "no YAML") from error
    return result


class _Document:
    """One document, of which each value is looked at."""

    def __init__(self, result: Read) -> None:
        self.result = result
        self._left = _LARGEST

    def node(self, node: Any, key: str, environment: dict[str, Variable], depth: int) -> None:
        """Look at a value with the key that it has."""
        self._left -= 1
        if depth > 64 or self._left < 0:
            raise ValueError("its aliases make it too large" if self._left < 0 else "it is nested too deeply")
        kind = node.id
        if kind == "mapping":
            pairs = [(one.value, value) for one, value in node.value if one.id == "scalar"]
            own = environment
            for name, value in pairs:
                if name in ("env", "environment", "variables", "args", "build_args") and value.id == "mapping":
                    own = own | dict(self._variables(value))
            for name, value in pairs:
                self._entry(name, value, own, depth)
        elif kind == "sequence":
            for value in node.value:
                if value.id == "scalar":
                    self._item(key, value, environment)
                else:
                    self.node(value, key, environment, depth + 1)

    def _variables(self, node: Any) -> Iterator[tuple[str, Variable]]:
        for one, value in node.value:
            if one.id == "scalar" and value.id == "scalar":
                yield one.value, Variable(_value(value.value), value.start_mark.line + 1, exported=True)

    def _entry(self, name: str, value: Any, environment: dict[str, Variable], depth: int) -> None:
        line = value.start_mark.line + 1
        if value.id != "scalar":
            if list_name(name) and value.id == "sequence":
                values = tuple(_value(one.value) for one in value.value if one.id == "scalar")
                self.result.readings.append(Reading(name, values, line))
                return
            self.node(value, name, environment, depth + 1)
        elif name in _SCRIPTS:
            self._script(value, environment)
        elif name == "image":
            self.result.images.append(Image(_image(value.value), line))
        elif list_name(name):
            self.result.readings.append(Reading(name, (_value(value.value),), line))
        elif re.match(r"\s*-{1,2}(?:D\w|gencode|generate-code|arch)", value.value):
            self.result.readings.append(Reading(name, (_value(value.value),), line, group="words"))

    def _item(self, key: str, node: Any, environment: dict[str, Variable]) -> None:
        line = node.start_mark.line + 1
        found = ASSIGNMENT.fullmatch(node.value)
        if key in ("environment", "env", "args", "build-args", "build_args") and found and list_name(found[1]):
            self.result.readings.append(Reading(found[1], (_value(found[2]),), line))
        elif key == "specs":
            if arch := re.search(r"\bcuda_arch=([\w,:]+)", node.value):
                self.result.readings.append(Reading("cuda_arch", (Value(arch[1]),), line, Kind.PASSED))
        elif key in _SCRIPTS:
            self._script(node, environment)

    def _script(self, node: Any, environment: dict[str, Variable]) -> None:
        line = node.start_mark.line + 1 + (node.style in ("|", ">"))
        templates: list[str] = []

        def named(found: re.Match[str]) -> str:
            templates.append(found[0])
            return f"FP4PATCH_TEMPLATE_{len(templates) - 1}_"

        text = _TEMPLATE.sub(named, node.value)
        found = shell.read(text, environment, line=line)

        def restored(value: Value) -> Value:
            names = re.findall(r"FP4PATCH_TEMPLATE_(\d+)_", value.text)
            if not names:
                return value
            back = re.sub(r"FP4PATCH_TEMPLATE_(\d+)_", lambda one: templates[int(one[1])], value.text)
            return Value(back, templates[int(names[0])])

        self.result.commands += [
            replace(
                one,
                words=tuple(map(restored, one.words)),
                environment={
                    name: replace(variable, value=restored(variable.value))
                    for name, variable in one.environment.items()
                },
            )
            for one in found.commands
        ]
        self.result.readings += [replace(one, values=tuple(map(restored, one.values))) for one in found.readings]
        # The environment of a step is set by its file: the same list as a reading of its own.
        self.result.used |= found.used
        self.result.unread += found.unread


def _image(text: str) -> Value:
    """Return the name of an image, in which compose's variables have their defaults."""
    plain = re.sub(r"\$\{\w+:?-([^{}$]*)\}", r"\1", text)
    return replace(_value(plain), default=plain != text)


def _value(text: str) -> Value:
    found = _TEMPLATE.search(text)
    if found:
        return Value(text, found[0])
    default = re.fullmatch(r"\$\{\w+:?-([^}]*)\}", text)  # compose's own variables
    if default:
        return Value(default[1], default=True)
    return unknown(text) if "$" in text else Value(text)
