"""C++ and CUDA as tokens with offsets, so that an edit's anchor ignores white space, comments and line continuations.

A lexer, not a parser: no macro is expanded and no condition evaluated. The phases follow [lex.phases]: continuations
are spliced first (and given back inside raw strings), then comments and tokens are found. Text that is not C++, such as
prose behind ``#error``, never raises; only what swallows the rest of the file does: LexError.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import NamedTuple

from fp4patch.edits.condition import holds
from fp4patch.edits.lex_error import LexError

BOM = "\ufeff"

COMMENT = re.compile(r"//(?:\\[ \t]*\r?\n|[^\n])*|/\*.*?\*/", re.DOTALL)
"""A comment, in text between two tokens."""
_SPLICE = re.compile(r"\\[ \t]*\r?\n")  # compilers accept blanks behind the backslash, and so does this
_SPLICED_COMMENT = r"//[^\n]*+|/\*(?s:.*?)\*/"
_ENCODING = r"(?:u8|[uUL])?"
_RAW = rf'{_ENCODING}R"(?P<delimiter>[^\s()\\"]{{0,16}})\('
_LEXEME = re.compile(
    rf"""
    (?:\s++|{_SPLICED_COMMENT})*+
    (
      [^\W\d][\w$]*+(?!["']) | \$[\w$]*+
    | [][(){{}}<>,;:=&*+!|?~^%-]
    | {_RAW}(?s:.*?)\)(?P=delimiter)"
    | (?:/\*|{_ENCODING}R"[^\s()\\"]{{0,16}}\()(?s:.*)
    | {_ENCODING}"(?:[^"\\\n]|\\[^\n])*"
    | {_ENCODING}'(?:[^'\\\n]|\\[^\n])+'
    | \.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*
    | [^\W\d][\w$]*
    | .
    | \Z
    )
    """,
    re.VERBOSE,
)
"""What is between two tokens, and the next one. A comment or a raw string that never ends is one, to the end."""
_OPENING = re.compile(rf"/\*|{_RAW}")


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
    span: range
    """Indices of its tokens, from its ``#`` on."""
    index: int
    name: str
    """``if``; empty for a lone ``#``."""
    line: int
    start: int
    """Offset of its ``#``."""
    end: int
    """Offset behind its last token."""

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens behind its name."""
        return tuple(map(self.source.token, self.span[2 if self.name else 1 :]))


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


class Cut(NamedTuple):
    """A part of a text and what is put in its place. It begins and ends between tokens."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """A text with its tokens; white space, comments and continuations are located between them."""

    text: str
    words: tuple[str, ...]
    """The tokens' texts."""
    starts: tuple[int, ...]
    """The tokens' offsets."""
    ends: tuple[int, ...]
    """The offsets behind them."""

    def token(self, at: int) -> Token:
        """Return one token."""
        word, start = self.words[at], self.starts[at]
        return Token(_kind(word), word, start, self.ends[at], self.line(start), self.directive_of[at])

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens. Where few are looked at, :meth:`token` takes less time."""
        return tuple(map(self.token, range(len(self.words))))

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """The preprocessor directives, in their order."""
        found: list[Directive] = []
        end = 0
        for at in _occurrences(self.words, ("#",)):
            if at >= end and self._begins_line(at):
                end = at + 1
                while end < len(self.words) and not self._begins_line(end):
                    newline = self.text.find("\n", self.starts[end])
                    end = bisect_left(self.starts, newline, end + 1) if newline >= 0 else len(self.words)
                name = next((word for word in self.words[at + 1 : end][:1] if _kind(word) is Kind.NAME), "")
                place = (self.line(self.starts[at]), self.starts[at], self.ends[end - 1])
                found.append(Directive(self, range(at, end), len(found), name, *place))
        return tuple(found)

    def _begins_line(self, at: int) -> bool:
        gap = self.text[self.ends[at - 1] : self.starts[at]] if at else "\n"
        return "\n" in gap and "\n" in re.sub(_SPLICED_COMMENT, "", _SPLICE.sub("", gap))

    @cached_property
    def directive_of(self) -> list[int]:
        """The index of the directive that each token belongs to; -1 in code."""
        indices = [-1] * len(self.words)
        for directive in self.directives:
            indices[directive.span.start : directive.span.stop] = [directive.index] * len(directive.span)
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
        found = _occurrences(self.words, tuple(pattern)) if pattern else ()
        return [at for at in found if self.is_live(self.starts[at])]

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


def block(source: Source, after: int) -> range | None:
    """Return the tokens between the first braces from a token on; None if a declaration ends before them."""
    depth, first = 0, 0
    for at in range(after, len(source.words)):
        word = source.words[at] if source.directive_of[at] < 0 else ""
        if word == "{":
            depth += 1
            first = first or at
        elif word == "}":
            depth -= 1
            if depth == 0:
                return range(first, at)
        elif word == ";" and not depth:
            break  # a declaration without a body
    return None


def _kind(word: str) -> Kind:
    first, last = word[0], word[-1]
    if len(word) > 1 and last in ('"', "'"):
        return Kind.STRING if last == '"' else Kind.CHAR
    if first in "0123456789" or (first == "." and len(word) > 1):
        return Kind.NUMBER
    return Kind.NAME if first in "_$" or (first.isalnum() and not first.isdecimal()) else Kind.MARK


def read(text: str) -> Source:
    """Return the text as tokens. LexError: a ``/*`` or a raw string without an end, in the text as it is."""
    logical, pieces = _splice(text)
    spans = [found.span(1) for found in _LEXEME.finditer(logical, len(BOM) * logical.startswith(BOM))]
    while spans and spans[-1][0] == len(logical):  # the end
        spans.pop()
    words = [logical[start:end] for start, end in spans]
    starts = _original([start for start, _ in spans], pieces, bisect_left)
    ends = _original([end for _, end in spans], pieces, bisect_right)  # a continuation behind it is not part of a token
    for at in range(len(words)) if len(pieces) > 1 and 'R"' in logical else range(len(words))[-1:]:
        if opening := _OPENING.match(words[at]):
            words[at] = text[starts[at] : ends[at]]  # continuations inside count as they are
            if opening["delimiter"] is None or not words[at].endswith(f'){opening["delimiter"]}"'):
                what = (
                    "/* comment that never ends"
                    if opening["delimiter"] is None
                    else "raw string that has no end as it is"
                )
                raise LexError(f"a {what}", text.count("\n", 0, starts[at]) + 1)
    return Source(text, tuple(words), tuple(starts), tuple(ends))


def _original(offsets: Sequence[int], pieces: Sequence[tuple[int, int]], place: Callable[..., int]) -> list[int]:
    """Return where offsets in the spliced text are in the text; ``place`` tells on which side of a border."""
    moved: list[int] = []
    border = at = 0
    for start, end in pieces:
        shift = start - border
        border += end - start
        stop = place(offsets, border, at)
        moved += [offset + shift for offset in offsets[at:stop]] if shift else offsets[at:stop]
        at = stop
    return moved


_KEPT: dict[str, Source] = {}


def lex(text: str) -> Source:
    """As :func:`read`. The last texts are kept, since the edits of a file read it one after the other."""
    kept = _KEPT.pop(text, None)
    return keep(kept or read(text))


def keep(source: Source) -> Source:
    """Let :func:`lex` return this for its text from now on."""
    _KEPT[source.text] = source
    if len(_KEPT) > 8:
        del _KEPT[next(iter(_KEPT))]
    return source


def _splice(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without its continuations, and the parts of the text that it consists of."""
    pieces, at = [], 0
    for splice in _SPLICE.finditer(text):
        pieces.append((at, splice.start()))
        at = splice.end()
    pieces.append((at, len(text)))
    return "".join(text[start:end] for start, end in pieces), pieces


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
