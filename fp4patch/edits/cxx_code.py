"""C++ for the edit ``replace``: code is a sequence of tokens, in the preprocessor's lines too."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from fp4patch.core.results import NothingToDo
from fp4patch.cxx.edit import Cut, newline_of
from fp4patch.cxx.shape import block
from fp4patch.cxx.tokens import Source, Token, read, words
from fp4patch.edits.cxx_conditions import conditions
from fp4patch.edits.effect import Case, Results
from fp4patch.edits.operation import Change, Retired
from fp4patch.edits.refusal import Refusal

_TIGHT = (r"[~*/%+^.-]|[=!<>]=|<<|>>|!", r"(?<!&)&(?!&)", r"(?<!\|)\|(?!\|)")
"""Operators that bind tighter than ``&&``."""


def _loose(expression: Sequence[str]) -> set[str]:
    """Return those of the operators ``?``, ``||`` and ``&&`` that are outside of brackets; all of text that is none."""
    depth, found = 0, set()
    for before, word in pairwise([*expression, ""]):
        depth += (before in "([{") - (before in ")]}")
        if depth < 0:
            break
        if not depth and (word == "?" or before == word in ("|", "&")):
            found.add("?" if word == "?" else before + word)
    return {"?", "||", "&&"} if depth else found


def retirement(source: Source, retired: Sequence[Retired]) -> NothingToDo | None:
    """Return the outcome of an edit that a sign in the source retires; None without one.

    LexError: conditionals do not pair, which is checked before anything else.
    """
    _ = source.conditionals
    for sign in retired:
        if source.find(words(sign.tokens)):
            return NothingToDo(sign.state, sign.because, sign.since)
    return None


class CxxCode:
    """A source. ``within``: the tokens that a declaration begins with; only inside its braces is searched."""

    def __init__(self, source: Source, within: str) -> None:
        self._source = source
        self._within = within

    def is_about(self, about: str, /) -> bool:
        """Tell whether the tokens occur."""
        return bool(self._source.find(words(about)))

    def lines(self, pattern: str, /) -> list[int]:
        """Return the line of each place that has the tokens."""
        return [self._source.token(at).line for at in self._places(pattern)]

    def conditions(self, cases: Sequence[Case], /) -> Iterator[Results]:
        """Yield the conditions on the names of the cases."""
        return conditions(self._source, self._region, cases)

    def nearest(self, pattern: str, /) -> tuple[int | None, str]:
        """Return the place with the longest beginning of the tokens."""
        return self._source.nearest(words(pattern))

    def contains(self, whole: str, part: str, /) -> bool:
        """Tell whether tokens have others among them."""
        return bool(read(whole).find(words(part)))

    def replaced(self, find: str, replace: str, /) -> Change:
        """Return the change of the tokens at each of their places."""
        size, places = len(words(find)), self._places(find)
        for at in places:
            self._check_operands(at, size, find, replace)
        olds = [[self._source.token(at + n) for n in range(size)] for at in places]
        written = replace.replace("\n", newline_of(self._source.text))
        lines = {token.line for old in olds for token in old}
        return Change([self._cut(old, written) for old in olds], tuple(sorted(lines)))

    def _places(self, pattern: str) -> list[int]:
        return [at for at in self._source.find(words(pattern)) if at in self._region]

    @cached_property
    def _region(self) -> range:
        """The tokens between the braces of the one declaration that begins so. Refusal: there is none, or several."""
        if not self._within:
            return range(len(self._source.words))
        beginning = words(self._within)
        starts = self._source.find(beginning)
        inside = block(self._source, starts[0] + len(beginning)) if len(starts) == 1 else None
        if inside is None:
            line = self._source.token(starts[-1]).line if starts else None
            raise Refusal(f"one `{self._within}` with a body", f"{len(starts)} that begin so", line)
        return inside

    def _cut(self, old: Sequence[Token], replace: str) -> Cut:
        """Return the change of one place: all of it, or the tokens alone that are added or left out."""
        new = read(replace).tokens
        shorter = min(len(old), len(new))
        lead = next((n for n in range(shorter) if old[n].text != new[n].text), shorter)
        rest = shorter - lead
        tail = next((n for n in range(rest) if old[-1 - n].text != new[-1 - n].text), rest)
        if not lead or lead + tail < shorter:
            self._check(old, old)
            return Cut(old[0].start, old[-1].end, replace)
        gone, come = old[lead : len(old) - tail], new[lead : len(new) - tail]
        self._check(old, gone)
        start = old[lead - 1].end
        return Cut(start, gone[-1].end if gone else start, replace[new[lead - 1].end : come[-1].end] if come else "")

    def _check_operands(self, at: int, size: int, find: str, replace: str) -> None:
        """Refuse an operator that there was not where a tighter one beside the place would take an operand of it."""
        source, behind = self._source, at + size
        around = (range(max(0, at - 2), at), range(behind, min(behind + 2, len(source.words))))
        of = source.directive_of
        before, after = ("".join(source.words[n] for n in side if of[n] == of[at]) for side in around)
        added = _loose(words(replace)) - _loose(words(find))
        tighter = [*_TIGHT, *({"&&"} if added - {"&&"} else ()), *({"||"} if "?" in added else ())] if added else []
        if any(re.search(f"(?:{operator})$", before) or re.match(operator, after) for operator in tighter):
            raise Refusal(f"`{replace}` as one operand", f"it stands in `{before} … {after}`", source.token(at).line)

    def _check(self, old: Sequence[Token], gone: Sequence[Token]) -> None:
        """Refuse tokens of more than one directive, and a name in a condition that is about more than this name."""
        text = " ".join(token.text for token in old)
        if len({token.directive for token in gone}) > 1:
            raise Refusal(f"`{text}` in one directive or in code", "both", gone[0].line)
        if gone is not old or len(old) != len(words("defined(X)")) or old[0].text != "defined" or old[0].directive < 0:
            return
        directive = self._source.directives[old[0].directive]
        condition = directive.tokens
        while len(condition) > len(old) and condition[0].text == "(" and condition[-1].text == ")":
            condition = condition[1:-1]
        if directive.name in ("if", "elif") and len(condition) != len(old):
            found = " ".join(token.text for token in directive.tokens)
            raise Refusal(f"`{text}` as the whole condition", f"`#{directive.name} {found}`", directive.line)
