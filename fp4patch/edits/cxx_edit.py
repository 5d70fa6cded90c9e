"""Common steps of the C++ edits: retire if the source shows it, and replace parts of it."""

from bisect import bisect_left
from collections.abc import Sequence

from fp4patch.core.outcome import NothingToDo
from fp4patch.edits.cxx import Cut, Source, lex, read, words
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Retired
from fp4patch.edits.refusal import Refusal


def retirement(source: Source, retired: Sequence[Retired]) -> NothingToDo | None:
    """Return the outcome of an edit that a sign in the source retires; None without one.

    LexError: conditionals do not pair, which is checked before anything else.
    """
    _ = source.conditionals
    for sign in retired:
        if source.find(words(sign.tokens)):
            return NothingToDo(sign.state, sign.because, sign.since)
    return None


def edited(source: Source, cuts: Sequence[Cut], line: int) -> Source:
    """Return the source with parts replaced, read again.

    Refusal, at ``line``, unless its tokens are the old ones with exactly those of the cuts gone and added, each old one
    in code or in a directive as before, and brackets and conditionals pair as they did.
    """
    pieces: list[str] = []
    expected: list[tuple[str, bool | None]] = []  # each token's text, and whether a directive has it; None: either
    old = [(token.text, token.directive >= 0) for token in source.tokens]
    at = done = 0
    try:
        for cut in sorted(cuts, key=lambda cut: cut.start):
            first, last = (bisect_left(source.starts, edge) for edge in (cut.start, cut.end))
            pieces += [source.text[at : cut.start], cut.text]
            inside = first < last and old[first][1]
            new = [(t.text, inside or t.directive >= 0 if first < last else None) for t in read(cut.text).tokens]
            expected += [*old[done:first], *new]
            at, done = cut.end, last
        expected += old[done:]
        result = lex("".join([*pieces, source.text[at:]]))
    except LexError as error:
        raise Refusal("a change that can be read", error.message, line) from error
    same = len(expected) == len(result.tokens) and all(
        token.text == word and inside in (None, token.directive >= 0)
        for token, (word, inside) in zip(result.tokens, expected, strict=True)
    )
    if not same or (source.pairs and not result.pairs) or _open(source) != _open(result):
        raise Refusal("a result that reads as intended", "one that reads otherwise", line)
    return result


def _open(source: Source) -> list[int]:
    """Return for each kind of bracket how many more open than close."""
    return [source.words.count(opening) - source.words.count(closing) for opening, closing in ("()", "[]", "{}")]


def newline_of(text: str) -> str:
    """Return the newline that most of the text's lines end with."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"
