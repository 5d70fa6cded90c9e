"""The edits ``drop-operand`` and ``add-operand``: operands of the conditions whose body defines a macro."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from fp4patch.core.outcome import NothingToDo, Outcome
from fp4patch.core.state import State
from fp4patch.edits.cxx import Branch, Cut, Source
from fp4patch.edits.cxx_edit import edit_cxx, rewritten
from fp4patch.edits.kinds import AddOperand, DropOperand
from fp4patch.edits.refusal import Refusal


class _Operand(NamedTuple):
    """``defined(NAME)`` among the tokens of a condition."""

    name: str
    first: int
    last: int
    """Indices into the condition."""


def drop_operand(edit: DropOperand, text: str) -> Outcome:
    """Return the text without the operands; NothingToDo where no condition has one; Drift if one is not understood."""
    return edit_cxx(text, edit.retired, partial(_drop, edit))


def _drop(edit: DropOperand, source: Source) -> Outcome:
    """Remove one operand, with one ``||``, from each condition whose body defines the macro; all of them or none.

    A comment between the operand and that ``||`` goes with it.
    """
    operands, names = _conditions(edit, source), " or ".join(edit.operands)
    if not any(operand.name in edit.operands for _, found in operands for operand in found):
        return NothingToDo(State.NOT_NEEDED, f"the conditions that define {edit.defines} do not name {names}")
    _counted(edit, operands)
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


def add_operand(edit: AddOperand, text: str) -> Outcome:
    """Return the text with each operand that is missing; NothingToDo where none is; Drift if a condition is not
    understood."""
    return edit_cxx(text, edit.retired, partial(_add, edit))


def _add(edit: AddOperand, source: Source) -> Outcome:
    """Put the operand of each condition that lost it after its neighbour."""
    operands = _conditions(edit, source)
    signed = [(branch, found) for branch, found in operands if any(one.name in edit.signs for one in found)]
    if not signed:
        signs = " or ".join(edit.signs)
        return NothingToDo(State.NOT_NEEDED, f"the conditions that define {edit.defines} do not name {signs}")
    places: list[tuple[str, Branch, _Operand]] = []
    for branch, found in signed:
        wanted = dict(zip(edit.beside, edit.operands, strict=True))
        due = [(one, wanted[one.name]) for one in found if one.name in wanted]
        if len(due) != 1:
            one_of = f"one of {', '.join(edit.beside)} in the #if that defines {edit.defines}"
            raise Refusal(one_of, f"{len(due)}", branch.opening.line, found[-1].name)
        beside, name = due[0]
        if not any(one.name == name for one in found):
            places.append((name, branch, beside))
    _counted(edit, operands)
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


def _conditions(edit: DropOperand | AddOperand, source: Source) -> list[tuple[Branch, list[_Operand]]]:
    """Return the live conditions whose body defines the macro, each with its operands."""
    every = [branch for conditional in source.conditionals for branch in conditional.branches]
    branches = [b for b in every if edit.defines in b.defines and source.is_live(b.body[0].start)]
    if not branches:
        seen = source.find([edit.defines])
        line = source.tokens[seen[0]].line if seen else None
        raise Refusal(f"{edit.conditions} #if that define {edit.defines}", "none", line)
    operands = [(branch, _disjunction(branch, edit.defines)) for branch in branches]
    for branch, found in operands:
        _no_lookalike(branch, found, edit.operands)
    return operands


def _counted(edit: DropOperand | AddOperand, operands: Sequence[tuple[Branch, list[_Operand]]]) -> None:
    if len(operands) != edit.conditions:
        count = f"{edit.conditions} #if that define {edit.defines}"
        raise Refusal(count, f"{len(operands)}", operands[-1][0].opening.line)


def _disjunction(branch: Branch, macro: str) -> list[_Operand]:
    """Return the operands of ``defined(A) || defined B || …``, in parentheses or bare; anything else is refused."""
    condition = branch.condition
    expected = f"defined(…) || … in the #{branch.opening.name} that defines {macro}"
    if branch.opening.name not in ("if", "elif"):
        raise Refusal(expected, f"#{branch.opening.name}", branch.opening.line)
    first, last = 0, len(condition)
    while last - first >= 2 and condition[first].text == "(" and condition[last - 1].text == ")":
        first, last = first + 1, last - 1

    operands: list[_Operand] = []
    at = first

    def take(*wanted: str) -> bool:
        nonlocal at
        if tuple(token.text for token in condition[at : min(at + len(wanted), last)]) != wanted:
            return False
        at += len(wanted)
        return True

    def stop() -> Refusal:
        bad = condition[at] if at < len(condition) else None
        return Refusal(expected, f"`{bad.text}`" if bad else "its end", bad.line if bad else branch.opening.line)

    while True:
        began = at
        if not take("defined"):
            raise stop()
        bracketed = take("(")
        if at >= last or not condition[at].text.isidentifier():
            raise stop()
        name = condition[at].text
        at += 1
        if bracketed and not take(")"):
            raise stop()
        operands.append(_Operand(name, began, at - 1))
        if at == last:
            return operands
        if not take("|", "|"):
            raise stop()


def _no_lookalike(branch: Branch, found: Sequence[_Operand], wanted: Sequence[str]) -> None:
    """A name that begins as all the wanted ones do, and is none of them, is not "not named": it is not understood."""
    beginning = os.path.commonprefix(list(wanted))  # noqa: RUF071 - of names, letter by letter: no paths here
    for operand in found:
        if operand.name.startswith(beginning) and operand.name not in wanted:
            line = branch.condition[operand.first].line
            raise Refusal(f"no {beginning}… but {' or '.join(wanted)}", operand.name, line, operand.name)


def _cut(source: Source, branch: Branch, found: Sequence[_Operand], chosen: _Operand) -> Cut:
    """Return the characters to remove, so that the rest reads as if written without the operand.

    The ``||`` before the operand goes too if the operand ends a line or the list, else the one after it.
    """
    condition = branch.condition
    start, end = condition[chosen.first].start, condition[chosen.last].end
    following = next((operand for operand in found if operand.first > chosen.last), None)
    leads = chosen is found[0]
    if following is not None:
        next_start = _next_start(source, condition[chosen.last + 2].end, condition[following.first].start)
        alone_or_first = not source.text[source.text.rfind("\n", 0, start) + 1 : start].strip()
        if leads or alone_or_first or "\n" not in source.text[end:next_start]:
            return Cut(start, next_start, "")
    return Cut(condition[chosen.first - 3].end, end, "")


def _next_start(source: Source, after: int, before: int) -> int:
    """Return the start of the text after the ``||``: a comment before the next operand belongs to that operand."""
    return min((comment.start for comment in source.comments if after <= comment.start < before), default=before)
