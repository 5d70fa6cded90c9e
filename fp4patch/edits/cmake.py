"""CMake files as commands with offsets, so that an edit's anchor ignores blanks and comments.

The grammar is that of cmake-language(7): comments, bracket and quoted arguments, nested parentheses. Every character
belongs to a command, a comment or the blanks between; what does not is a LexError with its line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import NamedTuple

from fp4patch.core.lex_error import LexError, NotAsMeant
from fp4patch.core.splice import pieces

BOM = "\ufeff"

_BLANK = re.compile(r"[ \t\r\n]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACKET = re.compile(r"\[(=*)\[")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# Unquoted elements, and the legacy form with quotes inside: -Da="b c".
_UNQUOTED = re.compile(r'(?:[^\s()#"\\]|\\.)(?:[^\s()#"\\]|\\.|"(?:[^"\\\n]|\\.)*")*')
_OPENS = {"function": "endfunction", "macro": "endmacro"}
_BLANK_ON_LINE = re.compile(r"[ \t]*")


class Form(Enum):
    """Notation of an argument."""

    QUOTED = auto()
    BRACKET = auto()
    UNQUOTED = auto()
    PARENTHESIS = auto()
    """One of a pair inside a command's arguments; it is an argument of its own."""


class Argument(NamedTuple):
    """One argument. ``text`` is the text between its delimiters; ``start`` and ``end`` are that text's offsets."""

    form: Form
    text: str
    start: int
    end: int

    @property
    def meaning(self) -> tuple[bool, str]:
        """Key by which arguments are compared: quotes matter (they keep lists whole), brackets count as quotes."""
        return (self.form in (Form.QUOTED, Form.BRACKET), self.text)

    @property
    def passed(self) -> int:
        """Number of arguments that the command gets of it: CMake takes an unquoted list apart."""
        return 1 if self.form is not Form.UNQUOTED else sum(map(bool, self.elements))

    @property
    def elements(self) -> list[str]:
        """The list elements of its text."""
        return re.split(r"(?<!\\);", self.text)


Meaning = tuple[str, tuple[tuple[bool, str], ...]]
"""A command without its layout: its name, and for each argument whether it is quoted and its text."""


class Command(NamedTuple):
    """One command invocation. ``name`` is in lower case: CMake does not tell cases apart."""

    name: str
    arguments: tuple[Argument, ...]
    start: int
    end: int
    """Offset behind its closing parenthesis."""
    line: int

    @property
    def takes_lists_apart(self) -> bool:
        """True if its arguments behind a name are elements of one list, so that their number has no meaning."""
        return self.name in ("set", "list")

    @property
    def meaning(self) -> Meaning:
        """Key by which commands are compared: name and arguments, independent of the layout."""
        return self.name, tuple(argument.meaning for argument in self.arguments)


Branch = tuple[tuple[int, int], ...]
"""The ``if`` commands around a command, by index, each with the number of the branch."""

