"""CMake for the edit ``replace``: code is one or more commands, compared by name and arguments."""

from collections.abc import Iterator, Sequence

from fp4patch.core.results import Rewritten
from fp4patch.edits.cmake import Argument, Command, parse
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.refusal import OTHERWISE, Refusal


class CMakeCode:
    """A text as commands. ``within``: the name of a function or macro; only its body is searched."""

    def __init__(self, text: str, within: str) -> None:
        self._script = parse(text)
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

    def nearest(self, pattern: str, /) -> tuple[int | None, str]:
        """Return the first command of the first one's name that begins with its first argument."""
        wanted = parse(pattern).commands[0].meaning
        named = (c for c in self._script.commands if (c.name, c.meaning[1][:1]) == (wanted[0], wanted[1][:1]))
        near = next(named, None)
        return (near.line, f"`{self._script.text[near.start : near.end]}`") if near else (None, "")

    def contains(self, whole: str, part: str, /) -> bool:
        """Tell whether commands have others among them."""
        return bool(CMakeCode(whole, "").lines(part))

    def replaced(self, find: str, replace: str, /) -> tuple[str, tuple[int, ...]]:
        """Return the text with the arguments replaced that differ, and the lines of the commands.

        Commands of ``replace`` behind those of ``find`` are put on lines of their own, as they are written.
        """
        text, meaning = self._script.text, list(self._script.meaning)
        old, new, lines = parse(find).commands, parse(replace).commands, self.lines(find)
        added = replace[new[len(old) - 1].end :].lstrip(" \t").removeprefix("\n").rstrip("\n")
        for at in reversed(self._places(find)):
            here = self._script.commands[at : at + len(old)]
            if len(new) > len(old):
                text = self._with_lines(text, here[-1], added)
            pairs = [pair for three in zip(here, old, new, strict=False) for pair in _arguments(*three)]
            for argument, becomes in reversed(pairs):
                text = text[: argument.start] + becomes.text + text[argument.end :]
            meaning[at : at + len(old)] = [command.meaning for command in new]
        result = proven(text, meaning, lines)
        return result.text, result.lines

    @staticmethod
    def _with_lines(text: str, command: Command, added: str) -> str:
        """Return the text with lines behind that of a command, which must be the last one on its line."""
        end = text.find("\n", command.end)
        if end < 0 or text[command.end : end].partition("#")[0].strip():
            raise Refusal(f"`{command.name}` at the end of its line", "more on it", command.line)
        newline = "\r\n" if text[end - 1] == "\r" else "\n"
        return text[: end + 1] + added.replace("\n", newline) + newline + text[end + 1 :]

    def _places(self, pattern: str) -> list[int]:
        """Return the index of the first command of each place."""
        wanted = parse(pattern).meaning
        return [at for at in self._searched if self._script.meaning[at : at + len(wanted)] == wanted]


def _arguments(command: Command, old: Command, new: Command) -> Iterator[tuple[Argument, Argument]]:
    """Yield the arguments of a command that change, and what they become."""
    for argument, before, after in zip(command.arguments, old.arguments, new.arguments, strict=True):
        if before.meaning != after.meaning:
            if before.passed != after.passed and not command.takes_lists_apart:
                raise Refusal(f"{command.name} with as many arguments as before", f"`{after.text}`", command.line)
            yield argument, after


def proven(text: str, meaning: Sequence[object], lines: Sequence[int]) -> Rewritten:
    """Return the result, which is read again: its commands must be the old ones with the intended changes alone."""
    try:
        sound = parse(text).meaning == list(meaning)
    except LexError:
        sound = False
    if not sound:
        raise Refusal(*OTHERWISE, lines[0])
    return Rewritten(text, tuple(sorted(set(lines))))
