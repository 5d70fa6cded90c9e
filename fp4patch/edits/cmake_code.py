"""CMake for the edit ``replace``: code is one or more commands, compared by name and arguments."""

import ast
import re
from collections.abc import Iterator, Sequence

from fp4patch.edits.cmake import Command, Cut, Script, parse
from fp4patch.edits.cmake_expression import read_condition
from fp4patch.edits.effect import Case, Results
from fp4patch.edits.given_values import CMakeText, GivenValues
from fp4patch.edits.operation import Change
from fp4patch.edits.refusal import Refusal


class CMakeCode:
    """A text as commands. ``within``: the name of a function or macro; only its body is searched."""

    def __init__(self, script: Script, within: str) -> None:
        self._script = script
        self._within = within
        whole = self._script.commands
        inside = {id(command) for body in self._script.bodies(within) for command in body} if within else set[int]()
        self._searched = [at for at in self._script.live if not within or id(whole[at]) in inside]

    def is_about(self, about: str, /) -> bool:
        """Tell whether there is a command of that name, and with that first argument if there is one.

        The name of the function to search is there if that has a body.
        """
        if about == self._within:
            return bool(self._searched)
        name, _, first = about.partition("(")
        named = (command for command in self._commands if command.name == name.lower())
        return any(not first or [a.text for a in command.arguments[:1]] == [first] for command in named)

    @property
    def _commands(self) -> list[Command]:
        return [self._script.commands[at] for at in self._searched]

    def lines(self, pattern: str, /) -> list[int]:
        """Return the line of each place with such commands."""
        return [self._script.commands[at].line for at in self._places(pattern)]

    def conditions(self, cases: Sequence[Case], /) -> Iterator[Results]:
        """Yield the conditions on the variables of the cases."""
        values = GivenValues([(ast.Name(name), [CMakeText(case[name]) for case in cases]) for name in cases[0]])
        for command in self._commands:
            words = {*re.findall(r"\w+", " ".join(argument.text for argument in command.arguments))}
            if command.name in ("if", "elseif", "while") and words & cases[0].keys():
                condition = read_condition(command.arguments)
                results = values.results(condition.tree) if condition.is_whole else [None]
                yield [None if result is None else bool(result) for result in results]

    def nearest(self, pattern: str, /) -> tuple[int | None, str]:
        """Return the first command of the first one's name that begins with its first argument."""
        wanted = parse(pattern).commands[0].meaning
        named = (c for c in self._script.commands if (c.name, c.meaning[1][:1]) == (wanted[0], wanted[1][:1]))
        near = next(named, None)
        return (near.line, f"`{self._script.text[near.start : near.end]}`") if near else (None, "")

    def contains(self, whole: str, part: str, /) -> bool:
        """Tell whether commands have others among them."""
        return bool(CMakeCode(parse(whole), "").lines(part))

    def replaced(self, find: str, replace: str, /) -> Change:
        """Return the change of the arguments that differ.

        Commands of ``replace`` behind those of ``find`` are put on lines of their own, as they are written.
        """
        old, new = parse(find).commands, parse(replace).commands
        added = replace[new[len(old) - 1].end :].lstrip(" \t").removeprefix("\n").rstrip("\n")
        cuts: list[Cut] = []
        for place in self._places(find):
            numbers = range(place, place + len(old))
            for number, before, after in zip(numbers, old, new, strict=False):
                cuts += _arguments(self._script, number, before, after)
            if len(new) > len(old):
                cuts.append(self._lines(numbers[-1], added, new[len(old) :]))
        lines = [self._script.commands[place].line for place in self._places(find)]
        return Change(cuts, tuple(sorted(set(lines))))

    def _lines(self, number: int, added: str, commands: Sequence[Command]) -> Cut:
        """Return lines behind that of a command, which must be the last one on its line."""
        text, command = self._script.text, self._script.commands[number]
        end = text.find("\n", command.end)
        if end < 0 or text[command.end : end].partition("#")[0].strip():
            raise Refusal(f"`{command.name}` at the end of its line", "more on it", command.line)
        newline = "\r\n" if text[end - 1] == "\r" else "\n"
        written = added.replace("\n", newline) + newline
        return Cut(end + 1, end + 1, written, number, added=tuple(command.meaning for command in commands))

    def _places(self, pattern: str) -> list[int]:
        """Return the index of the first command of each place."""
        wanted = parse(pattern).meaning
        return [at for at in self._searched if self._script.meaning[at : at + len(wanted)] == wanted]


def _arguments(script: Script, number: int, old: Command, new: Command) -> Iterator[Cut]:
    """Yield the changes of the arguments of a command."""
    command = script.commands[number]
    rows = enumerate(zip(command.arguments, old.arguments, new.arguments, strict=True))
    for position, (argument, before, after) in rows:
        if before.meaning == after.meaning:
            continue
        if before.passed != after.passed and not command.takes_lists_apart:
            raise Refusal(f"{command.name} with as many arguments as before", f"`{after.text}`", command.line)
        becomes = (argument.meaning[0], after.text)
        yield Cut(argument.start, argument.end, after.text, number, position, becomes)
