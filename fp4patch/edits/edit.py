"""The fold of edits over a source text: each is applied to what the one before left.

The result is read again: it must be the old text with exactly the intended parts gone or added.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fp4patch.core.outcome import Drift, Outcome, Rewritten
from fp4patch.edits import cxx
from fp4patch.edits.operation import Operation
from fp4patch.edits.refusal import UNKNOWN_SHAPE


class Step(Protocol):
    """One edit of a fold, and where its templates come from."""

    @property
    def edit(self) -> Operation:
        """The edit."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options that the variant sets for the patch."""

    def template(self, name: str, /) -> str:
        """Return the text of one of its templates."""


@dataclass(frozen=True)
class Fold:
    """The text after all edits, and what each came to, in their order. One that drifts leaves the text as it was."""

    text: str
    outcomes: tuple[Outcome, ...]


def fold(text: str, steps: Iterable[Step]) -> Fold:
    """Apply the edits in order, each to what the one before left. All are tried, so that all refusals are known.

    C++ that several edits change is read again as a whole once, after the last of them.
    """
    outcomes: list[Outcome] = []
    folded, last = text, -1
    for step in steps:
        outcome = step.edit.rewrite(folded, step.template, step.options)
        if isinstance(outcome, Rewritten):
            folded, last = outcome.text, len(outcomes)
        outcomes.append(outcome)
    if last >= 0 and not cxx.is_proven(folded):
        outcomes[last] = Drift("a result that reads as intended", "one that reads otherwise", help=UNKNOWN_SHAPE)
        folded = text
    return Fold(folded, tuple(outcomes))
