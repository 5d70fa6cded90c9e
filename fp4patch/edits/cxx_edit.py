"""Common steps of the C++ edits: read the text, retire if the source shows it, replace parts of it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from fp4patch.core.outcome import Drift, NothingToDo, Outcome
from fp4patch.edits.cxx import Comment, Cut, Source, Token, lex, read, remember, words
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Retired
from fp4patch.edits.refusal import Refusal


def edit_cxx(text: str, retired: Sequence[Retired], work: Callable[[Source], Outcome]) -> Outcome:
    """Read the text, look for the signs that retire the edit, then do the work; refusals become values."""
    try:
        source = lex(text)
        _ = source.conditionals  # they must pair before anything else is checked
        for sign in retired:
            if source.find(words(sign.tokens)):
                return NothingToDo(sign.state, sign.because, sign.since)
        return work(source)
    except LexError as error:
        whole = "is this file whole? fetch it again"
        return Drift("C++ that can be read to its end", error.message, error.line, help=whole)
    except Refusal as refusal:
        return refusal.drift


def edited(source: Source, cuts: Sequence[Cut], line: int) -> Source:
    """Return the source with parts replaced: the old tokens, but for those of the cuts.

    The fold reads its last text as a whole, once, and compares the tokens. Refusal, at ``line``: brackets or
    conditionals no longer pair.
    """
    pieces: list[str] = []
    tokens: list[Token] = []
    comments: list[Comment] = []
    at = done = remarked = 0  # up to where text, tokens and comments are taken over
    moved = lines = directives = 0  # by how much what follows is shifted
    for cut in sorted(cuts, key=lambda cut: cut.start):
        first, last = (bisect_left(source.starts, edge) for edge in (cut.start, cut.end))
        before, behind = (bisect_left(source.comments, edge, key=lambda c: c.start) for edge in (cut.start, cut.end))
        opened, closed = (bisect_left(source.directives, edge, key=lambda d: d.start) for edge in (cut.start, cut.end))
        new, own, start = _new(cut.text, line), _directive_at(source, cut, first, last), cut.start + moved
        tokens += _shifted(source.tokens[done:first], moved, lines, directives)
        comments += _moved(source.comments[remarked:before], moved, lines)
        above = source.line(cut.start) - 1 + lines
        added = list(_shifted(new.tokens, start, above, opened + directives))
        tokens += added if own < 0 else (token._replace(directive=own + directives) for token in added)
        comments += _moved(new.comments, start, above)
        pieces += [source.text[at : cut.start], cut.text]
        at, done, remarked = cut.end, last, behind
        moved += len(cut.text) - (cut.end - cut.start)
        lines += cut.text.count("\n") - source.text.count("\n", cut.start, cut.end)
        directives += 0 if own >= 0 else len(new.directives) - (closed - opened)
    tokens += _shifted(source.tokens[done:], moved, lines, directives)
    comments += _moved(source.comments[remarked:], moved, lines)
    result = Source("".join([*pieces, source.text[at:]]), tuple(tokens), tuple(comments))
    if (source.pairs and not result.pairs) or _open(source) != _open(result):
        raise Refusal("a result that reads as intended", "one that reads otherwise", line)
    return remember(result)


def _new(text: str, line: int) -> Source:
    try:
        return read(text)
    except LexError as error:
        raise Refusal("a change that can be read", error.message, line) from error


def _shifted(tokens: Sequence[Token], moved: int, lines: int, directives: int) -> Sequence[Token]:
    if not (moved or lines or directives):
        return tokens
    make = tuple.__new__
    return [
        make(Token, (kind, text, start + moved, end + moved, line + lines, at + directives if at >= 0 else -1))
        for kind, text, start, end, line, at in tokens
    ]


def _moved(comments: Sequence[Comment], moved: int, lines: int) -> Iterator[Comment]:
    return (Comment(c.text, c.start + moved, c.end + moved, c.line + lines) for c in comments)


def _directive_at(source: Source, cut: Cut, first: int, last: int) -> int:
    """Return the directive that new tokens in the place of these belong to; -1 in code, or on a line of their own."""
    tokens = source.tokens
    if first < last:
        return tokens[first].directive
    before = tokens[first - 1] if first else None
    if before is None or before.directive < 0:
        return -1
    goes_on = first < len(tokens) and tokens[first].directive == before.directive
    joins = before.end == cut.start and not cut.text.lstrip(" \t\r").startswith("\n")
    return before.directive if goes_on or joins else -1


def _open(source: Source) -> list[int]:
    """Return for each kind of bracket how many more open than close."""
    return [source.words.count(opening) - source.words.count(closing) for opening, closing in ("()", "[]", "{}")]


def newline_of(text: str) -> str:
    """Return the newline that most of the text's lines end with."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"
