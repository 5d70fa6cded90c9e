"""Specification of float32 to E2M1: intervals of inputs that have one code, computed with exact fractions.

It follows from the magnitudes of E2M1 and the rule for ties alone. In the order of their bits, inputs of one code are
adjacent, so it is a short list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

MAGNITUDES = tuple(Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12))
"""Values of the codes 0 to 7 (OCP Microscaling Formats 1.0, 5.3.3)."""


def _small(mantissa: int, bias: int, codes: int) -> tuple[Fraction, ...]:
    """Magnitudes of a format's codes: bits of mantissa, and the exponent's bias."""
    one = 1 << mantissa
    return tuple(
        Fraction((code % one) + (one if code >= one else 0)) * Fraction(2) ** (max(code // one, 1) - bias - mantissa)
        for code in range(codes)
    )


FORMATS = {"e2m1": MAGNITUDES, "e2m3": _small(3, 1, 32), "e3m2": _small(2, 3, 32)}
"""Formats without NaN and infinity (OCP Microscaling Formats 1.0, 5.3). The greatest code stands for every NaN:
``cvt.rn.satfinite`` does so, and ``__nv_cvt_float_to_fp4`` of ``cuda_fp4.hpp``."""

_INFINITY, _SIGN, _ALL = 0x7F80_0000, 0x8000_0000, 0xFFFF_FFFF


class InputClass(StrEnum):
    """Classes of float32 inputs that encoders are known to treat differently."""

    ZERO = "+0"
    NEGATIVE_ZERO = "-0"
    FINITE = "finite"
    """Finite numbers without the zeros."""
    INFINITE = "infinity"
    NAN = "+NaN"
    """Quiet and signalling NaNs with any payload and a clear sign bit."""
    NEGATIVE_NAN = "-NaN"


@dataclass(frozen=True)
class Interval:
    """Neighbouring float32 bit patterns, both ends included, that have one code."""

    first: int
    last: int
    code: int
    cls: InputClass


def magnitude(bits: int) -> Fraction:
    """Return the exact value of a finite float32, sign ignored, from its bits."""
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7F_FFFF
    if exponent == 0:
        return Fraction(fraction, 1 << 149)
    return Fraction((1 << 23 | fraction) << exponent, 1 << 150)


def specification(form: str = "e2m1") -> tuple[Interval, ...]:
    """Float32 to E2M1, or FP6, as intervals of bit patterns, ascending, that together hold all 2^32.

    Round to nearest, ties to even, saturated at the greatest magnitude, -0 kept, every NaN to the greatest.
    """
    magnitudes = FORMATS[form]
    greatest, sign = len(magnitudes) - 1, len(magnitudes)
    positive: list[Interval] = [Interval(0, 0, 0, InputClass.ZERO)]
    for code, last in enumerate(_last_of_code(magnitudes)):
        positive.append(Interval(positive[-1].last + 1, last, code, InputClass.FINITE))
    positive.append(Interval(_INFINITY, _INFINITY, greatest, InputClass.INFINITE))
    mirrored = {InputClass.ZERO: InputClass.NEGATIVE_ZERO}
    negative = [Interval(i.first | _SIGN, i.last | _SIGN, i.code | sign, mirrored.get(i.cls, i.cls)) for i in positive]
    return (
        *positive,
        Interval(_INFINITY + 1, _SIGN - 1, greatest, InputClass.NAN),
        *negative,
        Interval((_INFINITY | _SIGN) + 1, _ALL, greatest, InputClass.NEGATIVE_NAN),
    )


def interval_lines(form: str = "e2m1") -> str:
    """Return the specification as lines of a C initializer: first, last, code, and the number of the class."""
    classes = tuple(InputClass)
    return "".join(f"{{{i.first:#x}, {i.last:#x}, {i.code}, {classes.index(i.cls)}}},\n" for i in specification(form))


def _last_of_code(magnitudes: Sequence[Fraction]) -> Iterable[int]:
    """For each code, the bits of the greatest positive float32 that rounds to it."""
    for code in range(len(magnitudes) - 1):
        border = (magnitudes[code] + magnitudes[code + 1]) / 2
        # A tie goes to the even code. Bits of positive floats are in the order of their values: bisect.
        tie_is_ours = code % 2 == 0
        low, high = 0, _INFINITY - 1
        while low < high:
            middle = (low + high + 1) // 2
            value = magnitude(middle)
            if value < border or (tie_is_ours and value == border):
                low = middle
            else:
                high = middle - 1
        yield low
    yield _INFINITY - 1
