"""Mutants of a patch's own new text: one operator, constant or operand of it turned or dropped.

A check that gives the same for a mutant does not look at what was changed there, so that it does not judge the line.
"""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from fp4patch.cxx.tokens import lex
from fp4patch.edits.cmake import parse

_TURNED: Mapping[str, tuple[str, ...]] = {
    "==": ("!=", ">=", "<="),
    "!=": ("==",),
    ">=": (">", "==", "<"),
    "<=": ("<", "==", ">"),
    ">": (">=", "<"),
    "<": ("<=", ">"),
    "in": ("not in",),
    "is": ("is not",),
    "&&": ("||",),
    "||": ("&&",),
    "and": ("or",),
    "or": ("and",),
    "AND": ("OR",),
    "OR": ("AND",),
    "!": ("",),
    "not": ("",),
    "NOT": ("",),
    "EQUAL": ("GREATER_EQUAL", "LESS_EQUAL"),
    "GREATER": ("GREATER_EQUAL", "LESS"),
    "GREATER_EQUAL": ("GREATER", "EQUAL", "LESS"),
    "LESS": ("LESS_EQUAL", "GREATER"),
    "LESS_EQUAL": ("LESS", "EQUAL", "GREATER"),
    "VERSION_EQUAL": ("VERSION_GREATER_EQUAL", "VERSION_LESS_EQUAL"),
    "VERSION_GREATER": ("VERSION_GREATER_EQUAL", "VERSION_LESS"),
    "VERSION_GREATER_EQUAL": ("VERSION_GREATER", "VERSION_EQUAL", "VERSION_LESS"),
    "VERSION_LESS": ("VERSION_LESS_EQUAL", "VERSION_GREATER"),
    "VERSION_LESS_EQUAL": ("VERSION_LESS", "VERSION_EQUAL", "VERSION_GREATER"),
    "True": ("False",),
    "False": ("True",),
    "true": ("false",),
    "false": ("true",),
}
_NEUTRAL = {"&&": "1", "AND": "1", "and": "True", "||": "0", "OR": "0", "or": "False"}
"""What an operand of an operator is replaced by, so that the other one alone decides."""
_BORDERS = frozenset((*_NEUTRAL, *("?", ":", ",", ";", "=", "{", "}", "return", "if", "elif", "else", "while", "#")))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ELEMENT = re.compile(r";?[^;]+")
"""An element of a list in CMake, with the semicolon before it: without both the list is shorter."""
_BEHIND = re.compile(r";[^;]")
"""An element that is not the first."""
# Example: ;12.1a
_ARCHITECTURE = re.compile(r";?\d+\.\d[af]?(\+PTX)?")
"""An element that is dropped alone: another architecture that no list names is the same as none."""
_DIGITS = re.compile(r"(?<![\w.])\d+|(?<=\.)\d+")
"""Numbers of a constant: each of ``12.1``, and none of ``sm_121``."""


class Token(NamedTuple):
    """A token with its offsets."""

    text: str
    start: int
    end: int


class Mutant(NamedTuple):
    """A text with one change, and the line of it."""

    line: int
    text: str


def mutants(language: str, before: str, after: str) -> Iterator[Mutant]:
    """Yield the mutants of the tokens that a text has and the one before it has not. May raise what the reader of the
    language raises."""
    old, new = tokens(language, before), tokens(language, after)
    # To CMake's lists, an element is the same with the semicolon before it and without.
    was, now = ([token.text.removeprefix(";") or ";" for token in of] for of in (old, new))
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    own = [at for tag, _, _, first, last in matcher.get_opcodes() if tag != "equal" for at in range(first, last)]
    for at in own:
        line = after.count("\n", 0, new[at].start) + 1
        for start, end, text in _changes(new, at):
            yield Mutant(line, after[:start] + text + after[end:])


def tokens(language: str, text: str) -> list[Token]:
    """Return the tokens of a text; of CMake the elements of arguments, and the parentheses of conditions."""
    if language == "python":
        return _python(text)
    if language == "cmake":
        arguments = (argument for command in parse(text).commands for argument in command.arguments)
        spans = ((one.start, found) for one in arguments for found in _ELEMENT.finditer(one.text))
        return [Token(found[0], start + found.start(), start + found.end()) for start, found in spans]
    source = lex(text)
    found: list[Token] = []
    for word, start in zip(source.words, source.starts, strict=True):
        token = Token(word, start, start + len(word))
        if found and found[-1].end == start and found[-1].text + word in _TURNED:
            token = Token(found[-1].text + word, found.pop().start, token.end)
        found.append(token)
    return found


def _python(text: str) -> list[Token]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        read = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from error
    kinds = (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
    places = ((one, starts[one.start[0] - 1] + one.start[1], starts[one.end[0] - 1] + one.end[1]) for one in read)
    return [Token(one.string, start, end) for one, start, end in places if one.type in kinds]


def _changes(of: Sequence[Token], at: int) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of a text that mutants of a token replace, each with what stands there then."""
    token = of[at]
    for turned in _TURNED.get(token.text, ()):
        yield token.start, token.end, turned
    is_behind = _BEHIND.match(token.text)
    is_first = at + 1 < len(of) and of[at + 1].start == token.end and _BEHIND.match(of[at + 1].text)
    is_element = bool(is_behind or is_first) and token.text not in _TURNED
    if is_element:
        yield token.start, token.end + (not is_behind), ""
    if token.text not in _TURNED and not (is_element and _ARCHITECTURE.fullmatch(token.text)):
        for number in _DIGITS.finditer(token.text):
            yield token.start + number.start(), token.start + number.end(), str(int(number[0]) + 1)
    if neutral := _NEUTRAL.get(token.text):
        for step in (-1, 1):
            operand = _operand(of, at, step)
            if operand:
                yield operand[0].start, operand[-1].end, neutral


def _operand(of: Sequence[Token], at: int, step: int) -> list[Token]:
    """Return the tokens of an operator's operand before it, or behind it."""
    inner, outer = (_CLOSING, _OPENING) if step < 0 else (_OPENING, _CLOSING)
    depth, end = 0, at + step
    while 0 <= end < len(of) and (depth or of[end].text not in _BORDERS | outer):
        depth += (of[end].text in inner) - (of[end].text in outer)
        end += step
    return [*of[end + 1 : at]] if step < 0 else [*of[at + 1 : end]]
