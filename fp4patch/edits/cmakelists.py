"""The edits of CMake files: ``add-element``, ``replace-command``, ``insert-commands``.

After an edit the result is read again: its commands must be the old ones with exactly the intended arguments changed or
commands added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial, reduce
from itertools import takewhile
from typing import Any, NamedTuple

from fp4patch.core.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.core.state import State
from fp4patch.edits.cmake import Command, Script, parse
from fp4patch.edits.kinds import AddElement, InsertCommands, ReplaceCommand
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.refusal import Refusal
from fp4patch.edits.sites import ADDED, settle


def alike(old: Command, new: Command) -> bool:
    """Return whether one command can replace the other: the same name, with as many arguments."""
    return old.name == new.name and len(old.arguments) == len(new.arguments)


def read_command(text: str) -> Command:
    """Return the one command that a text is. ValueError or LexError: it is none, or several."""
    commands = parse(text).commands
    if len(commands) != 1:
        raise ValueError(f"one CMake command was expected: {text!r}")
    return commands[0]


def _edit(work: Callable[[Any, Script], Outcome | None], edit: Any, text: str) -> Outcome:
    """Read the text and do the work; None if the edit does not apply to this file."""
    try:
        return work(edit, parse(text)) or NothingToDo(State.NOT_NEEDED, edit.otherwise, elsewhere=True)
    except LexError as error:
        return Drift("CMake that can be read to its end", error.message, error.line, help="is this file whole?")
    except Refusal as refusal:
        return refusal.drift


def _proven(text: str, meaning: Sequence[object], lines: Sequence[int]) -> Rewritten:
    """Return the result, after reading it again."""
    try:
        sound = parse(text).meaning == list(meaning)
    except LexError:
        sound = False
    if not sound:
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(text, tuple(sorted(set(lines))))


class _Change(NamedTuple):
    """One part of an argument's text that becomes another."""

    command: int
    """Its index in the script."""
    argument: int
    start: int
    end: int
    text: str


def add_element(edit: AddElement, text: str) -> Outcome:
    """Return the text with the element added to every list that needs it."""
    return _edit(_add_element, edit, text)


def _add_element(edit: AddElement, script: Script) -> Outcome | None:
    changes: dict[_Change, None] = {}
    lists = 0
    for index in script.live if edit.beside in script.text else ():
        for part in _wanting(edit, script, index):
            lists += 1
            if not part.has(edit.element):
                changes |= dict.fromkeys(_list_changes(edit, part))
    if not lists:
        return None
    if not changes:
        return NothingToDo(State.UPSTREAMED, f"each list with {edit.beside} has {edit.element}", edit.since)
    text, meaning = script.text, list(script.meaning)
    for change in sorted(changes, key=lambda one: -one.start):
        text = text[: change.start] + change.text + text[change.end :]
        name, arguments = meaning[change.command]
        quoted, old = arguments[change.argument]  # the text before the change in it is unchanged
        begins = script.commands[change.command].arguments[change.argument].start
        new = old[: change.start - begins] + change.text + old[change.end - begins :]
        number = change.argument
        meaning[change.command] = (name, (*arguments[:number], (quoted, new), *arguments[number + 1 :]))
    return _proven(text, meaning, [script.line(change.start) for change in changes])


