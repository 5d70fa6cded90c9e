"""A text as lines, for diffs: only a line feed ends one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from fp4patch.core.lex_error import Overlap


class LineCut(NamedTuple):
    """Lines of a text, by index, and the lines that are put in their place."""

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Lines:
    """A text and its lines, with their ends."""

    text: str

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines. The last one may have no end."""
        return tuple(re.findall(r"[^\n]*\n|[^\n]+", self.text))


def spliced(source: Lines, cuts: Iterable[LineCut]) -> Lines:
    """Return the text with lines replaced. Overlap: two cuts are about the same lines."""
    result: list[str] = []
    at = 0
    for cut in sorted(cuts, key=lambda cut: (cut.start, cut.end)):
        if cut.start < at:
            raise Overlap("two changes of one place")
        result += source.lines[at : cut.start]
        result += cut.lines
        at = cut.end
    return Lines("".join((*result, *source.lines[at:])))
