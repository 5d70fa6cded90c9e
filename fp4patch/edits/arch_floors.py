"""Conditions that keep code from older architectures, ``#if … __CUDA_ARCH__ >= 1000``, and how software gets past them.

Below such a floor nothing is done, or zero is returned, silently: with software in the place of the instruction there
is no reason left for that. A floor whose other branches do the work themselves, or that surrounds assembly of another
kind, is there for a reason of its own.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from fp4patch.core.lex_error import LexError
from fp4patch.cxx.tokens import Branch, Conditional, Source, words
from fp4patch.edits.asm import KEYWORDS, Scan, closing, parse

_IDLE = tuple(
    words(statement)
    for statement in (
        "return;",
        "return 0;",
        "return {};",
        "return nullptr;",
        "__trap();",
        "trap();",
        'asm volatile("trap;");',
        'asm("trap;");',
    )
)
"""Statements in code in which nothing is done."""


def floors(source: Source, floor: str, allows: Sequence[str], found: Scan) -> Iterator[Conditional]:
    """Yield every ``#if`` whose condition is ``floor``, with or without ``defined(__CUDA_ARCH__) &&`` and parentheses,
    that keeps nothing from its other branches but conversions.

    ``allows``: what assembly above it may begin with that is no conversion to E2M1.
    """
    bare = [word for word in words(floor) if word not in "()"]
    forms = (bare, ["defined", "__CUDA_ARCH__", "&", "&", *bare])
    for conditional in source.conditionals:
        condition = conditional.branches[0].condition
        stated = [token.text for token in condition if token.text not in "()"]
        if stated in forms and source.is_live(conditional.start) and _may_open(source, conditional, allows, found):
            yield conditional


def leaves_out(source: Source, conditional: Conditional) -> bool:
    """Return whether a conditional on the architecture has branches in which nothing is done."""
    asks = any(token.text == "__CUDA_ARCH__" for branch in conditional.branches for token in branch.condition)
    others = conditional.branches[1:]
    return asks and bool(others) and all(_is_idle(_code(source, branch)) for branch in others)


def _may_open(source: Source, conditional: Conditional, allows: Sequence[str], found: Scan) -> bool:
    """Return whether its other branches do nothing, and all that it keeps from them is understood."""
    first, *others = conditional.branches
    known = {statement.first for statement in found.encodes}
    begin, end = (bisect_left(source.starts, at) for at in (first.opening.end, first.end))
    for at in range(begin, end):
        if source.words[at] in KEYWORDS and at not in known and not _is_allowed(source, at, allows):
            return False
    return all(_is_idle(_code(source, branch)) for branch in others) if others else _is_whole_body(source, conditional)


def _is_allowed(source: Source, at: int, allows: Sequence[str]) -> bool:
    try:
        statement = parse(source, at)
    except LexError:
        return False
    return statement is not None and any(statement.template.lstrip().startswith(begin) for begin in allows)


def _is_whole_body(source: Source, conditional: Conditional) -> bool:
    """Return whether the body of a function has only this and idle statements after it."""
    code = [at for at, directive in enumerate(source.directive_of) if directive < 0]
    before, after = (
        bisect_left(code, bisect_left(source.starts, at)) for at in (conditional.start, conditional.closing.end)
    )
    if before < 2 or [source.words[at] for at in code[before - 2 : before]] != [")", "{"]:
        return False
    depth, end = 1, after
    while end < len(code):
        depth += (source.words[code[end]] == "{") - (source.words[code[end]] == "}")
        if not depth:
            break
        end += 1
    return _is_idle(tuple([source.words[at] for at in code[after:end]]))


def _code(source: Source, branch: Branch) -> tuple[str, ...]:
    begin, end = (bisect_left(source.starts, at) for at in (branch.opening.end, branch.end))
    return tuple([source.words[at] for at in range(begin, end) if source.directive_of[at] < 0])


def _is_idle(texts: tuple[str, ...]) -> bool:
    """Return whether nothing is done: zero is returned, or the code traps; also under an ``if``, or after a message."""
    while texts:
        size = next((len(idle) for idle in _IDLE if texts[: len(idle)] == idle), 0)
        if not size and texts[0] == "return" and texts[2:5] == ("{", "}", ";"):  # return Type{};
            size = 5
        if not size and texts[:2] in (("printf", "("), ("if", "(")):
            end = closing(texts, 1)
            size = len(texts) if end is None else end + 1 + (texts[0] == "printf")  # with its semicolon
        if not size and texts[0] in "{}":
            size = 1
        if not size:
            return False
        texts = texts[size:]
    return True
