"""Dockerfiles: stages, the variables of each, and the commands of ``RUN``."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.grammar import line_of, lines_of, named, nodes, root, text_of
from fp4patch.doctor.readings.reading import EMPTY, Image, Kind, Read, Reading, Value, Variable, Variables, unknown

if TYPE_CHECKING:
    from tree_sitter import Node

# Example: # escape=`
_ESCAPE = re.compile(r"(?:#[^\n]*\n)*#\s*escape\s*=\s*`", re.IGNORECASE)
# Example: <<-"EOF"
_MARKER = re.compile(r"\d*<<-?\s*(['\"]?)\w+\1")
_NAME = re.compile(r"[A-Za-z_]\w*")
# A line that ends without a backslash before another one.
_UNENDED = re.compile(r"(?<!\\)\n\s*\S")
_VALUE = "FP4PATCH_VALUE"
"""A name of ours, to which a text is assigned so that the shell's reader expands it."""


def read_dockerfile(text: str, cuda: Version) -> Read:
    """Return what a Dockerfile says."""
    reader = _Dockerfile()
    if _ESCAPE.match(text):
        reader.result.unread.append((1, "its lines are continued with a backtick"))
        return reader.result
    for node in root("containerfile", text).children:
        reader.instruction(node)
    reader.result.images = [replace(one, final=at == reader.root) for at, one in enumerate(reader.result.images)]
    return reader.result


