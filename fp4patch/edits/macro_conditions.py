"""Conditions whose body defines a macro, and their operands: what ``drop-operand`` and ``add-operand`` share."""

import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from fp4patch.edits.cxx import Branch, Source
from fp4patch.edits.operation import InFile, Mistake, Retired
from fp4patch.edits.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class OnMacro(InFile):
    """Base of the operations on the ``#if`` conditions whose body defines a macro.

    Each condition must be a disjunction of ``defined(NAME)``. ``conditions`` is the number of such ``#if``.
    """

    language: ClassVar = "c++"
    texts: ClassVar[tuple[str, ...]] = ("defines", "operands")
    defines: str
    """Name of the macro."""
    operands: tuple[str, ...]
    """Names of the operands."""
    conditions: int
    """Number of `#if` conditions whose body defines the macro."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield texts that cannot be read, and names that are none."""
        yield from super().mistakes(folder)
        for key, name in (("defines", self.defines), *(("operands", name) for name in self.operands)):
            if not name.isidentifier():
                yield Mistake(key, "the name of a macro, and nothing else", repr(name))


class Operand(NamedTuple):
    """``defined(NAME)`` among the tokens of a condition."""

    name: str
    first: int
    last: int
    """Indices into the condition."""


def conditions(edit: OnMacro, source: Source) -> list[tuple[Branch, list[Operand]]]:
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


def counted(edit: OnMacro, operands: Sequence[tuple[Branch, list[Operand]]]) -> None:
    """Refuse another number of conditions than the edit states."""
    if len(operands) != edit.conditions:
        count = f"{edit.conditions} #if that define {edit.defines}"
        raise Refusal(count, f"{len(operands)}", operands[-1][0].opening.line)


def _disjunction(branch: Branch, macro: str) -> list[Operand]:
    """Return the operands of ``defined(A) || defined B || …``, in parentheses or bare; anything else is refused."""
    condition = branch.condition
    expected = f"defined(…) || … in the #{branch.opening.name} that defines {macro}"
    if branch.opening.name not in ("if", "elif"):
        raise Refusal(expected, f"#{branch.opening.name}", branch.opening.line)
    first, last = 0, len(condition)
    while last - first >= 2 and condition[first].text == "(" and condition[last - 1].text == ")":
        first, last = first + 1, last - 1

    operands: list[Operand] = []
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
        operands.append(Operand(name, began, at - 1))
        if at == last:
            return operands
        if not take("|", "|"):
            raise stop()


def _no_lookalike(branch: Branch, found: Sequence[Operand], wanted: Sequence[str]) -> None:
    """A name that begins as all the wanted ones do, and is none of them, is not "not named": it is not understood."""
    beginning = os.path.commonprefix(list(wanted))  # noqa: RUF071 - of names, letter by letter: no paths here
    for operand in found:
        if operand.name.startswith(beginning) and operand.name not in wanted:
            line = branch.condition[operand.first].line
            raise Refusal(f"no {beginning}… but {' or '.join(wanted)}", operand.name, line, operand.name)