def lacking(edit: AddElement, text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each live command, whatever it is, that has ``beside`` in a list without ``element``."""
    script = parse(text)
    for index in script.live:
        command = script.commands[index]
        if command.name in _NO_LISTS or (command.name == "list" and command.arguments[:1] != () and not _adds(command)):
            continue
        part = _Part.of(script, index, 1)
        versions = [element for element in part.elements if re.fullmatch(r"[0-9]+\.[0-9]+[af]?(?:\+PTX)?", element)]
        if edit.beside not in versions or (len(versions) < 2 and not edit.beside[-1:].isalpha()):
            continue  # a lone bare number is a release of something
        others = _definitions(script, command.arguments[1 if command.name == "list" else 0].text)
        family = (edit.element, *edit.drop)
        if not any(part.beside(other).has(element) for element in family for other in (part, *others)):
            yield command.line, script.text[command.start : command.end]


_NO_LISTS = frozenset(
    {"if", "elseif", "while", "message", "find_package", "cmake_minimum_required", "project", "string"}
)
"""Commands in which a version is that of something else, or text."""


@dataclass(frozen=True)
class _Part:
    """Elements that one command puts into a list: those of its arguments from a certain one on."""

    script: Script
    index: int
    places: tuple[tuple[str, int, int], ...]
    """Each element, the number of its argument, and its offset."""
    more: frozenset[str] = frozenset()
    """Elements that are in the list whenever this command runs, by other commands."""

    @classmethod
    def of(cls, script: Script, index: int, first: int, last: int | None = None) -> _Part:
        arguments = list(enumerate(script.commands[index].arguments))[first:last]
        places = tuple((e, number, offset) for number, argument in arguments for e, offset in argument.elements())
        return cls(script, index, places)

    @property
    def elements(self) -> list[str]:
        return [element for element, _, _ in self.places]

    def beside(self, other: _Part) -> _Part:
        """With what another command adds, if it runs whenever this one does."""
        here, there = (self.script.blocks[part.index][1] for part in (self, other))
        always = here[: len(there)] == there
        return replace(self, more=self.more | set(other.elements)) if always else self

    def has(self, element: str) -> bool:
        return element in self.more or element in self.elements


def _adds(command: Command) -> bool:
    return command.arguments[0].text in ("APPEND", "PREPEND", "INSERT")


def _definitions(script: Script, variable: str) -> list[_Part]:
    """Return the elements that ``set`` and ``list(APPEND …)`` put into a variable in this file."""
    parts = []
    for index in script.live:
        command = script.commands[index]
        named = [argument.text for argument in command.arguments[:2]]
        if command.name == "set" and named[:1] == [variable]:
            parts.append(_Part.of(script, index, 1))
        elif command.name == "list" and named[1:] == [variable] and _adds(command):
            parts.append(_Part.of(script, index, 2))
    return parts


def _wanting(edit: AddElement, script: Script, index: int) -> list[_Part]:
    """Return the parts with ``beside`` of the list of a command; none if it is no list that is meant."""
    command = script.commands[index]
    if command.name not in edit.commands:
        return []
    own = 1 if command.name == "list" else 0  # list(APPEND NAME …)
    names = [argument.text for argument in command.arguments[own : own + 1]]
    if not names or not _is_meant(edit, names[0]) or (own and not _adds(command)):
        return []
    parts = _definitions(script, names[0]) if command.name in ("list", "set") else _followed(edit, script, index)
    whole = [reduce(_Part.beside, parts, part) for part in parts]
    return [part for part in whole if edit.beside in part.elements]


def _followed(edit: AddElement, script: Script, index: int) -> list[_Part]:
    """Return the list that a command gets as its second argument: written out, or in variables that it names."""
    parts, todo, seen = [], [_Part.of(script, index, 1, 2)], set[str]()
    while todo:
        part = todo.pop()
        parts.append(part)
        for element in part.elements:
            name = _REFERENCE.fullmatch(element)
            if "${" not in element or (name and name[1] in seen):
                continue
            found = _definitions(script, name[1]) if name else []
            line = script.commands[part.index].line
            if not found:
                raise Refusal("a list that is written out, or set in the same file", f"`{element}`", line)
            seen.add(str(name and name[1]))
            removed = _removal(edit, script, str(name and name[1]))
            if removed:
                raise Refusal(f"a list that only grows, with {edit.element}", "one that loses it", removed.line)
            todo += found
    return parts


def _removal(edit: AddElement, script: Script, variable: str) -> Command | None:
    """Return the command that would take the element out of a variable again."""
    for index in script.live:
        command = script.commands[index]
        texts = [argument.text for argument in command.arguments]
        takes = command.name == "list" and texts[:1] != [] and texts[0] in ("REMOVE_ITEM", "FILTER", "TRANSFORM")
        if takes and texts[1:2] == [variable] and any(edit.element.rstrip("af") in text for text in texts[2:]):
            return command
    return None


_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w]*)\}")


def _is_meant(edit: AddElement, variable: str) -> bool:
    return fnmatchcase(variable, edit.variable) and not any(fnmatchcase(variable, glob) for glob in edit.but)


def _list_changes(edit: AddElement, part: _Part) -> list[_Change]:
    """Return the changes of a part of a list that has ``beside`` and not the element."""
    changes = []
    command = part.script.commands[part.index]
    for element, number, offset in part.places:
        if element == edit.beside:
            changes.append(_Change(part.index, number, offset, offset, f"{edit.element};"))
        elif element in edit.drop:
            leads = offset == command.arguments[number].start
            if leads:  # then there is no `;` before it to go with it
                raise Refusal(f"{edit.element} behind another element", f"{element} first", command.line)
            changes.append(_Change(part.index, number, offset - 1, offset + len(element), ""))
    elsewhere = sorted(part.more & set(edit.drop) - set(part.elements))
    if elsewhere:
        raise Refusal(
            f"{edit.element} in the place of {elsewhere[0]}", f"{elsewhere[0]} by a command of its own", command.line
        )
    return changes


def replace_command(edit: ReplaceCommand, text: str) -> Outcome:
    """Return the text with the command's arguments replaced where they differ; the rest of it keeps its layout."""
    return _edit(_replace_command, edit, text)


def _replace_command(edit: ReplaceCommand, script: Script) -> Outcome | None:
    name, _, first = edit.about.partition("(")
    if not any(
        command.name == name.lower() and (not first or [a.text for a in command.arguments[:1]] == [first])
        for command in map(script.commands.__getitem__, script.live)
    ):
        return None
    old, new = read_command(edit.find), read_command(edit.replace)
    if not alike(old, new):
        raise ValueError(f"{edit.find!r} and {edit.replace!r} must be the same command with as many arguments")

    def same(command: Command) -> list[int]:
        return [at for at in script.live if script.commands[at].meaning == command.meaning]

    def lines(indices: Sequence[int]) -> list[int]:
        return [script.commands[at].line for at in indices]

    def nearest() -> tuple[int | None, str]:
        near = _nearest(script, old)
        return (near.line, f"`{script.text[near.start : near.end]}`") if near else (None, "")

    sites = same(old)
    if retired := settle(edit, lines(sites), lambda sign: lines(same(read_command(sign))), nearest):
        return retired
    text, meaning = script.text, list(script.meaning)
    for at in reversed(sites):
        meaning[at] = new.meaning
        triples = zip(script.commands[at].arguments, old.arguments, new.arguments, strict=True)
        for argument, before, after in reversed(list(triples)):
            if before.meaning != after.meaning:
                text = text[: argument.start] + after.text + text[argument.end :]
    return _proven(text, meaning, lines(sites))


def _nearest(script: Script, wanted: Command) -> Command | None:
    """Return the command of that name that begins with the most of the wanted arguments."""

    def agreeing(command: Command) -> int:
        pairs = zip(command.arguments, wanted.arguments, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].meaning == pair[1].meaning, pairs))

    named = [command for command in script.commands if command.name == wanted.name and agreeing(command)]
    return max(named, key=agreeing, default=None)


