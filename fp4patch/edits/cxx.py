"""C++ and CUDA as tokens with offsets, so that an edit's anchor ignores white space, comments and line continuations.

A lexer, not a parser: no macro is expanded and no condition evaluated. The phases follow [lex.phases]: continuations
are spliced first (and given back inside raw strings), then comments and tokens are found. Text that is not C++, such as
prose behind ``#error``, never raises; only what swallows the rest of the file does: LexError.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import NamedTuple

from fp4patch.edits.condition import holds
from fp4patch.edits.lex_error import LexError

BOM = "\ufeff"

COMMENT = re.compile(r"//(?:\\[ \t]*\r?\n|[^\n])*|/\*.*?\*/", re.DOTALL)
"""A comment, in text between two tokens."""
_SPLICE = re.compile(r"\\[ \t]*\r?\n")  # compilers accept blanks behind the backslash, and so does this
_ENCODING = r"(?:u8|[uUL])?"
_LEXEME = re.compile(
    rf"""
    [^\S\n]*+
    (?:
      (?P<name>[^\W\d][\w$]*+(?!["'])|\$[\w$]*)
    | (?P<plain>[][(){{}}<>,;:=&*+!|?~^%-])
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*|(?s:/\*.*?(?:\*/|\Z)))
    | (?P<raw>{_ENCODING}R"(?P<delimiter>[^\s()\\"]{{0,16}})\()
    | (?P<string>{_ENCODING}"(?:[^"\\\n]|\\[^\n])*")
    | (?P<char>{_ENCODING}'(?:[^'\\\n]|\\[^\n])+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
    | (?P<prefix>[^\W\d][\w$]*)
    | (?P<mark>.)
    )
    """,
    re.VERBOSE,
)


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
        first = self.branches[0]
        names = [token.text for token in first.condition]
        return (
            len(self.branches) == 1
            and first.opening.name == "ifndef"
            and len(names) == 1
            and [d.name for d in first.body[:1]] == ["define"]
            and first.defines[:1] == tuple(names)
        )


class Cut(NamedTuple):
    """A part of a text and what is put in its place. It begins and ends between tokens."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """A text with its tokens; white space, comments and continuations are located between them."""

    text: str
    tokens: tuple[Token, ...]

    @cached_property
    def directives(self) -> tuple[Directive, ...]:
        """The preprocessor directives, in their order."""
        inside = (token for token in self.tokens if token.directive >= 0)
        spans = groupby(inside, key=lambda token: token.directive)
        return tuple(_directive(index, tuple(span)) for index, span in spans)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The tokens' offsets."""
        return tuple([token[2] for token in self.tokens])

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens' texts."""
        return tuple([token[1] for token in self.tokens])

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
        return next((self.tokens[at] for at in range(index - 1, -1, -1) if self.tokens[at].directive < 0), None)

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset."""
        return bisect_left(self._newlines, offset) + 1

    @cached_property
    def _newlines(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.text)]

    def find(self, pattern: Sequence[str]) -> list[int]:
        """Return the indices of the live tokens at which the token sequence ``pattern`` begins."""
        found = _occurrences(self.words, tuple(pattern)) if pattern else ()
        return [at for at in found if self.is_live(self.tokens[at].start)]

    def nearest(self, pattern: Sequence[str]) -> tuple[int | None, str]:
        """Return line and difference of the longest prefix of ``pattern``; None if not even its first token occurs."""
        best, place = 0, 0
        for at in _occurrences(self.words, tuple(pattern[:1])) if pattern else ():
            matched = next((n for n, word in enumerate(pattern) if self.words[at + n : at + n + 1] != (word,)), 0)
            if matched > best:
                best, place = matched, at
        if not best:
            return None, ""
        differing = self.tokens[place + best : place + best + 1]
        found = differing[0].text if differing else ""
        return (*differing, self.tokens[-1])[0].line, f"`{found}` where `{pattern[best]}` was expected"


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """Return the token texts of a pattern such as ``struct A<B, 2> {``. LexError as for :func:`lex`."""
    return read(text).words


def block(source: Source, after: int) -> range | None:
    """Return the tokens between the first braces from a token on; None if a declaration ends before them."""
    depth, first = 0, 0
    for at in range(after, len(source.tokens)):
        token = source.tokens[at]
        if token.directive >= 0:
            continue
        if token.text == "{":
            depth += 1
            first = first or at
        elif token.text == "}":
            depth -= 1
            if depth == 0:
                return range(first, at)
        elif token.text == ";" and not depth:
            break  # a declaration without a body
    return None


_KINDS = {kind.name.lower(): kind for kind in Kind} | {"raw": Kind.STRING, "prefix": Kind.NAME, "plain": Kind.MARK}


def read(text: str) -> Source:
    """Return the text as tokens. LexError: a ``/*`` or a raw string that never ends."""
    logical, pieces = _splice(text)
    originals = [start for start, _ in pieces]
    logicals = [0, *accumulate(end - start for start, end in pieces)]
    logicals[-1] = len(text) + 1  # no token extends beyond the last part
    piece, border, shift = 0, logicals[1], originals[0]
    tokens: list[Token] = []
    make, kinds = tuple.__new__, _KINDS
    fresh, directive, directives = True, -1, 0  # no token on this logical line yet; the directive that the line is
    line = 1  # newlines passed in the spliced text, and continuations before them
    at = 1 if logical.startswith(BOM) else 0
    step = _LEXEME.scanner(logical, at).match  # type: ignore[attr-defined]  # typeshed does not have it
    while found := step():
        form = found.lastgroup
        if form == "newline":
            fresh, directive = True, -1
            line += 1
            continue
        at, stop = found.span(form)
        while at >= border:
            piece += 1
            border, shift = logicals[piece + 1], originals[piece] - logicals[piece]
            line += 1
        start, began, body = at + shift, line, found[form]
        while stop > border:  # a continuation after the last character is not part of it
            piece += 1
            border, shift = logicals[piece + 1], originals[piece] - logicals[piece]
            line += 1
        end = stop + shift
        if form == "comment":
            line += body.count("\n")
            if body.startswith("/*") and not (len(body) >= 4 and body.endswith("*/")):
                raise LexError("a /* comment that never ends", began)
            continue
        if form == "raw":  # continuations inside count as they are: look in the text itself
            close = text.find(f'){found["delimiter"]}"', end)
            if close < 0:
                raise LexError("a raw string that never ends", began)
            end = close + len(found["delimiter"]) + 2
            body = text[start:end]
            piece = bisect_left(originals, end) - 1
            border, shift = logicals[piece + 1], originals[piece] - logicals[piece]
            line = began + text.count("\n", start, end)
            step = _LEXEME.scanner(logical, end - shift).match  # type: ignore[attr-defined]
        if fresh:
            if body == "#":
                directive = directives
                directives += 1
            fresh = False
        tokens.append(make(Token, (kinds[form], body, start, end, began, directive)))
    return Source(text, tuple(tokens))


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
