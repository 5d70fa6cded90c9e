"""Replace parts of a C++ text: one splice, one reading of the result, and one proof that it reads as it was meant."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from fp4patch.core.lex_error import LexError, NotAsMeant
from fp4patch.core.splice import pieces
from fp4patch.cxx.text import BOM
from fp4patch.cxx.tokens import Source, read


class Cut(NamedTuple):
    """A part of a text and what is put in its place. It begins and ends between tokens."""

    start: int
    end: int
    text: str


def spliced(source: Source, cuts: Iterable[Cut]) -> Source:
    """Return the source with parts replaced. Cuts at one offset are put in the order in which they are given.

    Overlap: two cuts are about the same part. NotAsMeant: the result lacks old tokens, or those of the cuts, each in
    code or in its directive, or brackets or conditionals pair otherwise than before.
    """
    ordered = sorted(cuts, key=lambda cut: (cut.start, cut.end))
    text = "".join(pieces(source.text, ordered))
    try:
        result = read(text)
        added = [_new(cut.text) for cut in ordered]
    except LexError as error:
        raise NotAsMeant(error.message) from error
    removed = [word for cut in ordered if cut.start < cut.end for word in source.part(cut.start, cut.end).words]
    if _unpaired(removed) != _unpaired(word for new in added for word in new.words):
        raise NotAsMeant("brackets that pair otherwise")
    for region in _regions(source, result, ordered):
        _check(source, result, region, ordered, added)
    if source.pairs and not result.pairs:
        raise NotAsMeant("conditionals that do not pair")
    return result


_new = lru_cache(maxsize=1024)(read)
"""Reads what is put in; guards and encoders go into many places."""


class _Region(NamedTuple):
    """Whole lines around cuts, before and after the splice: what is beyond them reads as it did."""

    cuts: range
    """The cuts in it."""
    start: int
    end: int
    new_start: int
    new_end: int


def _regions(source: Source, result: Source, cuts: Sequence[Cut]) -> Iterator[_Region]:
    """Yield the lines around the cuts.

    A region ends at a newline that ends a line of both texts. As no comment and no literal goes on there, and the same
    text follows up to the next region, both read alike from there on.
    """
    number = shift = 0
    while number < len(cuts):
        first = number
        start = min(cuts[first].start, _line_start(source, cuts[first].start))
        new_start = start + shift
        while True:
            cut = cuts[number]
            shift += len(cut.text) - (cut.end - cut.start)
            number += 1
            following = cuts[number].start if number < len(cuts) else len(source.text)
            end = _common_line_end(source, result, cut.end, shift)
            if end < following or number == len(cuts):
                break
        yield _Region(range(first, number), start, end, new_start, end + shift)


def _line_start(source: Source, offset: int) -> int:
    spliced = source.spliced
    return spliced.original(source.skeleton.line_start(spliced.text, spliced.logical(offset)))


def _line_end(source: Source, offset: int) -> int:
    spliced = source.spliced
    end = spliced.original(source.skeleton.line_end(spliced.text, spliced.logical(offset)), behind=True)
    return max(offset, end)


def _common_line_end(source: Source, result: Source, offset: int, shift: int) -> int:
    """Return the first offset from one on at which a line ends in the source, and in the result, where it is moved."""
    while True:
        end = _line_end(source, offset)
        new_end = _line_end(result, offset + shift)
        if end + shift == new_end:
            return end
        offset = max(end, new_end - shift)


_IN_CODE = -1
"""Where a line of the preprocessor has its index."""


def _check(source: Source, result: Source, region: _Region, cuts: Sequence[Cut], added: Sequence[Source]) -> None:
    """NotAsMeant unless a region has the old tokens and those of its cuts, each in the line that is meant.

    An old token is meant to be in that line of the preprocessor in which it was, or in code; a new one in that which
    the cut has, in that which goes on at the cut, or in code.
    """
    old = source.part(region.start, region.end)
    words: list[str] = []
    lines: list[object] = []
    at = 0
    for number in (*region.cuts, None):
        kept = slice(at, len(old.words) if number is None else bisect_left(old.starts, cuts[number].start))
        words += old.words[kept]
        lines += old.directives[kept]
        if number is None:
            break
        cut, new = cuts[number], added[number]
        words += new.words
        line_around = source.directive_around(cut.start)
        # What is inserted at the end of a line may go on in others.
        line_goes_on_to = _line_end(new, 0) if cut.start == cut.end else len(cut.text)
        for start, directive in zip(new.starts, new.directive_of, strict=True):
            if directive >= 0:
                lines.append((number, directive))
            else:
                lines.append(line_around if start < line_goes_on_to else _IN_CODE)
        at = bisect_left(old.starts, cut.end)
    found = result.part(region.new_start, region.new_end)
    if tuple(words) != found.words:
        raise NotAsMeant("tokens that run into each other")
    pairs = {(_IN_CODE, _IN_CODE), *zip(lines, found.directives, strict=True)}
    meant, are = ({pair[side] for pair in pairs} for side in (0, 1))
    if not len(pairs) == len(meant) == len(are):
        raise NotAsMeant("tokens in another line of the preprocessor, or in none")


def _unpaired(words: Iterable[str]) -> list[str]:
    """Return the brackets without a partner among the words, in their order."""
    left: list[str] = []
    for word in words:
        if left and left[-1] + word in ("()", "[]", "{}"):
            left.pop()
        elif word in ("(", ")", "[", "]", "{", "}"):
            left.append(word)
    return left


def newline_of(text: str) -> str:
    """Return the newline that most of the text's lines end with."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"


def set_off(text: str, at: int, added: str) -> str:
    """Return what is to be inserted with the text's newlines, without one at its end, and one blank line before it."""
    newline = newline_of(text)
    before = text[:at].removeprefix(BOM).split("\n")
    gap = ""
    if any(before):
        gap = 2 * newline if before[-1].strip() else newline if before[-2].strip() else ""
    return gap + added.replace("\r\n", "\n").strip("\n").replace("\n", newline)
