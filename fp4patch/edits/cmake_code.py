"""CMake for the edit ``replace``: code is a command, compared by name and arguments."""

from collections.abc import Iterable
from itertools import takewhile

from fp4patch.edits.cmake import Command, parse, read_command
from fp4patch.edits.cmake_edit import proven


class CMakeCode:
    """A text as commands. ``within``: the name of a function or macro; only its body is searched."""

    def __init__(self, text: str, within: str) -> None:
        self._script = parse(text)
        live = {id(self._script.commands[at]) for at in self._script.live}
        inside = self._script.commands if not within else [c for body in self._script.bodies(within) for c in body]
        self._commands = [command for command in inside if id(command) in live]

    def is_about(self, about: str, /) -> bool:
        """Tell whether there is a command of that name, and with that first argument if there is one."""
        name, _, first = about.partition("(")
        named = (command for command in self._commands if command.name == name.lower())
        return any(not first or [a.text for a in command.arguments[:1]] == [first] for command in named)

    def lines(self, pattern: str, /) -> list[int]:
        """Return the line of each such command."""
        return [command.line for command in self._same(pattern)]

    def nearest(self, pattern: str, /) -> tuple[int | None, str]:
        """Return the command of that name that begins with the most of the arguments."""
        wanted = read_command(pattern)

        def agreeing(command: Command) -> int:
            pairs = zip(command.arguments, wanted.arguments, strict=False)
            return sum(1 for _ in takewhile(lambda pair: pair[0].meaning == pair[1].meaning, pairs))

        named = [command for command in self._script.commands if command.name == wanted.name and agreeing(command)]
        near = max(named, key=agreeing, default=None)
        return (near.line, f"`{self._script.text[near.start : near.end]}`") if near else (None, "")

    def contains(self, _whole: str, _part: str, /) -> bool:
        """Return False: one command is never a part of another."""
        return False

    def replaced(self, find: str, replace: str, /) -> tuple[str, tuple[int, ...]]:
        """Return the text with the arguments replaced that differ, and the lines of the commands."""
        text, meaning = self._script.text, list(self._script.meaning)
        old, new, lines = read_command(find), read_command(replace), self.lines(find)
        for command in reversed(list(self._same(find))):
            meaning[self._script.commands.index(command)] = new.meaning
            triples = zip(command.arguments, old.arguments, new.arguments, strict=True)
            for argument, before, after in reversed(list(triples)):
                if before.meaning != after.meaning:
                    text = text[: argument.start] + after.text + text[argument.end :]
        result = proven(text, meaning, lines)
        return result.text, result.lines

    def _same(self, pattern: str) -> Iterable[Command]:
        meaning = read_command(pattern).meaning
        return (command for command in self._commands if command.meaning == meaning)
