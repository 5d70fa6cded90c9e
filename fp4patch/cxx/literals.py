"""What literals of C++ are worth: integers and floating-point numbers by value, strings without their escapes."""

import re
from collections.abc import Iterable

from fp4patch.cxx.text import RAW

_SEPARATORS = str.maketrans("", "", "'")
# Example: 0x78u
_INTEGER = re.compile(r"(?i)(0x[0-9a-f]+|0b[01]+|[0-9]+)[ulz]{0,3}")
# Example: 12.0f
_FLOAT = re.compile(r"(?i)((?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+)(?:f|l|f16|f32|f64|bf16)?")
# Example: u8R"x(
_RAW = re.compile(RAW)
# Example: \\x31
_ESCAPE = re.compile(
    r"""\\(?: x(?:\{(?P<braced>[0-9a-fA-F]+)\}|(?P<hex>[0-9a-fA-F]+))
      | u(?:\{(?P<point>[0-9a-fA-F]+)\}|(?P<short>[0-9a-fA-F]{4})) | U(?P<long>[0-9a-fA-F]{8})
      | o\{(?P<named>[0-7]+)\} | (?P<octal>[0-7]{1,3}) | (?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LONGEST = 100
"""Digits of a number that is read: no type has more."""


def integer(word: str) -> int | None:
    """Return the value of an integer: 120 for ``0x78``, ``0170``, ``0b111'1000`` and ``120ull``; None if it is none."""
    found = _INTEGER.fullmatch(word.translate(_SEPARATORS))
    if not found or len(found[1]) > _LONGEST:
        return None
    digits = found[1].lower()
    is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    try:
        return int(digits, 8) if is_octal else int(digits, 0)
    except ValueError:  # 089
        return None


def number(word: str) -> int | float | None:
    """Return the value of a number; None if it is none that is read."""
    found = _FLOAT.fullmatch(word.translate(_SEPARATORS))
    return float(found[1]) if found and len(word) <= _LONGEST else integer(word)


def string(words: Iterable[str]) -> str:
    """Return the value of string literals that follow each other: ``sm_120`` for ``"sm_" "\\x3120"``."""
    return "".join(map(_one, words))


def _one(word: str) -> str:
    if raw := _RAW.match(word):
        return word[raw.end() : -len(raw["delimiter"]) - 2]
    return _ESCAPE.sub(_character, word[word.index('"') + 1 : -1])


def _character(escape: re.Match[str]) -> str:
    for name, base in (
        ("braced", 16),
        ("hex", 16),
        ("point", 16),
        ("short", 16),
        ("long", 16),
        ("named", 8),
        ("octal", 8),
    ):
        if digits := escape[name]:
            value = int(digits[-_LONGEST:], base)
            return chr(value) if value <= 0x10FFFF else "\ufffd"
    return _CONTROLS.get(escape["other"], escape["other"])
