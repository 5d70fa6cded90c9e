"""The base of the replacing edits: the exact number of sites, or text that retires the edit, and never both."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fp4patch.core.outcome import NothingToDo
from fp4patch.edits.live_text import Place, Text
from fp4patch.edits.operation import BySearch, MayBeAbsent, Retired, Search, Surroundings
from fp4patch.edits.refusal import Refusal

ADDED = """the source has the change of this patch: take it as upstream released it, or leave the patch out (if \
fp4patch made it, its .fp4patch directory is gone: `git clean -x` takes that away)"""


_GAP = rb"(?:[\s(),\\]|#[^\n]*+|//[^\n]*+|/\*.*?\*/)*+"
"""Text that may be located between two words of code."""


@dataclass(frozen=True, kw_only=True)
class Replacement(MayBeAbsent, BySearch):
    """Replace ``find`` by ``replace`` in each file below ``search`` that contains ``about``.

    The edit does not apply to a file without ``about``. A tree without such a file needs no edit, and ``otherwise``
    gives the reason; if that is empty, the tree has drifted. A file with ``about`` must have ``find`` exactly ``count``
    times, or text that retires the edit. All else is drift.
    """

    subject: ClassVar = "about"
    about: str
    """Code of the files that the edit applies to."""
    find: str
    """Code to replace."""
    replace: str
    """Code to put in its place."""
    count: int = 1
    """Number of places that a file has."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    @property
    def region(self) -> str:
        """The declaration or function that is searched; empty: the whole file."""
        return getattr(self, "within", "")

    def searches(self, language: str, /) -> Iterator[Search]:
        """Yield the search for what is replaced, unless only a part of each file is searched."""
        if language == self.language and not self.region:
            words = [word for word in re.findall(r"\w+|[^\w\s]", self.find) if word not in "(),\\"]
            pattern = re.compile(_GAP.join(re.escape(word).encode() for word in words), re.DOTALL)
            yield Search(pattern.search, self.left)

    def left(self, _tree: Surroundings, text: Text, /) -> Iterable[Place]:
        """Yield the code to replace that is left in a text."""
        return text.matches(re.escape(Text("", self.language, self.find.encode()).code))


def settle(
    edit: Replacement,
    sites: Sequence[int],
    signs: Callable[[str], Sequence[int]],
    nearest: Callable[[], tuple[int | None, str]] = lambda: (None, ""),
) -> NothingToDo | None:
    """Return None if the number of sites is right; Refusal if it is wrong, or if there are signs too.

    ``sites`` are lines, ``signs`` gives the lines of a sign, ``nearest`` the line and the words for what comes close.
    """
    for rule in edit.retired:
        if there := signs(rule.tokens):
            if sites:
                raise Refusal(f"either `{edit.find}` or `{rule.tokens}`", "both", there[0])
            return NothingToDo(rule.state, rule.because, rule.since)
    if not sites and edit.replace and (made := signs(edit.replace)):
        raise Refusal(f"{edit.count} of `{edit.find}`", f"`{edit.replace}` in its place", made[0], advice=ADDED)
    if len(sites) != edit.count:
        line, near = (sites[-1], "") if sites else nearest()
        where = f" in `{edit.region}`" if edit.region else ""
        raise Refusal(f"{edit.count} of `{edit.find}`{where}", f"{len(sites)}", line, near)
    return None
