"""Search for conversions to E2M1 that no edit is for: by the instruction in a string, or by NVIDIA's own functions."""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Annotated

from packaging.version import Version

from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.core.table import SOME, Globs, Identifier
from fp4patch.cxx.condition import holds
from fp4patch.cxx.literals import string
from fp4patch.cxx.text import GAP
from fp4patch.cxx.tokens import Kind, Source, Token, lex
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import PatchedTree, Place, Search
from fp4patch.edits.placement import enclosing
from fp4patch.edits.promise import Promise

BY_FUNCTION = "NVIDIA's function, which uses the instruction where a target has it: no edit is for it"
BY_INSTRUCTION = "a conversion to E2M1 that no edit is for: it needs a target that has the instruction"
_FUNCTION = re.compile(r"__nv_cvt_(?:float|double|halfraw|bfloat16raw)2?_to_fp4(?:x2)?")
_TYPE = re.compile(r"__nv_fp4(?:x[24])?_e2m1")
_INSTRUCTION = re.compile(r"e2m1x[0-9]\.")
"""A conversion to E2M1 in PTX: in one from E2M1 the format comes last."""
_MNEMONIC = "e2m1x"
_APART_WORDS = tuple(
    (_MNEMONIC[:first] + quote, quote + _MNEMONIC[last:])
    for quote in "\"'"
    for first in range(1, len(_MNEMONIC))
    for last in range(first, len(_MNEMONIC))
) + tuple((_MNEMONIC + quote,) for quote in "\"'")
"""The first and the last part of the mnemonic, where it is in several literals."""
_ESCAPED = tuple(
    f"\\{form}" for letter in _MNEMONIC for form in (f"x{ord(letter):x}", f"x{ord(letter):X}", f"{ord(letter):03o}")
)


def _disguised() -> re.Pattern[bytes]:
    """Return the mnemonic with its number. Its letters may be escaped; between two a literal may end, and one begin."""
    between = r"(?:[\"'][^\"'\n;]{0,9}\s*[\"'])?"
    letters = (
        rf"(?:{letter}|\\x0*(?i:{ord(letter):x})|\\0*{ord(letter):o}|\\[uU]0*(?i:{ord(letter):x})|\\[uxo]\{{\w*\}})"
        for letter in _MNEMONIC
    )
    return re.compile(between.join([*letters, r"(?:[0-9]|\\x0*3[0-9]|\\0*6[0-7])"]).encode())


_DISGUISED = _disguised()


def _is_disguised(content: bytes) -> bool:
    """Tell whether a text may have the mnemonic other than as it is."""
    return any(len(found[0]) > len(_MNEMONIC) + 1 for found in _DISGUISED.finditer(content))


DISGUISED = Look(words_of(*_APART_WORDS, *([escaped] for escaped in _ESCAPED)), _is_disguised)
"""Passes every file in which a conversion is written in another way than as one literal without escapes."""
PUT_TOGETHER = Look(words_of(["e2m1x{"], ["e2m1x%"], ["e2m1{"], ["e2m1%"]), others=(DISGUISED,))
"""What passes files in which no literal may have the mnemonic as it is."""
INSTRUCTIONS = Look(
    words_of(["e2m1x"]),
    re.compile(rb"e2m1x(?<!_e2m1x)[0-9](?![ \t])").search,
    (PUT_TOGETHER,),
)
"""Passes every file with a conversion to E2M1: ``cvt.rn.satfinite.e2m1x2.f32``, and not ``cvt.rn.f16x2.e2m1x2 h``."""
_CALL = re.compile(
    r"static_cast < __nv_fp4|__nv_cvt_\w+_to_fp4(?:x2)? \(|__nv_fp4(?:x[24])?_e2m1 (?:[({]|\w+ [({=])".replace(
        " ", GAP
    ).encode()
)
"""``static_cast<__nv_fp4…``, ``__nv_cvt_…_to_fp4x2(…``, ``__nv_fp4_e2m1(…``, ``__nv_fp4_e2m1 x = …``."""
CALLS = Look(words_of(["__nv_cvt_", "_to_fp4"], ["__nv_fp4", "_e2m1"]), _CALL.search)
"""Passes every file with a call of one of NVIDIA's functions, also as the construction of a value."""
_ALIASES = Look(words_of(["__nv_fp4", "using"], ["__nv_fp4", "typedef"], ["__nv_fp4", "define"]))
EITHER = INSTRUCTIONS._replace(others=(*INSTRUCTIONS.others, CALLS, _ALIASES))


