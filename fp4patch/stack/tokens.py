"""A hunk of C++ by its tokens: for a place that another layout, or another position in the file, hides from its lines.

All tokens of the hunk, context included, must occur once in the text. What is put in is read again: it has the tokens
of the text, with those of the hunk in the place of the old ones.
"""

from itertools import groupby

from fp4patch.core.lex_error import LexError
from fp4patch.cxx.tokens import Source, lex, words
from fp4patch.edits.patch_file import Hunk


def by_tokens(text: str, hunk: Hunk) -> str | None:
    """Return the text with the change of a hunk; None unless there is just one place for it."""
    try:
        source = lex(text)
        before, after = words("".join(hunk.before)), words("".join(hunk.after))
        rows = [(sign, line, len(words(line))) for sign, line in hunk.rows]
        if before == after or not before or sum(n for sign, _, n in rows if sign != "+") != len(before):
            return None  # a change of comments alone; a token of several lines
        places = source.find(before)
        if len(places) != 1:
            return None
        made = _spliced(source, places[0], rows)
        result = lex(made) if made is not None else None
    except (LexError, ValueError):
        return None
    at = places[0]
    expected = (*source.words[:at], *after, *source.words[at + len(before) :])
    lines = [sum(line.lstrip().startswith("#") for line in side) for side in (hunk.before, hunk.after)]
    if result is None or result.words != expected:
        return None
    return made if len(result.directives) == len(source.directives) - lines[0] + lines[1] else None


def _spliced(source: Source, at: int, rows: list[tuple[str, str, int]]) -> str | None:
    """Return the text with the changed lines of a hunk in the place of their tokens, of which the first is ``at``."""
    cuts = list[tuple[int, int, str]]()
    for is_context, group in groupby(rows, lambda row: row[0] == " "):
        run = list(group)
        count = sum(n for sign, _, n in run if sign != "+")
        if not is_context:
            cut = _cut(source, at, count, run)
            if cut is None:
                return None
            cuts.append(cut)
        at += count
    text = source.text
    for start, end, new in reversed(cuts):
        text = text[:start] + new + text[end:]
    return text


def _cut(source: Source, at: int, count: int, run: list[tuple[str, str, int]]) -> tuple[int, int, str] | None:
    """Return the part of the text that a run of changed lines replaces, and what comes there."""
    text, added = source.text, "".join(line for sign, line, _ in run if sign == "+")
    if count:
        start, end = source.starts[at], source.ends[at + count - 1]
        if added:
            return start, end, added.strip()
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
        alone = not text[first:start].strip() and not text[end:last].strip()
        return (first, last, "") if alone else (start, end, "")
    if any(sign == "-" for sign, _, _ in run):
        return None  # comments or blank lines go, which have no tokens to be found by
    if at:
        place = text.find("\n", source.ends[at - 1]) + 1
        free = place and (at == len(source.starts) or source.starts[at] >= place)
        return (place, place, added) if free else None
    return 0, 0, added
