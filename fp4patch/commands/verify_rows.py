"""The rows of two listings side by side: aligned, marked where they differ, folded where they are long."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from fp4patch.catalog.probe import ProbeKind
from fp4patch.proof.listing import DiffKind, DiffRow
from fp4patch.proof.result import ProbeResult
from fp4patch.sass.instruction import Instruction, InstructionClass

LONG = 32
"""Rows of one kind are folded from this length on; CONTEXT stay visible at either end."""

CONTEXT = 8

CLASSES: dict[InstructionClass, tuple[str, str]] = {
    InstructionClass.FP4: ("f4", "FP4 conversion"),
    InstructionClass.CONVERT: ("cv", "other conversion"),
    InstructionClass.MMA: ("mm", "matrix"),
    InstructionClass.FLOAT: ("fl", "float"),
    InstructionClass.F64: ("fd", "double"),
    InstructionClass.INTEGER: ("in", "integer"),
    InstructionClass.COMPARE: ("cm", "compare, select"),
    InstructionClass.MEMORY: ("me", "memory"),
    InstructionClass.LOCAL: ("lo", "local memory (spill)"),
    InstructionClass.BRANCH: ("br", "branch"),
    InstructionClass.CONTROL: ("ct", "control"),
    InstructionClass.MOVE: ("mv", "move"),
    InstructionClass.OTHER: ("ot", "other"),
}
"""CSS class of each instruction class (two letters, since it appears in every row), and its words in the legend."""

MINUS = "\N{MINUS SIGN}"

MARKS = {DiffKind.SAME: "", DiffKind.CHANGED: "~", DiffKind.REMOVED: MINUS, DiffKind.ADDED: "+"}

ROW_CLASS = {DiffKind.SAME: "", DiffKind.CHANGED: "c", DiffKind.REMOVED: "r", DiffKind.ADDED: "a"}

_REGISTER = re.compile(r"\b(U?[RP])\d+\b")

_SEPARATOR = ", "


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows; folded ones hide behind a summary."""

    rows: tuple[DiffRow, ...]
    summary: str = ""


def stretches_of(result: ProbeResult) -> tuple[Stretch, ...]:
    """Return a result's rows, long runs folded."""
    rows = result.diff.rows if result.diff else _unaligned(result)
    if not rows or (result.kind is ProbeKind.UNIT and result.diff and result.diff.identical):
        return ()  # a whole source file can be tens of thousands of rows, and none adds to the headline
    if result.diff is None or result.diff.identical:
        return (Stretch(tuple(rows)),)
    return tuple(fold(rows))


def _unaligned(result: ProbeResult) -> tuple[DiffRow, ...]:
    """Return the rows of one listing alone, or of two that were not compared: each in full."""
    before = result.before.instructions if result.before else ()
    after = result.after.instructions if result.after else ()
    left = [DiffRow(DiffKind.SAME, instruction, None) for instruction in before]
    return (*left, *(DiffRow(DiffKind.SAME, None, instruction) for instruction in after))


def fold(rows: Sequence[DiffRow]) -> Iterator[Stretch]:
    """Yield the rows, cut into visible stretches and folded ones. Changed operands are never folded."""
    visible: list[DiffRow] = []
    for kind, run in groupby(rows, key=lambda row: row.kind):
        part = tuple(run)
        if kind is DiffKind.CHANGED or len(part) <= LONG:
            visible += part
            continue
        yield Stretch((*visible, *part[:CONTEXT]))
        hidden = part[CONTEXT:-CONTEXT]
        which = "the same on both sides" if kind is DiffKind.SAME else kind.value
        yield Stretch(hidden, f"{len(hidden):,} more instructions, {which}")
        visible = list(part[-CONTEXT:])
    if visible:
        yield Stretch(tuple(visible))


def operands(instruction: Instruction, row: DiffRow) -> Iterator[tuple[str, bool]]:
    """Yield the operands, each with whether it differs from the other side's beyond the numbers of registers."""
    own = instruction.operands.split(_SEPARATOR)
    if row.kind is not DiffKind.CHANGED or not row.before or not row.after:
        yield instruction.operands, False
        return
    other = (row.after if instruction is row.before else row.before).operands.split(_SEPARATOR)
    for index, (operand, theirs) in enumerate(zip_longest(own, other[: len(own)], fillvalue="")):
        if index:
            yield _SEPARATOR, False
        yield operand, _unnumbered(operand) != _unnumbered(theirs)


def _unnumbered(operand: str) -> str:
    return _REGISTER.sub(r"\1", operand)
