"""Parts of a text put in the place of others, whatever the language and whatever a place is counted in."""

from collections.abc import Iterable
from typing import TypeVar

from fp4patch.core.lex_error import Overlap

Whole = TypeVar("Whole", str, tuple[str, ...])


def pieces(whole: Whole, cuts: Iterable[tuple[int, int, Whole]]) -> list[Whole]:
    """Return what a text, or its lines, consist of with parts replaced: begin, end and what is put there.

    The cuts are in the order of their places. Overlap: two of them share a part.
    """
    made: list[Whole] = []
    at = 0
    for start, end, new in cuts:
        if start < at:
            raise Overlap("two changes of one place")
        made += whole[at:start], new
        at = end
    made.append(whole[at:])
    return made
