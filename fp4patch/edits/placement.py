"""Positions of inline-assembly statements, positions in their file for insertions, and the gates around them.

A gate is a condition that chooses between an instruction and an error: ``#if HAS_IT``, ``if constexpr (has_it)``. With
software beside the instruction each target has one of the two, and the condition has nothing left to decide. It is
opened: its old operands remain, after a ``true``.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fp4patch.core.arch import Arch
from fp4patch.cxx.text import BOM, COMMENT
from fp4patch.cxx.tokens import CONTINUES, OPENS, Conditional, Directive, Kind, Source, Token, words
from fp4patch.edits.asm import Statement
from fp4patch.edits.refusal import Refusal

_GB10 = Arch(12, 1)
_BEFORE_STATEMENT = frozenset({"{", "}", ";", ")", ":", "else", "do"})

_WITHIN_LINE = re.compile(rf"{COMMENT.pattern}|\\[ \t]*\r?\n", re.DOTALL)
THEIRS = "take the tree as upstream released it, or leave this patch out"


class Placement:
    """Parentheses and conditionals around each token. An ``#else`` starts from the depth that its ``#if`` had."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parentheses: list[int] = []
        depth = 0
        at_if: list[int] = []
        for at, (word, directive) in enumerate(zip(source.words, source.directive_of, strict=True)):
            if directive < 0:
                depth += (word == "(") - (word == ")")
            elif source.starts[at] == source.directives[directive].start:
                name = source.directives[directive].name
                if name in OPENS:
                    at_if.append(depth)
                elif name in CONTINUES:
                    depth = at_if[-1]
                elif name == "endif":
                    at_if.pop()
            self.parentheses.append(depth)

    def check(self, statement: Statement, guard: str) -> None:
        """Refuse places for which directives are impossible or that are guarded already."""
        before = self.source.before(statement.first)
        if before is None or before.text not in _BEFORE_STATEMENT:
            found = f"`{before.text}`" if before else "the start of the file"
            raise Refusal("a statement behind a statement", found, statement.line)
        if self.parentheses[statement.first]:
            raise Refusal("a statement outside parentheses", "one that may be a macro's argument", statement.line)
        for conditional, _ in enclosing(self.source, statement.start):
            opening = conditional.branches[0].opening
            conditions = [" ".join(t.text for t in b.condition) for b in conditional.branches]
            ours = (" ".join(words(guard)), " ".join(words(f"!({guard})")))
            if any(condition in ours or _GB10.macros["__CUDA_ARCH__"] in condition.split() for condition in conditions):
                found = f"one in the #{opening.name} of line {opening.line}"
                raise Refusal(
                    f"a conversion that is not guarded for SM{_GB10.number} yet", found, statement.line, advice=THEIRS
                )

    def file_scope(self, limit: int) -> int:
        """Return the offset of a line before ``limit`` at which declarations for the whole file can go.

        Behind the last #include of the leading block, else behind what guards the header, else before the first token.
        """
        source = self.source
        code = zip(source.words, source.directive_of, source.starts, strict=True)
        limit = min(limit, next((start for word, of, start in code if word == "{" and of < 0), limit))
        ranks: list[tuple[int, Directive]] = []
        whole = [c for c in source.conditionals if c.is_include_guard and c.closing.end == source.ends[-1]]
        for directive in source.directives:
            if directive.end > limit or any(c not in whole for c, _ in enclosing(source, directive.start)):
                continue
            once = directive.name == "pragma" and [t.text for t in directive.tokens] == ["once"]
            guards = any(directive is conditional.branches[0].body[0] for conditional in whole)
            if directive.name == "include" or once or guards:
                ranks.append((2 if directive.name == "include" else 1, directive))
        if not ranks:
            start = source.starts[0]
            return max(source.text.rfind("\n", 0, start) + 1, len(BOM) * source.text.startswith(BOM))
        best = max(ranks, key=lambda ranked: (ranked[0], ranked[1].start))[1]
        return self._next_line(best.end)

    def _next_line(self, offset: int) -> int:
        """Return the start of the line behind an offset and behind a comment that begins on its line."""
        following = self.source.starts[bisect_left(self.source.starts, offset) :][:1]
        gap = self.source.text[offset : (*following, len(self.source.text))[0]]
        newline = _WITHIN_LINE.sub(lambda found: " " * len(found[0]), gap).find("\n")
        return offset + newline + 1 if newline >= 0 else len(self.source.text)


def enclosing(source: Source, offset: int) -> list[tuple[Conditional, int]]:
    """Return the conditionals around an offset, outermost first, each with the index of its branch."""
    around = []
    for conditional in source.conditionals:
        if conditional.start < offset < conditional.closing.start:
            starts = [branch.opening.start for branch in conditional.branches]
            around.append((conditional, bisect_right(starts, offset) - 1))
    return around


# --- gates -----------------------------------------------------------------------------------------------------------


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
    code = [at for at in range(statement.first) if source.directive_of[at] < 0]
    depth = 0
    for at in range(len(code) - 1, 5, -1):
        word = source.words[code[at]]
        depth += (word == "}") - (word == "{")
        if depth >= 0:
            continue
        depth = 0  # an opening brace around the statement
        *head, name, closing = map(source.token, code[at - 5 : at])
        if [token.text for token in (*head, closing)] == ["if", "constexpr", "(", ")"] and _is_name((name,)):
            yield Gate(name, None)


def _is_name(condition: Sequence[Token]) -> bool:
    return len(condition) == 1 and condition[0].kind is Kind.NAME
