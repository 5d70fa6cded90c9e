"""C++ and CUDA as tokens with offsets, so that an edit's anchor ignores white space, comments and line continuations.

A lexer, not a parser: no macro is expanded and no condition evaluated. The phases follow [lex.phases]: continuations
are spliced first (and given back inside raw strings), then comments and tokens are found. Text that is not C++, such as
prose behind ``#error``, never raises; only what swallows the rest of the file does: LexError.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from fp4patch.patching.lex_error import LexError

BOM = "\ufeff"

_SPLICE = re.compile(r"\\[ \t]*\r?\n")  # compilers accept blanks behind the backslash, and so does this
_ENCODING = r"(?:u8|[uUL])?"
_LEXEME = re.compile(
    rf"""
      (?P<newline>\n)
    | (?P<blank>[^\S\n]+)
    | (?P<comment>//[^\n]*|(?s:/\*.*?(?:\*/|\Z)))
    | (?P<raw>{_ENCODING}R"(?P<delimiter>[^\s()\\"]{{0,16}})\()
    | (?P<string>{_ENCODING}"(?:[^"\\\n]|\\[^\n])*")
    | (?P<char>{_ENCODING}'(?:[^'\\\n]|\\[^\n])+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
    | (?P<name>[^\W\d][\w$]*|\$[\w$]*)
    | (?P<mark>.)
    """,
    re.VERBOSE,
)


class Kind(Enum):
    """What a token is."""

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


class Comment(NamedTuple):
    """One comment, ``//`` up to its line's end or ``/* */``."""

    text: str
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Directive:
    """A preprocessor directive: one logical line. ``tokens`` begin behind its name."""

    name: str
    """``if``; empty for a lone ``#``."""
    tokens: tuple[Token, ...]
    line: int
    index: int
    start: int
    """Offset of its ``#``."""
    end: int
    """Offset behind its last token."""


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

    @property
    def defines(self) -> tuple[str, ...]:
        """The macros that it defines directly."""
        return tuple(d.tokens[0].text for d in self.body if d.name == "define" and d.tokens)


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
    def is_include_guard(self) -> bool:
        """``#ifndef X``, ``#define X`` as the first directive in it, and no ``#else``."""
        first = self.branches[0]
        names = [token.text for token in first.condition]
        return (
            len(self.branches) == 1
            and first.opening.name == "ifndef"
            and len(names) == 1
            and [d.name for d in first.body[:1]] == ["define"]
            and first.defines[:1] == tuple(names)
        )


class Near(NamedTuple):
    """The place that comes closest to a pattern: where it first differs."""

    matched: int
    """How many tokens of the pattern are there."""
    expected: str
    found: str
    """``""`` at the end of the file."""
    line: int


@dataclass(frozen=True)
class Source:
    """A text and its tokens, comments and directives; what lies between them is white space and continuations."""

    text: str
    tokens: tuple[Token, ...]
    comments: tuple[Comment, ...]
    directives: tuple[Directive, ...]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens' texts."""
        return tuple(token.text for token in self.tokens)

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """Every conditional, nested ones too, in the order of their ``#if``. LexError if they do not pair."""
        return _conditionals(self.directives)

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        return self.text.count("\n", 0, offset) + 1

    def find(self, pattern: Sequence[str]) -> list[int]:
        """The indices of the tokens at which the token sequence ``pattern`` begins."""
        return list(_occurrences(self.words, tuple(pattern))) if pattern else []

    def nearest(self, pattern: Sequence[str]) -> Near | None:
        """Where the longest beginning of ``pattern`` stands; None if not even its first token occurs."""
        best: tuple[int, int] | None = None
        for at in _occurrences(self.words, tuple(pattern[:1])) if pattern else ():
            matched = 1
            while matched < len(pattern) and self.words[at + matched : at + matched + 1] == (pattern[matched],):
                matched += 1
            if best is None or matched > best[0]:
                best = matched, at
        if best is None or best[0] == len(pattern):
            return None
        matched, at = best
        differing = self.tokens[at + matched : at + matched + 1]
        last = differing[0] if differing else self.tokens[-1]
        return Near(matched, pattern[matched], differing[0].text if differing else "", last.line)


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """The token texts of a pattern such as ``struct A<B, 2> {``. LexError as for :func:`lex`."""
    return lex(text).words


