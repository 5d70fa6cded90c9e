"""What of a C++ text is no code: continuations, comments, literals, and the lines of the preprocessor.

The phases are those of [lex.phases]: continuations are taken out first (and given back inside raw strings), then one
expression finds comments, literals and directives. It reads a text several times as fast as all of its tokens can be.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fp4patch.core.lex_error import LexError

BOM = "\ufeff"

SPLICE = re.compile(r"\\[ \t]*\r?\n")
"""A continuation. Compilers accept blanks behind the backslash, and so does this."""
COMMENT = re.compile(r"//(?:\\[ \t]*\r?\n|[^\n])*|/\*.*?\*/", re.DOTALL)
"""A comment in a text as it is written, between two tokens."""

SPLICED_COMMENT = r"//[^\n]*+|/\*(?s:.*?)\*/"
"""A comment in a text without continuations. The expressions below, too, are for such a text."""
ENCODING = r"(?:u8|[uUL])?"
RAW = rf'{ENCODING}R"(?P<delimiter>[^\s()\\"]{{0,16}})\('
"""The beginning of a raw string: ``u8R"x(``."""
STRING = rf'{ENCODING}"(?:[^"\\\n]|\\[^\n])*"'
CHARACTER = rf"{ENCODING}'(?:[^'\\\n]|\\[^\n])+'"
NUMBER = r"\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*"
"""A preprocessing number: ``0x1p-3f``, ``1'000u``, ``.5``."""
NAME = r"[^\W\d][\w$]*"

GAP = rf"(?:\s++|{SPLICED_COMMENT})*+"
"""What may be between two tokens."""

_PART = re.compile(
    rf"""
    (?: [^\w$"'/\#.%]++         # white space and punctuation
      | %(?!:)
      | {NAME}+(?!["'])         # a name that is no prefix of a literal
      | \$[\w$]*+
      | {NUMBER}
      | [.\d]
      | /(?![/*])
    )*+
    (?: (?P<comment>{SPLICED_COMMENT})
      | (?P<raw>{RAW}(?s:.*?)\)(?P=delimiter)")
      | (?P<endless>(?:/\*|{ENCODING}R"[^\s()\\"]{{0,16}}\()(?s:.*))
      | (?P<literal>{STRING}|{CHARACTER})
      | {NAME}
      | (?P<mark>\#|%:)
      | .                       # a quote without its partner
    )
    """,
    re.VERBOSE,
)
"""What is code of no interest, and the next part: in ``a + "s" // c`` first ``"s"``, then ``// c``."""


DIGRAPHS = {"%:": "#", "<%": "{", "%>": "}", "<:": "[", ":>": "]"}
"""Punctuation that is another one ([lex.digraph])."""

Span = tuple[int, int]
"""A part of a text, by the offsets of its begin and its end."""


@dataclass(frozen=True)
class Spliced:
    """A text without its continuations, and where it is in the text as it is written."""

    text: str
    borders: tuple[int, ...]
    """Offsets in ``text`` at which there was a continuation."""
    shifts: tuple[int, ...]
    """By how much an offset behind each border is to be moved; as many as ``borders``."""

    def original(self, offset: int, *, behind: bool = False) -> int:
        """Return an offset in the text as it is written. ``behind``: that behind a token, which no continuation is part
        of, although it is right there."""
        if not self.borders:
            return offset
        passed = bisect_right(self.borders, offset - behind)
        return offset + (self.shifts[passed - 1] if passed else 0)

    def originals(self, offsets: Sequence[int], *, behind: bool = False) -> list[int]:
        """Return what :meth:`original` returns of each of some offsets, which ascend."""
        place = bisect_right if behind else bisect_left
        moved: list[int] = []
        at = shift = 0
        for border, next_shift in zip(self.borders, self.shifts, strict=True):
            stop = place(offsets, border, at)
            moved += [offset + shift for offset in offsets[at:stop]] if shift else offsets[at:stop]
            at, shift = stop, next_shift
        moved += [offset + shift for offset in offsets[at:]]
        return moved

    def logical(self, offset: int) -> int:
        """Return where an offset of the text as it is written is in this one; the border for one inside of a
        continuation."""
        if not self.borders:
            return offset
        passed = bisect_right(self._starts, offset)
        if not passed:
            return offset
        return max(self.borders[passed - 1], offset - self.shifts[passed - 1])

    @cached_property
    def _starts(self) -> list[int]:
        before = (0, *self.shifts)
        return [border + shift for border, shift in zip(self.borders, before, strict=False)]