class _Dockerfile:
    """The instructions of a Dockerfile, from the first to the last."""

    def __init__(self) -> None:
        self.result = Read()
        self._variables: Variables = {}
        self._global: Variables = {}
        """Arguments before the first stage."""
        self._stages: dict[str, tuple[Variables, str, str, int]] = {}
        """Variables, base image, directory and ``root`` at the end of each stage."""
        self.root = -1
        """Position of the image from which the stage is made, by way of other stages."""
        self._stage, self._image, self._folder = "", "", ""
        self._is_posix = True

    def instruction(self, node: Node) -> None:
        """Follow one instruction."""
        rest = node.next_sibling
        goes_on = rest is not None and rest.type == "ERROR" and line_of(rest) <= lines_of(node)[1]
        is_damaged = goes_on or node.type == "ERROR" or (node.has_error and node.type != "run_instruction")
        if is_damaged or (node.type == "env_instruction" and _UNENDED.search(_without_comments(node))):
            self.result.skip(*lines_of(node), "BuildKit does not have it so")
            if node.type != "from_instruction":
                self._lose(node)
                return
        run = getattr(self, f"_{node.type.removesuffix('_instruction')}", None) if node.is_named else None
        if run and node.type.endswith("_instruction"):
            run(node)

    def _lose(self, node: Node) -> None:
        """Know nothing from here on of the names in an instruction that is not read."""
        for name in _NAME.findall(text_of(node)):
            why = unknown(f"{name}, in an instruction that is not read")
            self._variables[name] = Variable(why, line_of(node), exported=True, items=(why,))

    def _expanded(self, text: str, line: int) -> Value:
        """Return a text with the values of the variables in it."""
        given = shell.read(f"export {_VALUE}={text}", self._variables, line=line)
        self.result.used |= given.used
        found = [reading.values[0] for reading in given.readings if reading.name == _VALUE]
        return found[-1] if found and not given.unread else unknown(text)

    def _from(self, node: Node) -> None:
        if not self._stages and not self._image:
            self._global = self._variables
        else:
            self._end()
        self._variables = dict(self._global)
        spec = next(nodes(node, "image_spec"), None)
        image = self._expanded(text_of(spec), line_of(node)) if spec else EMPTY
        alias = next(nodes(node, "image_alias"), None)
        self._stage = text_of(alias).lower() if alias else str(len(self._stages))
        base = self._stages.get(image.text.lower())
        if base is None:
            self.result.images.append(Image(image, line_of(node)))
        variables, self._image, self._folder, self.root = base or ({}, image.text, "", len(self.result.images) - 1)
        self._variables = {name: one for name, one in variables.items() if one.kind is not Kind.DEFAULT or one.items}

    def _end(self) -> None:
        self._stages[self._stage] = self._variables, self._image, self._folder, self.root

    def _arg(self, node: Node) -> None:
        for pair in nodes(node, "arg_pair"):
            name, default = text_of(named(pair, "name")), pair.child_by_field_name("default")
            line = line_of(pair)
            if name in self._variables and self._variables[name].items:
                continue  # the environment comes before an argument
            if default is not None:
                value = replace(self._expanded(text_of(default), line), default=True)
            elif name in self._global:
                value = self._global[name].value
            else:
                value = Value(f"${name}", f"${name}", default=True)
            self._variables[name] = Variable(value, line, Kind.DEFAULT, exported=True)
            if self._image and not value.unknown:
                self._keep(name, value, line, Kind.DEFAULT)

    def _env(self, node: Node) -> None:
        begin, after = self._variables, dict(self._variables)
        for pair in nodes(node, "env_pair"):
            name, given = text_of(named(pair, "name")), pair.child_by_field_name("value")
            text = text_of(given) if given else ""
            if not any(child.type == "=" for child in pair.children) and not text.startswith(("'", '"')):
                text = re.sub(r"(?<!\\)([ \t;&|<>()])", r"\\\1", text)
            self._variables = begin
            value, line = self._expanded(text, line_of(pair)), line_of(pair)
            kind = Kind.DEFAULT if value.default else Kind.ASSIGNED
            after[name] = Variable(value, line, kind, exported=True, items=(value,))
            self._keep(name, value, line, kind)
        self._variables = after

    def _keep(self, name: str, value: Value, line: int, kind: Kind) -> None:
        self.result.readings.append(Reading(name, (value,), line, kind, image=self._image))

    def _workdir(self, node: Node) -> None:
        self._folder = self._expanded(text_of(next(nodes(node, "path"))), line_of(node)).text

    def _shell(self, node: Node) -> None:
        self._is_posix = "sh" in text_of(node).rpartition("/")[2]

    def _run(self, node: Node) -> None:
        line = line_of(node)
        variables = {name: replace(one, items=None) for name, one in self._variables.items()}
        array = next(nodes(node, "json_string_array"), None)
        commands = [child for child in node.children if child.type == "shell_command"]
        if array is not None:
            words = [Value(word) for word in json.loads(text_of(array))]
            found = shell.ran(words, variables, folder=self._folder, line=line)
        elif not commands or not self._is_posix:
            self.result.unread.append((line, "it is for another shell"))
            return
        else:
            found = self._of_shell(
                commands[0], [child for child in node.children if child.type == "heredoc_block"], variables
            )
        for command in found.commands:
            self.result.commands.append(replace(command, image=self._image))
        self.result.readings += [replace(reading, image=self._image) for reading in found.readings]
        self.result.used |= found.used
        self.result.unread += found.unread

    def _of_shell(self, command: Node, documents: list[Node], variables: Variables) -> Read:
        text, line = _without_comments(command), line_of(command)
        if documents and _MARKER.fullmatch(text.strip()):  # the document is the script
            inside = text_of(next(nodes(documents[0], "heredoc_content"))).lstrip("\n")
            first = inside.partition("\n")[0]
            if first.startswith("#!") and "sh" not in first.rpartition("/")[2]:
                words = [Value(word) for word in first[2:].split()]
                found = shell.ran(words, variables, folder=self._folder, line=line)
                found.commands[:] = [replace(one, reads=inside) for one in found.commands]
                return found
            return shell.read(inside, variables, folder=self._folder, line=line + 1)
        if documents:
            head = _MARKER.match(text.lstrip())
            text = f"{text.lstrip()[head.end() :].strip()} {head[0]}" if head else text.rstrip("\n")
            text += "".join(f"\n{text_of(one).lstrip(chr(10))}" for one in documents)
        return shell.read(text, variables, folder=self._folder, line=line)


def _without_comments(command: Node) -> str:
    """Return the text of a command, on as many lines, without the comments and empty lines between them."""
    source, begin = bytearray(command.text or b""), command.start_byte
    for comment in reversed([child for child in command.children if child.type == "comment"]):
        source[comment.start_byte - begin : comment.end_byte - begin] = b"\\\n"
    lines = source.decode().split("\n")
    return "\n".join(text if text.strip() or at == len(lines) - 1 else "\\" for at, text in enumerate(lines))
