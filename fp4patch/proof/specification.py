"""Specification of float32 to E2M1: intervals of inputs that have one code, computed exactly.

It follows from the magnitudes of E2M1 and the rule for ties alone. In the order of their bits, inputs of one code are
adjacent, so it is a short list.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


def _magnitudes(mantissa: int, exponent: int) -> tuple[float, ...]:
    """Return the magnitudes of a format's codes, by its bits; its bias is that of IEEE 754."""
    one, bias = 1 << mantissa, (1 << exponent - 1) - 1
    codes = ((code % one + one * (code >= one), max(code // one, 1)) for code in range(one << exponent))
    return tuple(fraction * 2.0 ** (power - bias - mantissa) for fraction, power in codes)


FORMATS = {"e2m1": _magnitudes(1, 2), "e2m3": _magnitudes(3, 2), "e3m2": _magnitudes(2, 3)}
"""Formats without NaN and infinity (OCP Microscaling Formats 1.0, 5.3). The greatest code stands for every NaN:
``cvt.rn.satfinite`` does so, and ``__nv_cvt_float_to_fp4`` of ``cuda_fp4.hpp``."""
MAGNITUDES = FORMATS["e2m1"]
"""Values of the codes 0 to 7 (5.3.3)."""

_INFINITY, _SIGN = 0x7F80_0000, 0x8000_0000


class Interval(NamedTuple):
    """Neighbouring float32 bit patterns, both ends included, that have one code."""

    first: int
    last: int
    code: int


def specification(form: str = "e2m1") -> tuple[Interval, ...]:
    """Float32 to E2M1, or FP6, as intervals of bit patterns, ascending, that together hold all 2^32.

    Round to nearest, ties to even, saturated at the greatest magnitude, -0 kept, every NaN to the greatest.
    """
    magnitudes = FORMATS[form]
    greatest, sign = len(magnitudes) - 1, len(magnitudes)
    positive: list[Interval] = []
    for code, last in enumerate(_last_of_code(magnitudes)):
        positive.append(Interval(positive[-1].last + 1 if positive else 0, last, code))
    negative = [Interval(first | _SIGN, last | _SIGN, code | sign) for first, last, code in positive]
    nans = [Interval((_INFINITY | bit) + 1, _SIGN - 1 | bit, greatest) for bit in (0, _SIGN)]
    return (*positive, nans[0], *negative, nans[1])


def interval_lines(form: str = "e2m1") -> str:
    """Return the specification as lines of a C initializer: first, last, code."""
    return "".join(f"{{{first:#x}, {last:#x}, {code}}},\n" for first, last, code in specification(form))


def _last_of_code(magnitudes: Sequence[float]) -> Iterator[int]:
    """For each code, the bits of the greatest positive float32 that rounds to it."""
    for code, (below, above) in enumerate(pairwise(magnitudes)):
        (border,) = struct.unpack("<I", struct.pack("<f", (below + above) / 2))  # a float32 of few bits: exact
        yield border - code % 2  # a tie goes to the even code
    yield _INFINITY
