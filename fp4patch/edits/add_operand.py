"""The edit ``add-operand``: conditions whose body defines a macro get an operand back that someone took out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from fp4patch.core.outcome import NothingToDo, Outcome
from fp4patch.core.state import State
from fp4patch.edits.cxx import Branch, Cut, Source
from fp4patch.edits.cxx_edit import edit_cxx, rewritten
from fp4patch.edits.macro_conditions import OnMacro, Operand, conditions, counted
from fp4patch.edits.operation import NO_OPTIONS, Mistake, Template
from fp4patch.edits.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class AddOperand(OnMacro):
    """Put operands back into the ``#if`` conditions whose body defines a macro, where someone took them out.

    The conditions are those of ``drop-operand``. The first of ``operands`` goes behind the first of ``beside``, and so
    on, in a condition that also has one of ``signs``: the operands that came to upstream's conditions together with
    them. A condition without a sign never had the operand: not needed.
    """

    texts: ClassVar = ("defines", "operands", "beside", "signs")
    op: Literal["add-operand"] = "add-operand"
    operands: tuple[str, ...]
    """Names of the operands to add, in the order of `beside`."""
    beside: tuple[str, ...]
    """Operands behind which they are put."""
    signs: tuple[str, ...]
    """Operands one of which a condition has if it once had the missing operand."""

    def rewrite(self, text: str, _template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with each missing operand; NothingToDo if none is; Drift if a condition is not understood."""
        return edit_cxx(text, self.retired, partial(_add, self))

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield the mistakes of such an edit, and a number of neighbours that is not that of the operands."""
        yield from super().mistakes(folder)
        if len(self.beside) != len(self.operands):
            yield Mistake("beside", f"{len(self.operands)}, one for each operand", str(len(self.beside)))


def _add(edit: AddOperand, source: Source) -> Outcome:
    """Put the operand of each condition that lost it after its neighbour."""
    operands = conditions(edit, source)
    signed = [(branch, found) for branch, found in operands if any(one.name in edit.signs for one in found)]
    if not signed:
        signs = " or ".join(edit.signs)
        return NothingToDo(State.NOT_NEEDED, f"the conditions that define {edit.defines} do not name {signs}")
    places: list[tuple[str, Branch, Operand]] = []
    for branch, found in signed:
        wanted = dict(zip(edit.beside, edit.operands, strict=True))
        due = [(one, wanted[one.name]) for one in found if one.name in wanted]
        if len(due) != 1:
            one_of = f"one of {', '.join(edit.beside)} in the #if that defines {edit.defines}"
            raise Refusal(one_of, f"{len(due)}", branch.opening.line, found[-1].name)
        beside, name = due[0]
        if not any(one.name == name for one in found):
            places.append((name, branch, beside))
    counted(edit, operands)
    if not places:
        return NothingToDo(State.NOT_NEEDED, f"each condition that defines {edit.defines} names its operand")
    cuts = []
    for name, branch, beside in places:
        first, last = branch.condition[beside.first], branch.condition[beside.last]
        written = source.text[first.start : last.end]
        cuts.append(Cut(last.end, last.end, f" || {written.replace(beside.name, name)}"))
    lines = tuple(sorted({source.line(cut.start) for cut in cuts}))
    taken = f"someone took {' and '.join(name for name, _, _ in places)} out of what defines {edit.defines}"
    result = rewritten(source, cuts, lines, (f"line {lines[0]}: {taken}; it is back",))
    return replace(result, reversal=taken)
