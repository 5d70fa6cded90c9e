"""C++ and CUDA as tokens with offsets, so that an edit's anchor ignores white space, comments and line continuations.

A lexer, not a parser: no macro is expanded and no condition evaluated. Text that is not C++, such as prose behind
``#error``, never raises; only what swallows the rest of the file does: LexError. Comments, literals and directives are
known at once (``text.py``), tokens are made where somebody asks for them.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import NamedTuple

from fp4patch.core.lex_error import LexError
from fp4patch.cxx.condition import holds
from fp4patch.cxx.text import (
    BOM,
    CHARACTER,
    DIGRAPHS,
    GAP,
    NAME,
    NUMBER,
    RAW,
    SPLICED_COMMENT,
    STRING,
    Skeleton,
    Span,
    Spliced,
    skeleton,
    spliced,
)

_LEXEME = re.compile(
    rf"""
    (?:\s++|{SPLICED_COMMENT})*+
    ( {NAME}+(?!["']) | \$[\w$]*+
    | %:|<%|%>|<:(?!:[^:>])|(?<!:):>
    | [][(){{}}<>,;:=&*+!|?~^%-]
    | {RAW}(?s:.*?)\)(?P=delimiter)"
    | {STRING}
    | {CHARACTER}
    | {NUMBER}
    | {NAME}
    | .
    | \Z
    )
    """,
    re.VERBOSE,
)
"""What is between two tokens, and the next one, in a text without continuations: in ``a /* b */ += 1`` after ``a``
first ``+``, then ``=`` and ``1``."""


class Kind(Enum):
    """Kind of a token."""

    NAME = auto()
    """Identifiers and keywords."""
    NUMBER = auto()
    STRING = auto()
    """With its prefix and quotes; raw strings too."""
    CHAR = auto()
    MARK = auto()
    """One character of punctuation: ``>>`` is two, so that it equals ``> >``."""


class Token(NamedTuple):
    """One token. ``start`` and ``end`` are offsets into the text as it is; ``text`` has no continuations in it."""

    kind: Kind
    text: str
    start: int
    end: int
    line: int
    """1-based, of its first character."""
    directive: int = -1
    """Index of the preprocessor directive that it belongs to; -1 in code."""


@dataclass(frozen=True)
class Directive:
    """A preprocessor directive: one logical line."""

    source: "Source"
    index: int
    name: str
    """``if``; empty for a lone ``#``."""
    line: int
    start: int
    """Offset of its ``#``."""
    stop: int
    """Offset of the end of its line."""

    @cached_property
    def words(self) -> tuple[Token, ...]:
        """All of its tokens."""
        return self.source.tokens_in(self.start, self.stop)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens behind its name."""
        return self.words[2 if self.name else 1 :]

    @property
    def end(self) -> int:
        """Offset behind its last token."""
        return self.words[-1].end


@dataclass(frozen=True)
class Branch:
    """One branch of a conditional, from its ``#if``, ``#elif`` or ``#else`` up to the next of them."""

    opening: Directive
    body: tuple[Directive, ...]
    """The directives directly in it; those of nested conditionals are not."""
    end: int
    """Offset of the ``#`` that ends it."""

    @property
    def condition(self) -> tuple[Token, ...]:
        """The tokens of its condition; none for ``#else``."""
        return self.opening.tokens


@dataclass(frozen=True)
class Conditional:
    """``#if`` to ``#endif``."""

    branches: tuple[Branch, ...]
    closing: Directive

    @property
    def start(self) -> int:
        """Offset of the ``#`` of ``#if``."""
        return self.branches[0].opening.start

    @property
    def dead(self) -> Iterator[tuple[int, int]]:
        """The spans of its branches that are never compiled, whatever is defined."""
        decided = False
        for branch in self.branches:
            taken = holds(branch.opening.name, [token.text for token in branch.condition])
            if decided or taken is False:
                yield branch.opening.end, branch.end
            decided = decided or taken is True

    @property
    def is_include_guard(self) -> bool:
        """``#ifndef X``, ``#define X`` as the first directive in it, and no ``#else``."""
        first, names = self.branches[0], [token.text for token in self.branches[0].condition]
        defined = [token.text for d in first.body[:1] if d.name == "define" for token in d.tokens[:1]]
        return len(self.branches) == 1 and first.opening.name == "ifndef" and len(names) == 1 and defined == names


@dataclass(frozen=True, eq=False)
class Source:
    """A text with its tokens; white space, comments and continuations are located between them."""

    text: str
    spliced: Spliced
    """The text without its continuations."""
    skeleton: Skeleton
    """What of that is no code."""

    @cached_property
    def _read(self) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
        return self._lexed(0, len(self.spliced.text))

    def _lexed(self, start: int, end: int) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
        """Return texts, offsets and ends of the tokens between two offsets in the text without continuations."""
        logical = self.spliced.text
        start = max(start, len(BOM) * logical.startswith(BOM))
        spans = [found.span(1) for found in _LEXEME.finditer(logical, start, end)]
        while spans and spans[-1][0] == spans[-1][1]:
            spans.pop()
        words = [logical[begin:stop] for begin, stop in spans]
        if "%" in logical or "<:" in logical or ":>" in logical:
            words = [DIGRAPHS.get(word, word) for word in words]
        begins, stops = [begin for begin, _ in spans], [stop for _, stop in spans]
        if not self.spliced.borders:
            return tuple(words), tuple(begins), tuple(stops)
        starts = self.spliced.originals(begins)
        ends = self.spliced.originals(stops, behind=True)
        for at, word in enumerate(words):
            if "R" in word and _is_raw(word):  # continuations inside count as they are
                words[at] = self.text[starts[at] : ends[at]]
        return tuple(words), tuple(starts), tuple(ends)

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens' texts."""
        return self._read[0]

    @property
    def starts(self) -> tuple[int, ...]:
        """The tokens' offsets."""
        return self._read[1]

    @property
    def ends(self) -> tuple[int, ...]:
        """The offsets behind them."""
        return self._read[2]

    def token(self, at: int) -> Token:
        """Return one token."""
        word, start = self.words[at], self.starts[at]
        return Token(_kind(word), word, start, self.ends[at], self.line(start), self.directive_of[at])

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens. Where few are looked at, :meth:`token` and :meth:`tokens_in` take less time."""
        return tuple(map(self.token, range(len(self.words))))

    def tokens_in(self, start: int, end: int) -> tuple[Token, ...]:
        """Return the tokens between two offsets, at each of which a line or a token begins or ends."""
        part = self.part(start, end)
        return tuple(
            Token(_kind(word), word, begin, stop, self.line(begin), directive)
            for word, begin, stop, directive in zip(*part, strict=True)
        )

    def part(self, start: int, end: int) -> "Part":
        """Return what :meth:`tokens_in` does, as columns."""
        words, starts, ends = self._lexed(self.spliced.logical(start), self.spliced.logical(end))
        indices = [-1] * len(words)
        first = max(0, bisect_right(self._directive_starts, start) - 1)
        for directive in self.directives[first:]:
            if directive.start >= end:
                break
            begin, stop = bisect_left(starts, directive.start), bisect_left(starts, directive.stop)
            indices[begin:stop] = [directive.index] * (stop - begin)
        return Part(words, starts, ends, indices)

    def directive_around(self, offset: int) -> int:
        """Return the index of the directive whose line goes on at an offset, or ends there; -1 in code."""
        before = bisect_left(self._directive_starts, offset) - 1
        return before if before >= 0 and offset <= self.directives[before].stop else -1

    @cached_property
    def _directive_starts(self) -> list[int]:
        return [directive.start for directive in self.directives]

    @cached_property
    def comments(self) -> tuple[Span, ...]:
        """The comments."""
        return tuple(map(self._written, self.skeleton.comments))

    @cached_property
    def literals(self) -> tuple[Span, ...]:
        """The strings and characters, with their prefixes and quotes."""
        return tuple(map(self._written, self.skeleton.literals))

    def _written(self, span: Span) -> Span:
        return self.spliced.original(span[0]), self.spliced.original(span[1], behind=True)

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """The preprocessor directives, in their order."""
        return tuple(self._directive(index, *span) for index, span in enumerate(self.skeleton.directives))

    def _directive(self, index: int, mark: int, stop: int) -> Directive:
        found = _LEXEME.match(self.spliced.text, mark + 1 + (self.spliced.text[mark] == "%"), stop)
        word = found[1] if found else ""
        name = word if word and _kind(word) is Kind.NAME else ""
        start = self.spliced.original(mark)
        return Directive(self, index, name, self.line(start), start, self.spliced.original(stop, behind=True))

    @cached_property
    def directive_of(self) -> list[int]:
        """The index of the directive that each token belongs to; -1 in code."""
        indices = [-1] * len(self.words)
        for directive in self.directives:
            first, last = (bisect_left(self.starts, at) for at in (directive.start, directive.stop))
            indices[first:last] = [directive.index] * (last - first)
        return indices

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """Every conditional, nested ones too, in the order of their ``#if``. LexError if they do not pair."""
        return _conditionals(self.directives)

    @cached_property
    def dead(self) -> tuple[tuple[int, int], ...]:
        """Spans that no compiler reads, whatever is defined: below ``#if 0``, or the ``#else`` of ``#if 1``."""
        # Where they do not pair nothing is certain; edits of conditions refuse it.
        return tuple(span for conditional in self.conditionals for span in conditional.dead) if self.pairs else ()

    def is_live(self, offset: int) -> bool:
        """Tell whether a compiler may read what is at this offset."""
        return not any(start <= offset < end for start, end in self.dead)

    @cached_property
    def pairs(self) -> bool:
        """True if each ``#if`` has its ``#endif``."""
        try:
            return self.conditionals is not None
        except LexError:
            return False

    def before(self, index: int) -> Token | None:
        """Return the last token in code before one; None if there is none."""
        return next((self.token(at) for at in range(index - 1, -1, -1) if self.directive_of[at] < 0), None)

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset."""
        return bisect_left(self._newlines, offset) + 1

    @cached_property
    def _newlines(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.text)]

    def find(self, pattern: Sequence[str]) -> list[int]:
        """Return the indices of the live tokens at which the token sequence ``pattern`` begins."""
        if not pattern or not occurrence(tuple(pattern)).search(self.spliced.text):
            return []
        return [at for at in _occurrences(self.words, tuple(pattern)) if self.is_live(self.starts[at])]

    def nearest(self, pattern: Sequence[str]) -> tuple[int | None, str]:
        """Return line and difference of the longest prefix of ``pattern``; None if not even its first token occurs."""
        best, place = 0, 0
        for at in _occurrences(self.words, tuple(pattern[:1])) if pattern else ():
            matched = next((n for n, word in enumerate(pattern) if self.words[at + n : at + n + 1] != (word,)), 0)
            if matched > best:
                best, place = matched, at
        if not best:
            return None, ""
        found = "".join(self.words[place + best : place + best + 1])
        line = self.line(self.starts[min(place + best, len(self.words) - 1)])
        return line, f"`{found}` where `{pattern[best]}` was expected"


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """Return the token texts of a pattern such as ``struct A<B, 2> {``. LexError as for :func:`lex`."""
    return read(text).words


class Part(NamedTuple):
    """Tokens as columns."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    directives: Sequence[int]
    """The index of the directive that each belongs to; -1 in code."""


def _kind(word: str) -> Kind:
    first, last = word[0], word[-1]
    if len(word) > 1 and last in ('"', "'"):
        return Kind.STRING if last == '"' else Kind.CHAR
    if first in "0123456789" or (first == "." and len(word) > 1):
        return Kind.NUMBER
    return Kind.NAME if first in "_$" or (first.isalnum() and not first.isdecimal()) else Kind.MARK


def _is_raw(word: str) -> bool:
    return _RAW.match(word) is not None


_RAW = re.compile(RAW)


def read(text: str) -> Source:
    """Return the text as tokens. LexError: a ``/*`` or a raw string without an end, in the text as it is."""
    logical = spliced(text)
    return Source(text, logical, skeleton(logical, text))


@lru_cache(maxsize=16)
def lex(text: str) -> Source:
    """As :func:`read`; the last texts are kept, since several checks read the same file."""
    return read(text)


_WRITTEN = {mark: f"(?:{re.escape(mark)}|{digraph})" for digraph, mark in DIGRAPHS.items()}


@lru_cache(maxsize=1024)
def occurrence(pattern: tuple[str, ...]) -> re.Pattern[str]:
    """Return what passes each text without continuations in which the token sequence occurs, and few others."""
    words = [
        _WRITTEN.get(word) or re.escape(word) for word in pattern if not _is_raw(word)
    ]  # a raw string keeps its continuations
    return re.compile(GAP.join(words) if len(words) == len(pattern) else "")


OPENS = frozenset({"if", "ifdef", "ifndef"})
CONTINUES = frozenset({"elif", "elifdef", "elifndef", "else"})
"""Directives by their whole names: in a group that is skipped, any other word may stand behind ``#``."""


def _conditionals(directives: Sequence[Directive]) -> tuple[Conditional, ...]:
    done: list[Conditional] = []
    # Each open conditional: its finished branches, the opening of the current one, and the directives in that so far.
    open_: list[tuple[list[Branch], Directive, list[Directive]]] = []
    for directive in directives:
        if directive.name in OPENS:
            open_.append(([], directive, []))
        elif directive.name in CONTINUES or directive.name == "endif":
            if not open_:
                raise LexError(f"#{directive.name} without an #if", directive.line)
            branches, opening, body = open_.pop()
            if directive.name != "endif" and opening.name == "else":
                raise LexError(f"#{directive.name} after #else", directive.line)
            branches.append(Branch(opening, tuple(body), directive.start))
            if directive.name == "endif":
                done.append(Conditional(tuple(branches), directive))
            else:
                open_.append((branches, directive, []))
        elif open_:
            open_[-1][2].append(directive)
    if open_:
        branches, opening, _ = open_[-1]
        first = branches[0].opening if branches else opening
        raise LexError(f"#{first.name} without an #endif", first.line)
    return tuple(sorted(done, key=lambda conditional: conditional.start))


def _occurrences(haystack: tuple[str, ...], needle: tuple[str, ...]) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = haystack.index(needle[0], at + 1)
        except ValueError:
            return
        if haystack[at : at + len(needle)] == needle:
            yield at
