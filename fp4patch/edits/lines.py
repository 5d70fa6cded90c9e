"""A text as lines, for diffs: only a line feed ends one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from fp4patch.core.splice import pieces


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
    ordered = sorted(cuts, key=lambda cut: (cut.start, cut.end))
    return Lines("".join(chain.from_iterable(pieces(source.lines, ordered))))
