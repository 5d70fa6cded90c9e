"""Search for conversions to E2M1 that no edit is for: by the instruction in a string, or by NVIDIA's own functions."""

import re
from collections.abc import Iterator, Sequence, Set

from fp4patch.edits.condition import holds
from fp4patch.edits.cxx import Kind, Source, Token, lex
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.operation import Place
from fp4patch.edits.placement import enclosing

BY_FUNCTION = "NVIDIA's function, which uses the instruction where a target has it: no edit is for it"
BY_INSTRUCTION = "a conversion to E2M1 that no edit is for: it needs a target that has the instruction"
_FUNCTION = re.compile(r"__nv_cvt_(?:float|double|halfraw|bfloat16raw)2?_to_fp4(?:x2)?")
_TYPE = re.compile(r"__nv_fp4(?:x[24])?_e2m1")
_INSTRUCTION = re.compile(r"e2m1x[0-9]\.")
"""A conversion to E2M1 in PTX: in one from E2M1 the format comes last."""
_NAMED = re.compile(rb"__nv_(?:fp4(?:x[24])?_e2m1|cvt_\w+_to_fp4)").search
_CALL = re.compile(
    rb"static_cast < __nv_fp4|__nv_cvt_\w+_to_fp4(?:x2)? \(|__nv_fp4(?:x[24])?_e2m1 (?:[({]|\w+ [({=])".replace(
        b" ", rb"(?:\s|\\|//[^\n]*+|/\*.*?\*/)*+"
    ),
    re.DOTALL,
).search
may_be_instruction = re.compile(rb"e2m1x(?<!_e2m1x)[0-9](?![ \t])").search
"""Quick look that passes every file with a conversion to E2M1. A pattern that begins with letters is searched ten times
as fast as one that begins with a condition."""


def may_call(content: bytes) -> bool:
    """Pass every file with a call of one of NVIDIA's functions, by a quick look."""
    return bool(_NAMED(content) and _CALL(content))


def may_convert(content: bytes) -> bool:
    """Pass every file with a conversion, by a quick look."""
    return bool(may_be_instruction(content)) or may_call(content)


def calls(text: str) -> Iterator[Place]:
    """Yield each live call of NVIDIA's functions, also as the construction of a value."""
    return (place for place in outside(text, set()) if place.because == BY_FUNCTION)


def outside(text: str, macros: Set[str]) -> Iterator[Place]:
    """Yield each live conversion that is not under ``#if defined(MACRO)`` or ``#ifdef MACRO`` of one of the macros."""
    try:
        source = lex(text)
        for at in [at for at, word in enumerate(source.words) if "e2m1x" in word or "_fp4" in word]:
            token = source.token(at)
            is_call = _is_call(source, at)
            is_instruction = token.kind is Kind.STRING and _INSTRUCTION.search(token.text)
            if (is_call or is_instruction) and source.is_live(token.start) and not _is_under(source, token, macros):
                found = token.text if is_call else " ".join(token.text.split())[:80]
                yield Place(token.line, found, BY_FUNCTION if is_call else BY_INSTRUCTION)
    except LexError as error:
        yield Place(error.line, error.message, BY_FUNCTION)


def _is_call(source: Source, at: int) -> bool:
    """Tell whether a call begins here: ``f(…)``, ``T{…}``, ``T x(…)``, ``T x = …`` or ``static_cast<T>(…)``."""
    words, word = source.words, source.words[at]
    if not word.startswith("__nv_"):
        return False
    behind: Sequence[str] = words[at + 1 : at + 3]
    if _TYPE.fullmatch(word):
        is_cast = words[max(0, at - 2) : at] == ("static_cast", "<")
        declares = len(behind) == 2 and behind[0].isidentifier() and behind[1] in ("(", "{", "=")
        return is_cast or declares or behind[:1] in (("(",), ("{",))
    return _FUNCTION.fullmatch(word) is not None and behind[:1] == ("(",)


def _is_under(source: Source, token: Token, macros: Set[str]) -> bool:
    """Tell whether the token is left out where none of the macros is defined."""

    def value(name: str) -> int | None:
        return 0 if name in macros else None

    for conditional, branch in enclosing(source, token.start):
        opening = conditional.branches[branch].opening
        if holds(opening.name, [word.text for word in opening.tokens], value, value) is False:
            return True
    return False
