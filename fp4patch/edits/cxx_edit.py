"""Common steps of the C++ edits: retire if the source shows it, and replace parts of it."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from fp4patch.core.results import NothingToDo
from fp4patch.edits.cxx import BOM, Cut, Source, Token, keep, read, words
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
        result = _spliced(source, parts)
        as_meant = _reads_as_meant(result, [cut for cut, _ in parts])
    except LexError as error:
        raise Refusal("a change that can be read", error.message, line) from error
    added = [word for _, new in parts for word in new.words]
    spans = [slice(*(bisect_left(source.starts, edge) for edge in (cut.start, cut.end))) for cut, _ in parts]
    removed = [word for span in spans for word in source.words[span]]
    headless = any(
        token.directive >= 0 and cut.start <= source.directives[token.directive].start < token.start
        for (cut, _), span in zip(parts, spans, strict=True)
        for token in source.tokens[span.stop : span.stop + 1]
    )
    if not as_meant or headless or _unpaired(added) != _unpaired(removed) or (source.pairs and not result.pairs):
        raise Refusal(*OTHERWISE, line)
    return keep(result)


def _reads_as_meant(result: Source, cuts: Iterable[Cut]) -> bool:
    """Tell whether the text around each cut has the tokens that it is to have. LexError: one of them never ends.

    It is read between ends of lines beside which there is code: only a comment and a raw string go on there, and both
    end before, so that what is beyond reads as in the source.
    """
    text, tokens, shift = result.text, result.tokens, 0

    def is_edge(code: int, ends_line: int) -> bool:
        token = tokens[code]
        return token.directive < 0 and token.text != "#" and text.startswith(("\n", "\r\n"), tokens[ends_line].end)

    for cut in cuts:
        first = max(0, bisect_left(result.starts, cut.start + shift) - 1)
        shift += len(cut.text) - (cut.end - cut.start)
        last = bisect_left(result.starts, cut.end + shift)
        while first and not is_edge(first, first - 1):
            first -= 1
        while last < len(tokens) and not is_edge(last, last):
            last += 1
        meant = tokens[first : last + 1]
        begin, lines = (meant[0].start, meant[0].line - 1) if first else (0, 0)
        directives = next((token.directive for token in meant if token.directive >= 0), 0)
        found = read(text[begin : tokens[last].end] if last < len(tokens) else text[begin:]).tokens
        if [*_moved(found, begin, lines, directives)] != [*meant]:
            return False
    return True


def _spliced(source: Source, parts: Iterable[tuple[Cut, Source]]) -> Source:
    """Return what a source with parts replaced is to be: its tokens, moved, and those of the new parts as they read
    alone."""
    text, starts = source.text, [directive.start for directive in source.directives]
    pieces, tokens = list[str](), list[Token]()
    at, line = 0, 1  # what of the old text is done, and its line
    shift = lines = directives = 0  # by how much what follows moves
    for cut, new in (*parts, (Cut(len(text), len(text), ""), read(""))):
        end = cut.start
        first, last = (bisect_left(source.starts, edge) for edge in (at, end))
        pieces.append(text[at:end])
        tokens += _moved(source.tokens[first:last], shift, lines, directives)
        line += text.count("\n", at, end)
        opened = bisect_left(starts, end)
        inside, same = _directive_around(source, last, end), cut.start < cut.end
        for token in new.tokens:
            own = token.directive + opened if token.directive >= 0 else inside if same or token.line == 1 else -1
            place = (token.start + end + shift, token.end + end + shift, token.line + line + lines - 1)
            tokens.append(Token(token.kind, token.text, *place, own if own < 0 else own + directives))
        pieces.append(cut.text)
        directives += len(new.directives) - (bisect_left(starts, cut.end) - opened)
        shift += len(cut.text) - (cut.end - end)
        lines += cut.text.count("\n") - text.count("\n", end, cut.end)
        line += text.count("\n", end, cut.end)
        at = cut.end
    return Source("".join(pieces), tuple(tokens))


def _moved(tokens: Sequence[Token], shift: int, lines: int, directives: int) -> Sequence[Token]:
    """Return tokens as they are this much further on."""
    if not (shift or lines or directives):
        return tokens
    make = tuple.__new__
    return [
        make(Token, (kind, word, start + shift, stop + shift, row + lines, d if d < 0 else d + directives))
        for kind, word, start, stop, row, d in tokens
    ]


def _directive_around(source: Source, index: int, offset: int) -> int:
    """Return the directive whose line goes on at an offset, before the token ``index``; -1 in code."""
    before, after = source.tokens[index - 1 : index] if index else (), source.tokens[index : index + 1]
    if not before or before[0].directive < 0:
        return -1
    goes_on = after and after[0].directive == before[0].directive
    return before[0].directive if goes_on or "\n" not in source.text[before[0].end : offset] else -1


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
