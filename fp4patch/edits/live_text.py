"""Live code of a file in its language: its words, expressions and strings.

Comments, strings that are documentation, and code that no compiler reads (``#if 0``, ``if(FALSE)``) do not count.
A text that cannot be read in its language is searched as it is.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from fp4patch.edits.cmake import parse
from fp4patch.edits.cxx import Kind, lex
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.python_code import read_expression

_HASHES = frozenset(["sh", "bash", "zsh", "toml", "cfg", "ini", "conf", "mk", "ps1", "dockerfile", "makefile"])
_PYTHON = frozenset({"py", "pyi", "pyx", "pxd"})


class Place(NamedTuple):
    """Something that should not be there."""

    line: int
    found: str
    because: str = ""
    """The edit's own reason to leave it."""


@lru_cache(maxsize=1 << 15)
def language(file: str) -> str:
    """Return the language of a file by its name: ``c++`` also for templates of sources and whatever is not known."""
    name = file.rpartition("/")[2].lower()
    parts = name.removesuffix(".in").removesuffix(".j2").removesuffix(".jinja").removesuffix(".jinja2").split(".")
    if parts[-1] == "cmake" or name.startswith("cmakelists.txt"):
        return "cmake"
    if parts[-1] in _PYTHON:
        return "python"
    return "hashes" if parts[-1] in _HASHES or parts[0] in ("dockerfile", "makefile") else "c++"


@dataclass(frozen=True)
class Text:
    """A file's text, read in its language on demand."""

    file: str
    language: str
    content: bytes

    @cached_property
    def text(self) -> str:
        """The content, whatever its encoding."""
        return self.content.decode("utf-8", "surrogateescape")

    @cached_property
    def words(self) -> Sequence[tuple[str, int]]:
        """The live words of the code with their lines; a string is ``""``."""
        try:
            return list(_WORDS[self.language](self.text))
        except (LexError, SyntaxError, ValueError, RecursionError):
            return list(_raw_words(self.text))

    @cached_property
    def code(self) -> str:
        """The words with one blank between two."""
        if self.language == "python":
            words = list(filter(None, _PYTHON_TOKEN.findall(self.text)))
            if not any(word in ("'", '"') for word in words):
                return " ".join('""' if word[-1] in "'\"" else word for word in words)
        return " ".join(word for word, _ in self.words)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(word) + 1 for word, _ in self.words), initial=0))

    def matches(self, pattern: str) -> Iterator[Place]:
        """Yield each match of a regular expression in the code."""
        for found in re.finditer(pattern, self.code):
            line = self.words[bisect_right(self._starts, found.start()) - 1][1]
            yield self.place(line)

    def place(self, line: int) -> Place:
        """Return the line as a place, with its text."""
        return Place(line, " ".join(self.text.split("\n")[line - 1].split())[:200])

    def expressions(self, expression: str) -> Iterator[Place]:
        """Yield each Python expression that means the same as this one."""
        try:
            tree = ast.parse(self.text.removeprefix("\ufeff"))
        except (SyntaxError, ValueError, RecursionError):
            yield self.place(1)
            return
        wanted = read_expression(expression)
        for node in ast.walk(tree):
            if isinstance(node, type(wanted)) and ast.dump(node) == ast.dump(wanted):
                yield self.place(node.lineno)

    @property
    def strings(self) -> Iterator[tuple[int, str]]:
        """Line and text of each string that is no documentation; of the whole text where it cannot be read.

        In a language that is not known, the lines without their comments.
        """
        try:
            if self.language == "python":
                nodes = list(ast.walk(ast.parse(self.text.removeprefix("\ufeff"))))
                documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
                for node in nodes:
                    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                        yield node.lineno, node.value
            elif self.language == "cmake":
                script = parse(self.text)
                commands = (script.commands[at] for at in script.live)
                yield from ((command.line, one.text) for command in commands for one in command.arguments)
            else:
                yield 1, _without_comments(self.text)
        except (LexError, SyntaxError, ValueError, RecursionError):
            yield 1, self.text


# --- the words of each language --------------------------------------------------------------------------------------


def _cxx_words(text: str) -> Iterator[tuple[str, int]]:
    source = lex(text)
    dead = iter([*sorted(source.dead), (len(text) + 1, len(text) + 1)])
    first, end = next(dead)
    for token in source.tokens:
        while token.start >= end:
            first, end = next(dead)
        if token.start < first:
            yield ('""' if token.kind is Kind.STRING else token.text), token.line


def _python_words(text: str) -> Iterator[tuple[str, int]]:
    line = 0
    starts = [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text)), len(text) + 1]
    for found in _PYTHON_TOKEN.finditer(text):
        while found.start() >= starts[line]:
            line += 1
        word = found[1]
        if word in ("'", '"'):
            raise SyntaxError("a string that never ends")
        if word:
            yield '""' if word[-1] in "'\"" else word, line


def _cmake_words(text: str) -> Iterator[tuple[str, int]]:
    script = parse(text)
    for command in (script.commands[at] for at in script.live):
        yield from ((word, command.line) for word in ("", command.name, "("))
        yield from ((repr(argument.meaning), command.line) for argument in command.arguments)
        yield from ((word, command.line) for word in (")", ""))


def _without_comments(text: str) -> str:
    return "\n".join(line.partition("#")[0] for line in text.split("\n"))


def _raw_words(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((word, number) for word in re.findall(r"\w+|[^\w\s]", line))


_WORDS: Mapping[str, Callable[[str], Iterator[tuple[str, int]]]] = {
    "c++": _cxx_words,
    "python": _python_words,
    "cmake": _cmake_words,
    "hashes": lambda text: _raw_words(_without_comments(text)),
}


_PYTHON_TOKEN = re.compile(
    r"""
      (?:\#[^\n\r]*|\s+|\\\r?\n|\ufeff)+
    | ( (?i:[rbuft]|rb|br|fr|rf|tr|rt)?
        (?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | 0[xXoObB]\w+
      | (?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?
      | \w+
      | .
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Blanks and comments, or a string, a number, a name or a mark; a quote by itself begins a string that never ends."""
LANGUAGES = tuple(_WORDS)
