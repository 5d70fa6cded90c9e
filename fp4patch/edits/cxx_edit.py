"""Common steps of the C++ edits: retire if the source shows it, and replace parts of it."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from fp4patch.core.results import NothingToDo
from fp4patch.edits.cxx import BOM, Cut, Source, keep, read, words
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Retired
from fp4patch.edits.refusal import OTHERWISE, Refusal


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
    """Return the source with parts replaced. Refusal, at ``line``: it lacks old tokens, or those of the cuts, each in
    code or in its directive, or brackets or conditionals pair otherwise than before."""
    try:
        parts = [(cut, read(cut.text)) for cut in sorted(cuts, key=lambda cut: cut.start)]
        result, meant = _spliced(source, parts)
        as_meant = _reads_as_meant(result, [cut for cut, _ in parts])
    except LexError as error:
        raise Refusal("a change that can be read", error.message, line) from error
    added = [word for _, new in parts for word in new.words]
    removed = [word for cut, _ in parts for word in source.words[_span(source, cut.start, cut.end)]]
    lines = {(-1, -1), *zip(meant, result.directive_of, strict=True)}  # old and new ones, one to one
    as_meant = as_meant and len(lines) == len({old for old, _ in lines}) == len({new for _, new in lines})
    if not as_meant or _unpaired(added) != _unpaired(removed) or (source.pairs and not result.pairs):
        raise Refusal(*OTHERWISE, line)
    return keep(result)


def _span(source: Source, start: int, end: int) -> slice:
    return slice(*(bisect_left(source.starts, edge) for edge in (start, end)))


def _reads_as_meant(result: Source, cuts: Iterable[Cut]) -> bool:
    """Tell whether the text around each cut has the tokens that it is to have. LexError: one of them never ends.

    It is read between ends of lines beside which there is code: only a comment and a raw string go on there, and both
    end before, so that what is beyond reads as in the source.
    """
    text, size, shift = result.text, len(result.words), 0

    def is_edge(code: int, ends_line: int) -> bool:
        in_code = result.directive_of[code] < 0 and result.words[code] != "#"
        return in_code and text.startswith(("\n", "\r\n"), result.ends[ends_line])

    for cut in cuts:
        first = max(0, bisect_left(result.starts, cut.start + shift) - 1)
        shift += len(cut.text) - (cut.end - cut.start)
        last = bisect_left(result.starts, cut.end + shift)
        while first and not is_edge(first, first - 1):
            first -= 1
        while last < size and not is_edge(last, last):
            last += 1
        begin = result.starts[first] if first else 0
        found = read(text[begin : result.ends[last]] if last < size else text[begin:])
        around = slice(first, last + 1)
        starts, ends = (_moved(offsets[around], -begin) for offsets in (result.starts, result.ends))
        if found != Source(found.text, result.words[around], starts, ends):
            return False
    return True


def _spliced(source: Source, parts: Iterable[tuple[Cut, Source]]) -> tuple[Source, list[object]]:
    """Return what a source with parts replaced is to be, and which line each of its tokens is to be in: in that of the
    preprocessor in which it was, or is in the new part as it reads alone, or in code, which is -1."""
    text, pieces, lines = source.text, list[str](), list[object]()
    words, starts, ends = list[str](), list[int](), list[int]()
    at = shift = 0  # what of the old text is done, and by how much what follows moves
    for number, (cut, new) in enumerate((*parts, (Cut(len(text), len(text), ""), read("")))):
        kept = _span(source, at, cut.start)
        pieces += text[at : cut.start], cut.text
        words += source.words[kept] + new.words
        starts += _moved(source.starts[kept], shift) + _moved(new.starts, cut.start + shift)
        ends += _moved(source.ends[kept], shift) + _moved(new.ends, cut.start + shift)
        inside = _line_around(source, kept.stop, cut.start)
        first = len(new.words) if cut.start < cut.end else bisect_left(new.starts, f"{cut.text}\n".index("\n"))
        lines += source.directive_of[kept]
        lines += [(number, own) if own >= 0 else inside if n < first else -1 for n, own in enumerate(new.directive_of)]
        shift += len(cut.text) - (cut.end - cut.start)
        at = cut.end
    return Source("".join(pieces), tuple(words), tuple(starts), tuple(ends)), lines


def _moved(offsets: tuple[int, ...], shift: int) -> tuple[int, ...]:
    return tuple([offset + shift for offset in offsets]) if shift else offsets


def _line_around(source: Source, index: int, offset: int) -> int:
    """Return the preprocessor's line that goes on at an offset, before the token ``index``; -1 in code."""
    before = source.directive_of[index - 1] if index else -1
    if before < 0 or source.directive_of[index : index + 1] == [before]:
        return before
    return before if "\n" not in source.text[source.ends[index - 1] : offset] else -1


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
