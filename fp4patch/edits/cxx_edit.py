"""Common steps of the C++ edits: retire if the source shows it, and replace parts of it."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from fp4patch.core.results import NothingToDo
from fp4patch.edits.cxx import BOM, Cut, Source, lex, read, words
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
    """Return the source with parts replaced, read again.

    Refusal, at ``line``: it has other tokens than the old ones and those of the new parts as they read alone, each in
    code or in its directive, or brackets or conditionals pair otherwise than before.
    """
    text, words, marks = source.text, list(source.words), list(source.marks)
    added, removed, headless = list[str](), list[str](), False
    try:
        for cut in sorted(cuts, key=lambda cut: cut.start)[::-1]:
            new, span = read(cut.text), slice(*(bisect_left(source.starts, edge) for edge in (cut.start, cut.end)))
            inside = _is_in_directive(source, span.start, cut.start)
            goes_on = [inside and (cut.start < cut.end or token.line == 1) for token in new.tokens]
            following = source.tokens[span.stop : span.stop + 1]
            headless |= any(
                t.directive >= 0 and cut.start <= source.directives[t.directive].start < t.start for t in following
            )
            added, removed = [*new.words, *added], [*words[span], *removed]
            text = text[: cut.start] + cut.text + text[cut.end :]
            words[span], marks[span] = new.words, map(max, new.marks, goes_on)
        result = lex(text)
    except LexError as error:
        raise Refusal("a change that can be read", error.message, line) from error
    unlike = words != list(result.words) or marks != result.marks or _unpaired(added) != _unpaired(removed)
    if headless or unlike or (source.pairs and not result.pairs):
        raise Refusal(*OTHERWISE, line)
    return result


def _is_in_directive(source: Source, index: int, offset: int) -> bool:
    """Tell whether the line of a directive goes on at an offset, before the token ``index``."""
    if not index or source.tokens[index - 1].directive < 0:
        return False
    return source.marks[index : index + 1] == [1] or "\n" not in source.text[source.tokens[index - 1].end : offset]


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
