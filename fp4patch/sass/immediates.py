"""Inputs that a kernel's machine code itself suggests: its immediates, and the values beside them.

Code that treats one input differently compares it with an immediate. Where not all inputs of a kernel run, these run
beside the others. All constants of an executed kernel are immediates: a constant bank other than that of the launch is
refused.
"""

import struct
from collections.abc import Iterator

from fp4patch.sass.listing import Integer, Listing, Real

_MOST = {64: 8192}
"""Values of a width, 2048 of any other: first the immediates, then those beside them."""


def corners(listing: Listing, bits: int) -> tuple[int, ...]:
    """Return the immediates as inputs of so many bits, each with the two beside it, negated, and with its sign flipped.

    Of words, also what a pair of them is in 64 bits, and the upper halves in 16.
    """
    operands = dict.fromkeys(operand for one in listing.instructions for operand in one.operands)
    whole = [operand.value for operand in operands if isinstance(operand, Integer)]
    values = [part & 0xFFFF_FFFF for value in whole for part in (value, value >> 32)]
    reals = [operand.text for operand in operands if isinstance(operand, Real) and not operand.text.endswith("QNAN")]
    values += [pattern for text in reals for pattern in _patterns(float(text), bits)]
    if bits == 16:
        values += [value >> 16 for value in values]
    if bits == 64:
        words = dict.fromkeys(value & 0xFFFF_FFFF for value in values)
        values = [*whole, *values, *(high << 32 | low for high in words for low in words)]
    mask, signs = (1 << bits) - 1, (0, 1 << bits - 1)
    near = (
        (one + by ^ sign) & mask
        for by in (0, 1, -1)
        for value in dict.fromkeys(values)
        for one in (value, -value)
        for sign in signs
    )
    return tuple(dict.fromkeys(near))[: _MOST.get(bits, 2048)]


def _patterns(value: float, bits: int) -> Iterator[int]:
    """Yield the bits of a number in each format of a width, as far as it has it."""
    for form, integer in (*{16: [("e", "H")], 64: [("d", "Q")]}.get(bits, []), ("f", "I")):
        try:
            (pattern,) = struct.unpack(f"<{integer}", struct.pack(f"<{form}", value))
        except OverflowError:
            continue
        yield pattern
