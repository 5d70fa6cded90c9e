"""Inputs that a kernel's machine code itself suggests: its immediates, and the values beside them.

Code that treats one input differently compares it with an immediate, or with one that it computes from a few. Where not
all inputs of a kernel run, these run beside the others. All constants of an executed kernel are immediates: a constant
bank other than that of the launch is refused.
"""

import struct
from collections.abc import Iterable, Iterator
from math import isfinite

from fp4patch.sass.listing import Integer, Listing, Real

_MOST = {64: 8192}
"""Values of a width, 2048 of any other. Those beside the immediates come first, then those of shifts and divisions."""
_LEAST = 1e-45
"""Factors below it are no floats."""


def corners(listing: Listing, bits: int) -> tuple[int, ...]:
    """Return the immediates as inputs of so many bits, each with the two beside it, negated, and with its sign flipped.

    Where the code shifts or multiplies, the inputs that become an immediate are among them.
    """
    whole, reals = _integers(listing), _reals(listing)
    integers = list(dict.fromkeys(part & 0xFFFF_FFFF for one in whole for part in (one, one >> 32)))
    values = [*integers, *(pattern for one in reals for pattern in _patterns(one, bits))]
    if bits == 16:
        values += [one >> 16 for one in values]
    if bits == 64:
        words = dict.fromkeys(one & 0xFFFF_FFFF for one in values)
        values = [*whole, *values, *(high << 32 | low for high in words for low in words)]
    by = [one for one in integers if 0 < one < bits]
    by += [one.bit_length() - 1 for one in integers if 1 < one < 1 << bits and one.bit_count() == 1]
    moved = (there for one in values for count in dict.fromkeys(by) for there in _shifted(one, count, bits))
    products = [*reals, *(one for word in integers if isfinite(one := _single(word)))]
    quotients = [one / other for one in products for other in reals if abs(other) > _LEAST]
    divided = [pattern for one in quotients for pattern in _patterns(one, bits)]
    found = dict.fromkeys((*_near(values, bits), *moved, *_near(divided, bits)))
    return tuple(one for one in found if not one >> bits)[: _MOST.get(bits, 2048)]


def _near(values: Iterable[int], bits: int) -> Iterator[int]:
    """Yield the values themselves first, then what is beside them."""
    mask, signs = (1 << bits) - 1, (0, 1 << bits - 1)
    known = tuple(dict.fromkeys(values))
    for by in (0, 1, -1):
        yield from ((one + by ^ sign) & mask for value in known for one in (value, -value) for sign in signs)


def _shifted(value: int, count: int, bits: int) -> tuple[int, ...]:
    """Return inputs that a shift by so many bits makes a value of."""
    mask = (1 << bits) - 1
    return value << count & mask, (value << count | (1 << count) - 1) & mask, (value & mask) >> count


def _integers(listing: Listing) -> list[int]:
    operands = (operand for one in listing.instructions for operand in one.operands)
    return list(dict.fromkeys(operand.value for operand in operands if isinstance(operand, Integer)))


def _reals(listing: Listing) -> list[float]:
    operands = (operand for one in listing.instructions for operand in one.operands)
    texts = dict.fromkeys(operand.text for operand in operands if isinstance(operand, Real))
    return [float(one) for one in texts if not one.endswith("QNAN")]


def _single(word: int) -> float:
    (number,) = struct.unpack("<f", struct.pack("<I", word))
    return float(number)


def _patterns(value: float, bits: int) -> Iterator[int]:
    """Yield the bits of a number in each format of a width, as far as it has it."""
    for form in {16: "e", 64: "d"}.get(bits, "f"), "f":
        try:
            (pattern,) = struct.unpack(f"<{form.replace('e', 'H').replace('f', 'I').replace('d', 'Q')}",
                                       struct.pack(f"<{form}", value))  # fmt: skip
        except OverflowError:
            continue
        yield pattern
