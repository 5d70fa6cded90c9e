"""The edits of CMake files: ``add-element``, ``replace-command``, ``insert-commands``.

After an edit the result is read again: its commands must be the old ones with exactly the intended arguments changed or
commands added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from fp4patch.model.edit import AddElement, InsertCommands, ReplaceCommand
from fp4patch.model.outcome import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.model.state import State
from fp4patch.patching.cmake import Command, Script, parse
from fp4patch.patching.lex_error import LexError
from fp4patch.patching.refusal import Refusal
from fp4patch.patching.sites import ADDED, settle


def alike(old: Command, new: Command) -> bool:
    """Whether one can stand in the place of the other: the same command, with as many arguments."""
    return old.name == new.name and len(old.arguments) == len(new.arguments)


def read_command(text: str) -> Command:
    """The one command that a text is. ValueError or LexError: it is none, or several."""
    commands = parse(text).commands
    if len(commands) != 1:
        raise ValueError(f"one CMake command was expected: {text!r}")
    return commands[0]


def _edit(work: Callable[[Any, Script], Outcome | None], edit: Any, text: str) -> Outcome:
    """Read the text, do the work; None says that the edit is not about this file."""
    try:
        return work(edit, parse(text)) or NothingToDo(State.NOT_NEEDED, edit.otherwise, elsewhere=True)
    except LexError as error:
        return Drift("CMake that can be read to its end", error.message, error.line, help="is this file whole?")
    except Refusal as refusal:
        return refusal.drift


def _proven(text: str, meaning: Sequence[object], lines: Sequence[int]) -> Rewritten:
    """The result, after reading it again."""
    try:
        sound = parse(text).meaning == list(meaning)
    except LexError:
        sound = False
    if not sound:
        raise Refusal("a result that reads as intended", "one that reads otherwise", lines[0])
    return Rewritten(text, tuple(sorted(set(lines))))


class _Change(NamedTuple):
    """One piece of an argument's text that becomes another."""

    command: int
    """Its index in the script."""
    argument: int
    start: int
    end: int
    text: str


def add_element(edit: AddElement, text: str) -> Outcome:
    """The text with the element added to every list that needs it."""
    return _edit(_add_element, edit, text)


def _add_element(edit: AddElement, script: Script) -> Outcome | None:
    changes: list[_Change] = []
    lists = 0
    for index, command in enumerate(script.commands):
        first = 1 if command.name == "list" else 0  # list(APPEND NAME …)
        names = command.arguments[first : first + 1]
        if command.name not in edit.commands or not any(_is_meant(edit, name.text) for name in names):
            continue
        found = _list_changes(edit, index, command, first + 1)
        if found is not None:
            lists += 1
            changes += found
    if not lists:
        return None
    if not changes:
        return NothingToDo(State.UPSTREAMED, f"each list with {edit.beside} has {edit.element}", edit.since)
    text, meaning = script.text, list(script.meaning)
    for change in sorted(changes, key=lambda one: -one.start):
        text = text[: change.start] + change.text + text[change.end :]
        name, arguments = meaning[change.command]
        quoted, old = arguments[change.argument]  # what stands before the change in it is as it was
        begins = script.commands[change.command].arguments[change.argument].start
        new = old[: change.start - begins] + change.text + old[change.end - begins :]
        number = change.argument
        meaning[change.command] = (name, (*arguments[:number], (quoted, new), *arguments[number + 1 :]))
    return _proven(text, meaning, [script.line(change.start) for change in changes])


def _is_meant(edit: AddElement, variable: str) -> bool:
    return fnmatchcase(variable, edit.variable) and not any(fnmatchcase(variable, glob) for glob in edit.but)


def _list_changes(edit: AddElement, index: int, command: Command, first: int) -> list[_Change] | None:
    """What to change in the list of a command, whose arguments from ``first`` on it is; None if it is none of ours."""
    elements = [
        (element, number, offset)
        for number, argument in enumerate(command.arguments)
        if number >= first
        for element, offset in argument.elements()
    ]
    there = [element for element, _, _ in elements]
    if edit.beside not in there:
        return None
    if edit.element in there:
        return []
    changes = []
    for element, number, offset in elements:
        if element == edit.beside:
            changes.append(_Change(index, number, offset, offset, f"{edit.element};"))
        elif element in edit.drop:
            leads = offset == command.arguments[number].start
            if leads:  # then there is no `;` before it to go with it
                raise Refusal(f"{edit.element} behind another element", f"{element} first", command.line)
            changes.append(_Change(index, number, offset - 1, offset + len(element), ""))
    return changes


def replace_command(edit: ReplaceCommand, text: str) -> Outcome:
    """The text with the command's arguments replaced where they differ; the rest of it keeps its layout."""
    return _edit(_replace_command, edit, text)


def _replace_command(edit: ReplaceCommand, script: Script) -> Outcome | None:
    name, _, first = edit.about.partition("(")
    if not any(
        command.name == name.lower() and (not first or [a.text for a in command.arguments[:1]] == [first])
        for command in script.commands
    ):
        return None
    old, new = read_command(edit.find), read_command(edit.replace)
    if not alike(old, new):
        raise ValueError(f"{edit.find!r} and {edit.replace!r} must be the same command with as many arguments")

    def same(command: Command) -> list[int]:
        return [at for at, one in enumerate(script.commands) if one.meaning == command.meaning]

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
    """The command of that name that begins with the most of the wanted arguments."""

    def agreeing(command: Command) -> int:
        pairs = zip(command.arguments, wanted.arguments, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].meaning == pair[1].meaning, pairs))

    named = [command for command in script.commands if command.name == wanted.name and agreeing(command)]
    return max(named, key=agreeing, default=None)


def insert_commands(edit: InsertCommands, text: str, template: Callable[[str], str]) -> Outcome:
    """The text with the template on lines of its own behind the line on which the command ``after`` ends."""
    return _edit(partial(_insert_commands, template), edit, text)


def _insert_commands(template: Callable[[str], str], edit: InsertCommands, script: Script) -> Outcome | None:
    bodies = script.bodies(edit.function)
    if not bodies:
        return None
    if len(bodies) != 1:
        raise Refusal(f"one definition of {edit.function}", f"{len(bodies)}")
    there = {command.meaning for command in bodies[0]}
    for rule in edit.retired:
        if read_command(rule.tokens).meaning in there:
            return NothingToDo(rule.state, rule.because, rule.since)
    wanted = read_command(edit.after)
    sites = [command for command in bodies[0] if command.meaning == wanted.meaning]
    if len(sites) != 1:
        line = sites[-1].line if sites else None
        raise Refusal(f"1 `{edit.after}` in {edit.function}", f"{len(sites)}", line)
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
