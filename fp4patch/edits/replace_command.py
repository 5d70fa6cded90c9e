"""The edit ``replace-command``: other arguments for a CMake command, and the rest of it keeps its layout."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import ClassVar, Literal

from fp4patch.core.outcome import Outcome
from fp4patch.edits.cmake import Command, Script, read_command
from fp4patch.edits.cmake_edit import edit_cmake, proven
from fp4patch.edits.operation import NO_OPTIONS, Mistake, Template
from fp4patch.edits.sites import Replacement, settle


@dataclass(frozen=True, kw_only=True)
class ReplaceCommand(Replacement):
    """Replace a CMake command with its arguments: ``elseif(ARCHS MATCHES "12\\\\.0a")``.

    Commands are compared by name and arguments. ``about`` is a command's name and first argument, ``set(ARCHS``, or the
    name alone. The ``tokens`` of ``retired`` are a command.
    """

    language: ClassVar = "cmake"
    texts: ClassVar = ("find", "replace")
    op: Literal["replace-command"] = "replace-command"

    def rewrite(self, text: str, _template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with the command's arguments replaced where they differ; the rest of it keeps its layout."""
        return edit_cmake(text, self.otherwise, partial(_replace_command, self))

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield texts that cannot be read, else a replacement of another shape."""
        wrong = list(super().mistakes(folder))
        yield from wrong
        if not wrong:
            old, new = read_command(self.find), read_command(self.replace)
            if (old.name, len(old.arguments)) != (new.name, len(new.arguments)):
                expected = f"the command of `{self.find}`, with as many arguments"
                yield Mistake("replace", expected, repr(self.replace))


def _replace_command(edit: ReplaceCommand, script: Script) -> Outcome | None:
    name, _, first = edit.about.partition("(")
    if not any(
        command.name == name.lower() and (not first or [a.text for a in command.arguments[:1]] == [first])
        for command in map(script.commands.__getitem__, script.live)
    ):
        return None
    old, new = read_command(edit.find), read_command(edit.replace)

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
    return proven(text, meaning, lines(sites))


def _nearest(script: Script, wanted: Command) -> Command | None:
    """Return the command of that name that begins with the most of the wanted arguments."""

    def agreeing(command: Command) -> int:
        pairs = zip(command.arguments, wanted.arguments, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].meaning == pair[1].meaning, pairs))

    named = [command for command in script.commands if command.name == wanted.name and agreeing(command)]
    return max(named, key=agreeing, default=None)
