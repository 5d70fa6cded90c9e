"""Search for conversions to E2M1 in whole files of any language, and the quick looks that come before it."""

import re
from collections.abc import Iterator

from fp4patch.edits.asm import CUT, literal
from fp4patch.edits.cxx import Kind, lex
from fp4patch.edits.lex_error import LexError
from fp4patch.edits.live_text import Place, Text
from fp4patch.edits.ptx import ENCODE, is_encode


def in_other_languages(text: Text) -> Iterator[Place]:
    """Yield each string, or text outside the language, that holds a conversion to E2M1, in code that is not C++."""
    for line, string in text.strings(_PIECES):
        for found in _CONVERSION_IN_STRING.finditer(string):
            opcode = "".join(found[0].split())
            opcode = opcode if "e2m1" in opcode else opcode.replace("Xx", "e2m1x")
            if is_encode(opcode):
                yield Place(line + string.count("\n", 0, found.start()), opcode)
                break


def pasted(text: Text, *, names: bool) -> Iterator[Place]:
    """Yield each opcode that a macro completes, so that it may become a conversion to E2M1.

    A literal ends within it, or it is outside a literal in a ``#define``. ``names``: the format's name is written alone
    somewhere, for a macro to take. Without that only an opcode that has begun to name the format counts.
    """
    try:
        source = lex(text.text)
    except LexError:
        return
    tokens = source.tokens
    for at, token in enumerate(tokens):
        joined = at + 1 < len(tokens) and tokens[at + 1].kind is Kind.STRING
        if token.kind is Kind.STRING and not joined:
            opcode = re.search(r"cvt[\w.:]*$", literal(token))
        elif token.text == "cvt" and token.directive >= 0:
            opcode = re.search(r"cvt[\w.:]*", text.text[token.start : token.end + 80])
        else:
            continue
        if not opcode or not source.is_live(token.start) or not ENCODE.startswith(opcode[0].rstrip(".")):
            continue
        if names or opcode[0].startswith(ENCODE.partition("2m1")[0]):
            yield Place(token.line, f"{opcode[0]}…")


def may_convert(content: bytes) -> bool:
    """Pass each C++ file with an instruction of E2M1, unless all that it has convert from E2M1."""
    return any(_may_encode(content, found.start() - 1) for found in CONVERSION.finditer(content))


def _may_encode(content: bytes, at: int) -> bool:
    """Tell whether a mention of the format may be more than a part of a name, or what is converted from."""
    return not _NO_ENCODE.search(content, max(0, at - 64), at + 7)


def may_be_pasted(content: bytes) -> object:
    """Pass a C++ file that may hold an opcode which a macro completes."""
    return b"cvt" in content and _INCOMPLETE.search(content)


def defines_the_format(content: bytes) -> bool:
    """Pass a file in which a macro is the format's name, or holds it."""
    return b"e2m1" in content and any(
        _DEFINE.search(content, content.rfind(b"\n", 0, found.start()) + 1, found.start())
        for found in _WORD.finditer(content)
    )


def begins_the_format(content: bytes) -> object:
    """Pass a file in which a literal ends within the format's name."""
    return _BEGUN.search(content)


def names_the_format(content: bytes) -> object:
    """Pass a file in which the format's name is written alone, as a macro takes it."""
    return _ALONE.search(content)


OPCODE = re.compile(r"cvt[\w.:]*e2m1x[0-9][\w.:]*")
_BEGUN = re.compile(rb'cvt\.rn\.satfinite\.e[2m1]*"')
_INCOMPLETE = re.compile(rb'cvt[\w.:]*["#]')
_WORD = re.compile(rb"e2m1(?<=\be2m1)\b")
_DEFINE = re.compile(rb"#[ \t]*define")
_ALONE = re.compile(_WORD.pattern + rb"(?!\s*::)")


def in_strings(content: bytes) -> bool:
    """Pass a file of another language that may hold a conversion: in one string, in several, or with a variable."""
    if b"cvt" not in content:
        return False
    if any(_may_encode(content, found.start()) for found in _IN_STRINGS.finditer(content)):
        return True
    return b"e2m1" in content and _WITH_VARIABLE.search(content) is not None


_IN_STRINGS = re.compile(rb"e2[\"'\s\\+()fr]*+m1[\"'\s\\+()fr]*+x")
_PIECES = re.compile(rb"c[\"'\s\\+()fr]*+v[\"'\s\\+()fr]*+t|" + _IN_STRINGS.pattern)
"""The beginning of a conversion in a Python string, and its format."""
_WITH_VARIABLE = re.compile(rb"cvt[^\n]*\}x[0-9]")
CONVERSION = re.compile(CUT.join("2m1x").encode(), re.DOTALL)
"""A quick look for an instruction of E2M1: a string literal may be cut anywhere, even within the name. The ``e`` is
left out: to search for the rarer ``2`` takes half the time."""
_NO_ENCODE = re.compile(rb"_e2m1x[0-9].?\Z|\bcvt(?:\.(?!e2m1)\w+)*+\.e2m1x[0-9][ \t]\Z", re.DOTALL)
"""A name in which the format occurs, or an instruction that has it as its source, in one part."""
_CONVERSION_IN_STRING = re.compile(r"\bcvt(?:\s*\.\s*[\w:]+)*\s*\.\s*(?:e2m1|X)x[0-9](?:\s*\.\s*[\w:]+)*")
"""Conversion in a string. A variable part is an ``X``: in a file that names the format, it may be the format."""