@lru_cache(maxsize=8)  # an edit reads its result to prove it, and the next edit of the fold reads the same text again
def lex(text: str) -> Source:
    """The text as tokens. LexError: a ``/*`` or a raw string that never ends."""
    logical, origin = _splice(text)
    newlines = [at for at, character in enumerate(text) if character == "\n"]

    def line_of(offset: int) -> int:
        return bisect_left(newlines, offset) + 1

    tokens: list[Token] = []
    comments: list[Comment] = []
    directives: list[tuple[int, int]] = []  # indices of the first token and behind the last
    fresh, directive = True, -1  # no token on this logical line yet; the directive that the line is
    at = 1 if logical.startswith(BOM) else 0
    while at < len(logical):
        found = _LEXEME.match(logical, at)
        assert found, "the last form takes any character"
        kind, start = found.lastgroup, origin.at(at)
        at = found.end()
        if kind == "newline":
            if directive >= 0:
                directives[directive] = (directives[directive][0], len(tokens))
            fresh, directive = True, -1
            continue
        if kind == "blank":
            continue
        if kind == "comment":
            body = found.group()
            if body.startswith("/*") and not (len(body) >= 4 and body.endswith("*/")):
                raise LexError("a /* comment that never ends", line_of(start))
            end = origin.behind(at)
            if body.startswith("//") and body.endswith("\r"):
                end -= 1  # the \r belongs to the line's end
            comments.append(Comment(text[start:end], start, end, line_of(start)))
            continue
        body, end = found.group(), origin.behind(at)
        if found["raw"] is not None:  # continuations inside count as they are: look in the text itself
            close = text.find(f'){found["delimiter"]}"', end)
            if close < 0:
                raise LexError("a raw string that never ends", line_of(start))
            end = close + len(found["delimiter"]) + 2
            body, kind, at = text[start:end], "string", origin.logical(end)
        if fresh and body == "#":
            directive = len(directives)
            directives.append((len(tokens), -1))
        fresh = False
        tokens.append(Token(Kind[str(kind).upper()], body, start, end, line_of(start), directive))
    if directive >= 0:
        directives[directive] = (directives[directive][0], len(tokens))
    spans = (tokens[first:last] for first, last in directives)
    return Source(text, tuple(tokens), tuple(comments), tuple(_directive(n, span) for n, span in enumerate(spans)))


class _Origin:
    """From offsets in the spliced text to offsets in the text as it is, and back."""

    def __init__(self, pieces: Sequence[tuple[int, int]]) -> None:
        self.originals = [start for start, _ in pieces]
        self.logicals = [0, *accumulate(end - start for start, end in pieces[:-1])]

    def at(self, offset: int) -> int:
        """Where the character at this spliced offset stands."""
        piece = bisect_right(self.logicals, offset) - 1
        return self.originals[piece] + offset - self.logicals[piece]

    def behind(self, offset: int) -> int:
        """The offset behind the character before this spliced offset: a continuation after it is not part of it."""
        return self.at(offset - 1) + 1

    def logical(self, offset: int) -> int:
        """The spliced offset of an original one."""
        piece = bisect_right(self.originals, offset) - 1
        inside = offset - self.originals[piece]
        limit = self.logicals[piece + 1] if piece + 1 < len(self.logicals) else None
        moved = self.logicals[piece] + inside
        return moved if limit is None else min(moved, limit)


def _splice(text: str) -> tuple[str, _Origin]:
    pieces, at = [], 0
    for splice in _SPLICE.finditer(text):
        pieces.append((at, splice.start()))
        at = splice.end()
    pieces.append((at, len(text)))
    return "".join(text[start:end] for start, end in pieces), _Origin(pieces)


def _directive(index: int, span: Sequence[Token]) -> Directive:
    named = len(span) > 1 and span[1].kind is Kind.NAME
    name, rest = (span[1].text, span[2:]) if named else ("", span[1:])
    return Directive(name, tuple(rest), span[0].line, index, span[0].start, span[-1].end)


_OPENS = frozenset({"if", "ifdef", "ifndef"})
_CONTINUES = frozenset({"elif", "elifdef", "elifndef", "else"})


def _conditionals(directives: Sequence[Directive]) -> tuple[Conditional, ...]:
    done: list[Conditional] = []
    # Each open conditional: its finished branches, the opening of the current one, and the directives in that so far.
    open_: list[tuple[list[Branch], Directive, list[Directive]]] = []
    for directive in directives:
        if directive.name in _OPENS:
            open_.append(([], directive, []))
        elif directive.name in _CONTINUES or directive.name == "endif":
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