_TRUE = frozenset({"1", "ON", "YES", "TRUE", "Y"})
_FALSE = frozenset({"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})


def constant(text: str) -> bool | None:
    """Tell whether a text is true whatever is set, or false; None for the name of a variable, or any other text."""
    word = text.upper()
    return True if word in _TRUE else False if word in _FALSE else None


def _constant(arguments: Sequence[Argument]) -> bool | None:
    """Tell whether the condition of an ``if`` holds whatever is set; None where that depends on a variable."""
    if [argument.text.upper() for argument in arguments[:1]] == ["NOT"]:
        inner = _constant(arguments[1:])
        return None if inner is None else not inner
    return constant(arguments[0].text) if len(arguments) == 1 else None


def _blocks(commands: Sequence[Command]) -> Iterator[tuple[bool, Branch]]:
    open_: list[tuple[int, int, bool, bool]] = []  # index of the if, branch, whether it can run, whether one surely did
    for at, command in enumerate(commands):
        if command.name in ("elseif", "else", "endif") and open_:
            index, branch, _, decided = open_.pop()
            if command.name != "endif":
                holds = True if command.name == "else" else _constant(command.arguments)
                open_.append((index, branch + 1, not decided and holds is not False, decided or holds is True))
        yield all(can for *_, can, _ in open_), tuple((index, branch) for index, branch, *_ in open_)
        if command.name == "if":
            holds = _constant(command.arguments)
            open_.append((at, 0, holds is not False, holds is True))


@dataclass(frozen=True)
class Script:
    """A CMake file: its commands in order. Blocks are commands too: ``if``, ``endif``."""

    text: str
    commands: tuple[Command, ...]

    @cached_property
    def blocks(self) -> tuple[tuple[bool, Branch], ...]:
        """For each command, True if it can run at all, and its branches of ``if`` from the outside in."""
        return tuple(_blocks(self.commands))

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The indices of the commands that can run: not those in ``if(FALSE)``."""
        return tuple(at for at, (live, _) in enumerate(self.blocks) if live)

    @cached_property
    def meaning(self) -> list[Meaning]:
        """The commands without their layout."""
        return [command.meaning for command in self.commands]

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset."""
        return self.text.count("\n", 0, offset) + 1

    def bodies(self, name: str) -> list[tuple[Command, ...]]:
        """Return the commands inside each ``function(name …)`` or ``macro(name …)``. LexError if one never ends."""
        bodies = []
        for at, command in enumerate(self.commands):
            named = command.name in _OPENS and command.arguments and command.arguments[0].text == name
            if named and self.blocks[at][0]:
                for end in range(at + 1, len(self.commands)):
                    if self.commands[end].name == _OPENS[command.name]:
                        bodies.append(self.commands[at + 1 : end])
                        break
                else:
                    raise LexError(f"{command.name}({name}) without its end", command.line)
        return bodies


class Cut(NamedTuple):
    """A part of a CMake text, what is put in its place, and what that means."""

    start: int
    end: int
    text: str
    command: int
    """Index of the command that it is about."""
    argument: int = -1
    """Index of the argument that it replaces; -1 if it adds commands behind the one that it is about."""
    becomes: tuple[bool, str] = (False, "")
    """The meaning of the argument."""
    added: tuple[Meaning, ...] = ()
    """The meaning of the commands that are added."""


def spliced(script: Script, cuts: Iterable[Cut]) -> Script:
    """Return the script with parts replaced. Overlap: two cuts are about one place. NotAsMeant: the result has other
    commands than the old ones with the intended changes."""
    ordered = sorted(cuts, key=lambda cut: (cut.start, cut.end))
    text = "".join(pieces(script.text, (cut[:3] for cut in ordered)))
    meant = [[meaning] for meaning in script.meaning]
    for cut in ordered:
        if cut.argument < 0:
            meant[cut.command] += cut.added
        else:
            name, arguments = meant[cut.command][0]
            arguments = (*arguments[: cut.argument], cut.becomes, *arguments[cut.argument + 1 :])
            meant[cut.command][0] = (name, arguments)
    try:
        result = parse(text)
    except LexError as error:
        raise NotAsMeant(error.message) from error
    if result.meaning != [meaning for commands in meant for meaning in commands]:
        raise NotAsMeant("other commands")
    return result


@lru_cache(maxsize=64)
def parse(text: str) -> Script:
    """Return the text as commands. LexError: it is not CMake."""
    commands: list[Command] = []
    at = len(BOM) * text.startswith(BOM)
    start, began = 0, 1

    def skip(at: int) -> int:
        """Behind the blanks and comments that begin here."""
        while at < len(text):
            if blank := _BLANK.match(text, at):
                at = blank.end()
            elif text[at] == "#":
                bracket = _BRACKET.match(text, at + 1)
                at = _bracket_end(text, bracket)[1] if bracket else (text.find("\n", at) + 1 or len(text))
            else:
                break
        return at

    while (at := skip(at)) < len(text):
        start, began = at, began + text.count("\n", start, at)
        name = _NAME.match(text, at)
        if not name:
            raise LexError(f"a command was expected at {text[at : at + 20]!r}", began)
        at = _BLANK_ON_LINE.match(text, name.end()).end()  # type: ignore[union-attr]  # it matches nothing, too
        if text[at : at + 1] != "(":
            raise LexError(f"`(` was expected behind `{name[0]}`", began)
        at += 1
        depth, arguments = 1, []
        while depth:
            at = skip(at)
            if at >= len(text):
                raise LexError(f"{name[0]}( is never closed", began)
            argument, end = _argument(text, at)
            if argument.text == ")" and argument.form is Form.PARENTHESIS:
                depth -= 1
            elif argument.text == "(" and argument.form is Form.PARENTHESIS:
                depth += 1
            if depth:
                arguments.append(argument)
            at = end
        commands.append(Command(name[0].lower(), tuple(arguments), start, at, began))
    return Script(text, tuple(commands))


def _argument(text: str, at: int) -> tuple[Argument, int]:
    """Return the argument that begins here, and the offset behind it."""
    if text[at] in "()":
        return Argument(Form.PARENTHESIS, text[at], at, at + 1), at + 1
    if bracket := _BRACKET.match(text, at):
        inner_end, end = _bracket_end(text, bracket)
        return Argument(Form.BRACKET, text[bracket.end() : inner_end], bracket.end(), inner_end), end
    if quoted := _QUOTED.match(text, at):
        return Argument(Form.QUOTED, quoted[1], *quoted.span(1)), quoted.end()
    if unquoted := _UNQUOTED.match(text, at):
        return Argument(Form.UNQUOTED, unquoted[0], *unquoted.span()), unquoted.end()
    raise LexError(f"no argument begins with {text[at : at + 20]!r}", text.count("\n", 0, at) + 1)


def _bracket_end(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Return the end of the text inside a bracket, and the end of the bracket."""
    closing = f"]{opening[1]}]"
    at = text.find(closing, opening.end())
    if at < 0:
        raise LexError(f"`{opening[0]}` is never closed", text.count("\n", 0, opening.start()) + 1)
    return at, at + len(closing)


# Example: # comment
_WORD = re.compile(rf"#[^\n]*|\s+|[()]|{_QUOTED.pattern}|{_UNQUOTED.pattern}|.", re.DOTALL)


def words(text: str) -> Iterator[tuple[str, int]]:
    """Yield names and arguments of commands with their lines, in a part of a file, which may begin within a command."""
    line = 1
    for match in _WORD.finditer(text):
        word = match.group()
        if word.strip() and word[0] != "#":
            yield word, line
        line += word.count("\n")