@dataclass(frozen=True, kw_only=True)
class Conversions(Promise):
    """Conversions to E2M1 that the patch is about; each other one of the tree is a remainder, named with its place."""

    files: Globs
    """Files with conversions that the patch knows."""
    under: Annotated[tuple[Identifier, ...], SOME]
    """Macros one of which each such conversion is under: ``#if defined(MACRO)``."""

    def searches(self, language: str, _version: Version | None, /) -> Iterator[Search]:
        """Yield the search for the other conversions."""
        if language == "c++":
            yield Search(EITHER, self._others)

    def _others(self, _tree: PatchedTree, file: str, text: str, /) -> Iterator[Place]:
        return outside(text, {*self.under} if glob(self.files).fullmatch(file) else set())


def calls(text: str) -> Iterator[Place]:
    """Yield each live call of NVIDIA's functions, also as the construction of a value."""
    return (place for place in outside(text, set()) if place.because == BY_FUNCTION)


def disguised(text: str) -> Iterator[Place]:
    """Yield each live conversion whose instruction no literal has as it is: in two of them, or with escapes."""
    source = lex(text)
    for at in [at for at, word in enumerate(source.words) if word[-1] == '"']:
        value = _joined(source.words, at)
        if _INSTRUCTION.search(value) and source.is_live(source.starts[at]):
            token = source.token(at)
            behind = source.words[at : at + 40]
            if not any(_INSTRUCTION.search(word) for word in behind if word[-1] == '"'):
                yield Place(token.line, " ".join(token.text.split())[:80], BY_INSTRUCTION)


def outside(text: str, macros: Set[str]) -> Iterator[Place]:
    """Yield each live conversion that is not under ``#if defined(MACRO)`` or ``#ifdef MACRO`` of one of the macros."""
    try:
        source = lex(text)
        aliases = _aliases(source.words)
        for at in [at for at, word in enumerate(source.words) if word[-1] == '"' or "_fp4" in word or word in aliases]:
            token = source.token(at)
            is_call = _is_call(source, at, aliases)
            is_instruction = token.kind is Kind.STRING and _INSTRUCTION.search(_joined(source.words, at))
            if (is_call or is_instruction) and source.is_live(token.start) and not _is_under(source, token, macros):
                found = token.text if is_call else " ".join(token.text.split())[:80]
                yield Place(token.line, found, BY_FUNCTION if is_call else BY_INSTRUCTION)
    except LexError as error:
        yield Place(error.line, error.message, BY_FUNCTION)


def _joined(words: Sequence[str], at: int) -> str:
    """Return the value of the literals that begin here; none of one that goes on another."""
    if at and words[at - 1][-1] == '"' and len(words[at - 1]) > 1:
        return ""
    end = at
    while end < len(words) and words[end][-1] == '"' and len(words[end]) > 1:
        end += 1
    return string(words[at:end])


def _aliases(words: Sequence[str]) -> Set[str]:
    """Return the names that a text gives NVIDIA's types: ``using fp4 = __nv_fp4x4_e2m1;``."""
    aliases = set()
    for at, word in enumerate(words):
        if "__nv_fp4" not in word or not _TYPE.fullmatch(word):
            continue
        first = at - 2 if words[max(0, at - 2) : at] == (":", ":") else at
        if words[max(0, first - 3) : max(0, first - 2)] == ("using",) and words[first - 1] == "=":
            aliases.add(words[first - 2])
        elif words[max(0, first - 1) : first] == ("typedef",) and words[at + 2 : at + 3] == (";",):
            aliases.add(words[at + 1])
        elif words[max(0, first - 2) : max(0, first - 1)] == ("define",):
            aliases.add(words[first - 1])
    return aliases


def _is_call(source: Source, at: int, aliases: Set[str] = frozenset()) -> bool:
    """Tell whether a call begins here: ``f(…)``, ``T{…}``, ``T x(…)``, ``T x = …`` or ``static_cast<T>(…)``."""
    words, word = source.words, source.words[at]
    if not word.startswith("__nv_") and word not in aliases:
        return False
    behind: Sequence[str] = words[at + 1 : at + 3]
    if word in aliases or _TYPE.fullmatch(word):
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
