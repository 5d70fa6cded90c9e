"""The fold of edits over a source text: each is applied to what the one before left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fp4patch.core.results import Outcome, Rewritten
from fp4patch.edits.cxx import reads_as_meant
from fp4patch.edits.operation import Operation


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


def fold(text: str, steps: Sequence[Step], *, each: bool = False) -> Fold:
    """Apply the edits in order, each to what the one before left. All are tried, so that all refusals are known.

    The result of all of them is read again; ``each``: that of each edit is, which tells the one that went wrong.
    """
    outcomes: list[Outcome] = []
    result, cxx = text, False
    for step in steps:
        rewrite = step.edit.rewrite if each else step.edit.attempt
        outcome = rewrite(result, step.template, step.options)
        if isinstance(outcome, Rewritten):
            result, cxx = outcome.text, step.edit.language == "c++"
        outcomes.append(outcome)
    if cxx and not each and not reads_as_meant(result):
        return fold(text, steps, each=True)
    return Fold(result, tuple(outcomes))
