"""The fold of edits over a source text: each is applied to what the one before left."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fp4patch.core.outcome import Outcome, Rewritten
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


def fold(text: str, steps: Iterable[Step]) -> Fold:
    """Apply the edits in order, each to what the one before left. All are tried, so that all refusals are known."""
    outcomes: list[Outcome] = []
    for step in steps:
        outcome = step.edit.rewrite(text, step.template, step.options)
        if isinstance(outcome, Rewritten):
            text = outcome.text
        outcomes.append(outcome)
    return Fold(text, tuple(outcomes))