def insert_commands(edit: InsertCommands, text: str, template: Callable[[str], str]) -> Outcome:
    """Return the text with the template on lines of its own behind the line on which the command ``after`` ends."""
    return _edit(partial(_insert_commands, template), edit, text)


def _insert_commands(template: Callable[[str], str], edit: InsertCommands, script: Script) -> Outcome | None:
    wanted = read_command(edit.after)
    bodies = script.bodies(edit.function) if edit.function else [script.commands]
    where = edit.function or "the file"
    if not bodies or (not edit.function and wanted.meaning not in script.meaning):
        return None
    if len(bodies) != 1:
        raise Refusal(f"one definition of {edit.function}", f"{len(bodies)}")
    live = {id(script.commands[at]) for at in script.live}
    body = [command for command in bodies[0] if id(command) in live]
    there = {command.meaning for command in body}
    for rule in edit.retired:
        if read_command(rule.tokens).meaning in there:
            return NothingToDo(rule.state, rule.because, rule.since)
    sites = [command for command in body if command.meaning == wanted.meaning]
    if len(sites) != 1:
        line = sites[-1].line if sites else None
        raise Refusal(f"1 `{edit.after}` in {where}", f"{len(sites)}", line)
    text, end = script.text, script.text.find("\n", sites[0].end)
    if end < 0 or text[sites[0].end : end].partition("#")[0].strip():
        raise Refusal(f"`{edit.after}` at the end of its line", "more on it", sites[0].line)
    newline = "\r\n" if text[end - 1] == "\r" else "\n"
    added = template(edit.template).replace("\r\n", "\n").rstrip("\n") + "\n"
    number = script.commands.index(sites[0]) + 1
    new = parse(added).meaning
    if script.meaning[number : number + len(new)] == new:
        expected = f"`{edit.after}` without {edit.template} behind it"
        raise Refusal(expected, "it is there already", sites[0].line, advice=ADDED)
    text = text[: end + 1] + added.replace("\n", newline) + text[end + 1 :]
    meaning = [*script.meaning[:number], *new, *script.meaning[number:]]
    return _proven(text, meaning, [script.line(sites[0].end)])
