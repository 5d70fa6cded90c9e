"""Edits as pure functions: source text in; new text, a reason to do nothing, or a refusal out.

Each kind of edit is a dataclass of :mod:`fp4patch.edits.kinds` and one row of the table at the end. Whatever a kind
edits is read again after the edit, and must be the old text with exactly the intended parts gone or added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from fp4patch.core.outcome import Drift, Outcome, Rewritten
from fp4patch.edits import cmakelists, cxx
from fp4patch.edits.drop_operand import add_operand, drop_operand
from fp4patch.edits.insert import insert
from fp4patch.edits.kinds import (
    AddElement,
    AddOperand,
    DropOperand,
    Edit,
    Insert,
    InsertCommands,
    ReplaceCommand,
    ReplaceExpression,
    ReplaceTokens,
    WrapAsm,
)
from fp4patch.edits.refusal import UNKNOWN_SHAPE
from fp4patch.edits.replace_tokens import replace_tokens
from fp4patch.edits.wrap_asm import wrap

Template = Callable[[str], str]
"""The text of a template by the name that the edit gives."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class Step(Protocol):
    """One edit of a fold, and where its templates come from."""

    @property
    def edit(self) -> Edit:
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

    An edit of C++ reads only its surroundings again. The last text is read as a whole, once.
    """
    outcomes: list[Outcome] = []
    folded, last = text, -1
    for step in steps:
        outcome = rewrite(step.edit, folded, step.template, step.options)
        if isinstance(outcome, Rewritten):
            folded, last = outcome.text, len(outcomes)
        outcomes.append(outcome)
    if last >= 0 and not cxx.is_proven(folded):
        outcomes[last] = Drift("a result that reads as intended", "one that reads otherwise", help=UNKNOWN_SHAPE)
        folded = text
    return Fold(folded, tuple(outcomes))


def rewrite(edit: Edit, text: str, template: Template, options: Mapping[str, str] = NO_OPTIONS) -> Outcome:
    """Apply one edit to a text. Refusals are values; only a template that cannot be read raises."""
    if isinstance(edit, WrapAsm):  # the one kind for which a variant chooses
        return wrap(edit, text, template, options)
    return _REWRITES[type(edit)](edit, text, template)


def _replace_expression(edit: ReplaceExpression, text: str, _template: Template) -> Outcome:
    from fp4patch.edits.replace_expression import replace_expression  # noqa: PLC0415 - LibCST takes a while; few trees need it

    return replace_expression(edit, text)


_REWRITES: Mapping[type, Callable[[Any, str, Template], Outcome]] = {
    DropOperand: lambda edit, text, _template: drop_operand(edit, text),
    AddOperand: lambda edit, text, _template: add_operand(edit, text),
    Insert: insert,
    ReplaceTokens: lambda edit, text, _template: replace_tokens(edit, text),
    ReplaceExpression: _replace_expression,
    AddElement: lambda edit, text, _template: cmakelists.add_element(edit, text),
    ReplaceCommand: lambda edit, text, _template: cmakelists.replace_command(edit, text),
    InsertCommands: cmakelists.insert_commands,
}
