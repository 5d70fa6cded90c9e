"""Conditions that choose between an instruction and an error: ``#if HAS_IT``, ``if constexpr (has_it)``.

With software beside the instruction each target has one of the two, and the condition has nothing left to decide. It is
opened: its old operands remain, after a ``true``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fp4patch.edits.asm import Statement
from fp4patch.edits.cxx import Conditional, Kind, Source, Token
from fp4patch.edits.placement import enclosing
from fp4patch.edits.refusal import Refusal


class Gate(NamedTuple):
    """A condition that is one name, around a statement."""

    name: Token
    conditional: Conditional | None
    """The ``#if``; None of an ``if constexpr``."""

    @property
    def opening(self) -> str:
        """Text that is inserted before the name."""
        return "1 || " if self.conditional else "true || "


def gates(source: Source, statement: Statement, names: Sequence[str]) -> Iterator[Gate]:
    """Yield the gates around a statement, of the names that an edit opens. A refusal if there is another one too."""
    for gate in _around(source, statement):
        if gate.name.text in names:
            yield gate
        elif not gate.conditional or len(gate.conditional.branches) > 1:
            expected = f"a conversion under one of {', '.join(names)}"
            raise Refusal(expected, f"one under `{gate.name.text}` (line {gate.name.line})", statement.line)


def _around(source: Source, statement: Statement) -> Iterator[Gate]:
    for conditional, branch in enclosing(source, statement.start):
        condition = conditional.branches[0].condition
        if branch == 0 and conditional.branches[0].opening.name == "if" and _is_name(condition):
            yield Gate(condition[0], conditional)
    code = [token for token in source.tokens[: statement.first] if token.directive < 0]
    depth = 0
    for at in range(len(code) - 1, 5, -1):
        depth += (code[at].text == "}") - (code[at].text == "{")
        if depth >= 0:
            continue
        depth = 0  # an opening brace around the statement
        opening, name, closing = code[at - 3 : at]
        head = [token.text for token in code[at - 5 : at - 3]]
        if [*head, opening.text, closing.text] == ["if", "constexpr", "(", ")"] and _is_name((name,)):
            yield Gate(name, None)


def _is_name(condition: Sequence[Token]) -> bool:
    return len(condition) == 1 and condition[0].kind is Kind.NAME