def spliced(text: str) -> Spliced:
    """Return a text without its continuations."""
    pieces: list[str] = []
    borders: list[int] = []
    shifts: list[int] = []
    at = length = 0
    for splice in SPLICE.finditer(text):
        pieces.append(text[at : splice.start()])
        length += splice.start() - at
        at = splice.end()
        borders.append(length)
        shifts.append(at - length)
    if not borders:
        return Spliced(text, (), ())
    pieces.append(text[at:])
    return Spliced("".join(pieces), tuple(borders), tuple(shifts))


@dataclass(frozen=True)
class Skeleton:
    """Offsets in a text without continuations of what is no code."""

    comments: tuple[Span, ...]
    literals: tuple[Span, ...]
    """Strings and characters, with prefix and quotes."""
    directives: tuple[Span, ...]
    """From ``#`` to the end of the logical line, without its comments at the end."""
    several: tuple[Span, ...]
    """Those comments and literals in which there is more than one line."""

    def around(self, offset: int) -> Span | None:
        """Return the comment or literal of several lines that an offset is inside of; None if it is in none."""
        passed = bisect_right(self._firsts, offset)
        found = self.several[passed - 1] if passed else None
        return found if found and offset < found[1] else None

    @cached_property
    def _firsts(self) -> list[int]:
        return [start for start, _ in self.several]

    def line_end(self, text: str, offset: int) -> int:
        """Return the offset of the newline that ends the line of an offset, or of the end of the text: one inside of a
        comment or a literal ends no line."""
        while True:
            newline = text.find("\n", offset)
            if newline < 0:
                return len(text)
            inside = self.around(newline)
            if inside is None:
                return newline
            offset = inside[1]

    def line_start(self, text: str, offset: int) -> int:
        """Return the offset at which the line of an offset begins, as for :meth:`line_end`."""
        while True:
            newline = text.rfind("\n", 0, offset)
            if newline < 0:
                return 0
            inside = self.around(newline)
            if inside is None:
                return newline + 1
            offset = inside[0]


def skeleton(spliced: Spliced, written: str) -> Skeleton:
    """Return what of a text is no code. ``written``: the text with its continuations.

    LexError: a ``/*`` or a raw string without an end in the text as it is written.
    """
    text = spliced.text
    comments: list[Span] = []
    literals: list[Span] = []
    several: list[Span] = []
    marks: list[int] = []
    for kind, span in _parts(spliced, written):
        if kind == "mark":
            marks.append(span[0])
            continue
        (comments if kind == "comment" else literals).append(span)
        if kind != "literal" and "\n" in text[span[0] : span[1]]:
            several.append(span)
    whole = Skeleton(tuple(comments), tuple(literals), (), tuple(several))
    return replace(whole, directives=tuple(_directives(text, whole, marks)))


def literals(text: str) -> Iterator[str]:
    """Yield the strings and characters of a text one by one; what is behind the last one that is asked for is not read.
    LexError as for :func:`skeleton`."""
    without = spliced(text)
    for kind, (start, end) in _parts(without, text):
        if kind in ("literal", "raw"):
            yield without.text[start:end]


def _parts(spliced: Spliced, written: str) -> Iterator[tuple[str, Span]]:
    """Yield each comment, literal, raw string and number sign (mark) of a text without continuations."""
    text = spliced.text
    for found in _PART.finditer(text, len(BOM) * text.startswith(BOM)):
        kind = found.lastgroup
        if kind is None:
            continue
        start, end = found.span(kind)
        if kind == "endless":
            what = "/* comment that never ends" if found[kind].startswith("/") else _NO_END
            raise LexError(f"a {what}", _line(written, spliced.original(start)))
        if kind == "raw":
            begin, stop = spliced.original(start), spliced.original(end, behind=True)
            if not written.endswith(f'){found["delimiter"]}"', begin, stop):
                raise LexError(f"a {_NO_END}", _line(written, begin))
        yield kind, (start, end)


_NO_END = "raw string that has no end as it is"


def _line(written: str, offset: int) -> int:
    return written.count("\n", 0, offset) + 1


def _directives(text: str, whole: Skeleton, marks: Sequence[int]) -> Iterator[Span]:
    """Yield the lines that begin with one of the number signs, but for blanks and comments."""
    done = -1
    for mark in marks:
        if mark < done or not _is_first(text, whole, mark):
            continue
        done = whole.line_end(text, mark)
        yield mark, done


def _is_first(text: str, whole: Skeleton, mark: int) -> bool:
    """Tell whether only blanks and comments are before an offset in its line."""
    begin = whole.line_start(text, mark)
    at = mark
    comments = whole.comments
    number = bisect_right(comments, (mark, mark)) - 1
    while True:
        before = text[begin:at].rstrip()
        if not before.removeprefix(BOM if begin == 0 else ""):
            return True
        at = begin + len(before)
        if number < 0 or comments[number][1] != at:
            return False
        at = comments[number][0]
        number -= 1
