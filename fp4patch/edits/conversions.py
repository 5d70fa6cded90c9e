"""Search for conversions to E2M1 in whole files of any language, and the quick looks that come before it.

An opcode that a macro or a program puts together is not found here: the compile and the check of the machine code see
what it becomes.
"""

import re
from collections.abc import Iterator

from fp4patch.edits.asm import CUT
from fp4patch.edits.live_text import Place, Text

OPCODE = re.compile(r"(?:\bcvt\.[\w.:]*)?e2m1x[0-9]\.[\w.:]*")
"""A conversion to E2M1, or the end of one: in a conversion from E2M1 the format comes last."""
CONVERSION = re.compile(CUT.join("2m1x").encode(), re.DOTALL)
"""A quick look for an instruction of E2M1: a string literal may be cut anywhere, even within the name. The ``e`` is
left out: to search for the rarer ``2`` takes half the time."""
_NO_ENCODE = re.compile(rb"_e2m1x[0-9].?\Z|\bcvt(?:\.(?!e2m1)\w+)*+\.e2m1x[0-9][ \t]\Z", re.DOTALL)
"""A name in which the format occurs, or an instruction that has it as its source, in one part."""

in_strings = re.compile(rb"m1x[0-9]\.").search
"""A quick look that passes a file of another language that may hold a conversion."""


def in_other_languages(text: Text) -> Iterator[Place]:
    """Yield each string, or text outside the language, that holds a conversion to E2M1, in code that is not C++."""
    for line, string in text.strings:
        if found := OPCODE.search(string):
            yield Place(line + string.count("\n", 0, found.start()), found[0])


def may_convert(content: bytes) -> bool:
    """Pass each C++ file with an instruction of E2M1, unless all that it has convert from E2M1."""
    return any(
        not _NO_ENCODE.search(content, max(0, found.start() - 65), found.start() + 6)
        for found in CONVERSION.finditer(content)
    )
