"""The edit ``drop-operand``: conditions whose body defines a macro lose an operand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fp4patch.core.outcome import NothingToDo, Outcome
from fp4patch.core.state import State
from fp4patch.edits.cxx import Branch, Cut, Source
from fp4patch.edits.cxx_edit import edit_cxx, rewritten
from fp4patch.edits.macro_conditions import OnMacro, Operand, conditions, counted
from fp4patch.edits.operation import NO_OPTIONS, Template
from fp4patch.edits.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class DropOperand(OnMacro):
    """Remove operands from the ``#if`` conditions whose body defines a macro.

    Each condition must be a disjunction of ``defined(NAME)``. ``conditions`` is the number of such ``#if``; each must
    lose exactly one operand. If no condition has such an operand, the edit is not needed.
    """

    op: Literal["drop-operand"] = "drop-operand"
    operands: tuple[str, ...]
    """Names of the operands to remove; each condition has exactly one of them."""

    def rewrite(self, text: str, _template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text without the operands; NothingToDo if none is there; Drift if one is not understood."""
        return edit_cxx(text, self.retired, partial(_drop, self))


def _drop(edit: DropOperand, source: Source) -> Outcome:
    """Remove one operand, with one ``||``, from each condition whose body defines the macro; all of them or none.

    A comment between the operand and that ``||`` goes with it.
    """
    operands, names = conditions(edit, source), " or ".join(edit.operands)
    if not any(operand.name in edit.operands for _, found in operands for operand in found):
        return NothingToDo(State.NOT_NEEDED, f"the conditions that define {edit.defines} do not name {names}")
    counted(edit, operands)
    cuts: list[Cut] = []
    for branch, found in operands:
        chosen = [operand for operand in found if operand.name in edit.operands]
        if len(chosen) != 1:
            listed = ", ".join(operand.name for operand in chosen) or "none of them"
            one = f"one of {names} in each #if that defines {edit.defines}"
            raise Refusal(one, listed, branch.opening.line, found[-1].name)
        if len(found) == 1:
            raise Refusal("another operand beside it", f"{chosen[0].name} alone", branch.opening.line)
        cuts.append(_cut(source, branch, found, chosen[0]))
    lines = {line for cut in cuts for line in range(source.line(cut.start), source.line(cut.end) + 1)}
    return rewritten(source, cuts, tuple(sorted(lines)))


def _cut(source: Source, branch: Branch, found: Sequence[Operand], chosen: Operand) -> Cut:
    """Return the characters to remove, so that the rest reads as if written without the operand.

    The ``||`` before the operand goes too if the operand ends a line or the list, else the one after it.
    """
    condition = branch.condition
    start, end = condition[chosen.first].start, condition[chosen.last].end
    following = next((operand for operand in found if operand.first > chosen.last), None)
    leads = chosen is found[0]
    if following is not None:
        # A comment before the next operand belongs to that operand.
        behind, before = condition[chosen.last + 2].end, condition[following.first].start
        next_start = min((c.start for c in source.comments if behind <= c.start < before), default=before)
        alone_or_first = not source.text[source.text.rfind("\n", 0, start) + 1 : start].strip()
        if leads or alone_or_first or "\n" not in source.text[end:next_start]:
            return Cut(start, next_start, "")
    return Cut(condition[chosen.first - 3].end, end, "")
