"""The rows of two listings side by side: aligned, marked where they differ, folded where they are long."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fp4patch.catalog.probe import ProbeKind
from fp4patch.proof.result import ProbeResult
from fp4patch.sass.instruction import DiffKind, DiffRow, Instruction, InstructionClass

LONG_SAME = 14
"""Rows that are the same on both sides are folded from this length on; CONTEXT stay visible at either end."""

CONTEXT = 4

LONG_ONE_SIDED = 72
"""Rows that only one side has are folded from this length on; HEAD stay visible above, CONTEXT below."""

HEAD = 24

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

NEXT = "."
"""Address 16 bytes after the one above on the same side, which ``verify_page.js`` writes out: digits that count up are
most of a compressed listing."""

MINUS = "\N{MINUS SIGN}"

MARKS = {DiffKind.SAME: "", DiffKind.CHANGED: "~", DiffKind.REMOVED: MINUS, DiffKind.ADDED: "+"}

ROW_CLASS = {DiffKind.SAME: "", DiffKind.CHANGED: "c", DiffKind.REMOVED: "r", DiffKind.ADDED: "a"}

_REGISTER = re.compile(r"\b(U?[RP])\d+\b")

_TARGET = re.compile(r"`\(([.$\w]+)\)")

_OPERAND = re.compile(r"(,\s*)")


@dataclass(frozen=True)
class Piece:
    """A part of an operand list: plain, marked as different, or a branch target to jump to."""

    text: str
    marked: bool = False
    anchor: str = ""


@dataclass(frozen=True)
class Side:
    """One instruction as the page shows it."""

    address: str
    """Four hexadecimal digits, or NEXT."""
    cls: str
    predicate: str
    opcode: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Label:
    """Name of a branch target's address, and the anchor of the page's links to it."""

    name: str
    anchor: str


@dataclass(frozen=True)
class Row:
    """One row of the two listings, with the labels above it."""

    css: str
    mark: str
    before: Side | None
    after: Side | None
    before_label: Label | None
    after_label: Label | None


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows; folded ones hide behind a summary."""

    rows: tuple[Row, ...]
    summary: str = ""


def stretches_of(result: ProbeResult, anchor: str) -> tuple[Stretch, ...]:
    """Return a result's rows, long runs folded; labels and branch targets become anchors below ``anchor``."""
    before, after = result.before, result.after
    rows = result.diff.rows if result.diff else _unaligned(result)
    labels = {"b": before.labels if before else {}, "a": after.labels if after else {}}
    starts = {
        "b": {i.address for i in before.instructions} if before else set(),
        "a": {i.address for i in after.instructions} if after else set(),
    }
    # A label past the last instruction that is shown has no row, so nothing can link to it.
    names = {side: {name for address, name in of.items() if address in starts[side]} for side, of in labels.items()}

    def label(side: str, instruction: Instruction | None) -> Label | None:
        name = labels[side].get(instruction.address) if instruction else None
        return Label(name, f"{anchor}-{side}-{_slug(name)}") if name is not None else None

    previous: dict[str, int] = {}

    def address(side: str, instruction: Instruction) -> str:
        follows = previous.get(side) == instruction.address - 16
        previous[side] = instruction.address
        return NEXT if follows else f"{instruction.address:04x}"

    def shown(row: DiffRow) -> Row:
        old, new = row.before, row.after
        changed = row.kind is DiffKind.CHANGED
        return Row(
            css=ROW_CLASS[row.kind],
            mark=MARKS[row.kind],
            before=_side(address("b", old), old, new if changed else None, f"{anchor}-b", names["b"]) if old else None,
            after=_side(address("a", new), new, old if changed else None, f"{anchor}-a", names["a"]) if new else None,
            before_label=label("b", old),
            after_label=label("a", new),
        )

    if not rows or (result.kind is ProbeKind.UNIT and result.diff and result.diff.identical):
        return ()  # a whole source file can be tens of thousands of rows, and none adds to the headline
    if result.diff is None or result.diff.identical:
        return (Stretch(tuple(shown(row) for row in rows)),)
    return tuple(
        Stretch(tuple(shown(row) for row in part), _summary(part) if folded else "") for part, folded in fold(rows)
    )


def _unaligned(result: ProbeResult) -> tuple[DiffRow, ...]:
    """Yield the rows of one listing alone, or of two that were not compared: each in full."""
    before = result.before.instructions if result.before else ()
    after = result.after.instructions if result.after else ()
    left = [DiffRow(DiffKind.SAME, instruction, None) for instruction in before]
    return (*left, *(DiffRow(DiffKind.SAME, None, instruction) for instruction in after))


def fold(rows: Sequence[DiffRow]) -> Iterator[tuple[tuple[DiffRow, ...], bool]]:
    """Yield the rows, cut into visible stretches and folded ones (True); visible neighbours are joined."""
    visible: list[DiffRow] = []
    for kind, run in groupby(rows, key=lambda row: row.kind):
        part = tuple(run)
        same = kind is DiffKind.SAME
        longest = {DiffKind.SAME: LONG_SAME, DiffKind.CHANGED: len(part)}.get(kind, LONG_ONE_SIDED)
        if len(part) <= longest:
            visible += part
            continue
        head = CONTEXT if same else HEAD
        yield (*visible, *part[:head]), False
        yield part[head:-CONTEXT], True
        visible = list(part[-CONTEXT:])
    if visible:
        yield tuple(visible), False


def _summary(rows: Sequence[DiffRow]) -> str:
    """Return ``376 more added instructions: 120 integer, 98 compare, select …``."""
    kind = rows[0].kind
    if kind is DiffKind.SAME:
        return f"{len(rows):,} more instructions, the same on both sides"
    instructions = filter(None, (row.after or row.before for row in rows))
    found = Counter(CLASSES[one.cls][1] for one in instructions).most_common()
    return f"{len(rows):,} more {kind.value} instructions: " + " · ".join(f"{number} {name}" for name, number in found)


def _side(address: str, instruction: Instruction, other: Instruction | None, anchor: str, labels: set[str]) -> Side:
    return Side(
        address=address,
        cls=CLASSES[instruction.cls][0],
        predicate=instruction.predicate,
        opcode=instruction.opcode,
        pieces=tuple(_pieces(instruction, other, anchor, labels)),
    )


def _pieces(instruction: Instruction, other: Instruction | None, anchor: str, labels: set[str]) -> Iterator[Piece]:
    """Yield the operands, and mark those that differ from the other side's beyond register numbers."""
    if not instruction.operands:
        return
    parts = _OPERAND.split(instruction.operands)
    theirs = _OPERAND.split(other.operands)[::2] if other else []
    plain = ""
    for index, part in enumerate(parts):
        separator = index % 2 == 1
        there = "".join(theirs[index // 2 : index // 2 + 1])
        marked = other is not None and not separator and _unnumbered(part) != _unnumbered(there)
        target = _TARGET.search(part)
        to = f"{anchor}-{_slug(target[1])}" if target and target[1] in labels else ""
        if to or marked:
            yield Piece(plain)
            yield Piece(part, marked, to)
            plain = ""
        else:
            plain += part
    yield Piece(plain)


def _unnumbered(operand: str) -> str:
    return _REGISTER.sub(r"\1", operand)


def _slug(name: str) -> str:
    """Return a label's name as part of an id: special characters by their code, so that names stay distinct."""
    return re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}", name)
