"""Prove from the machine code that stochastic rounding is right for all inputs if it is for those that run.

A code must be the same function, in each lane, of the lane's own value and of its own random byte. It must not fall as
the byte grows. A float32 must come in through products with constants and one conversion to half precision toward zero
alone, which are monotone: then all floats with the same half have the same code. So the least and the greatest float
of each half decide, with the bytes on both sides of their threshold, and with the least and the greatest byte.
"""

from collections.abc import Sequence

import numpy as np

from fp4patch.catalog.probe import Executes, stored_bits
from fp4patch.sass.bit_functions import NO, OTHER, YES, ZERO, Atom, Symbols, Word, constant
from fp4patch.sass.flow import Flow
from fp4patch.sass.lane_equality import codes
from fp4patch.sass.listing import Listing

SCALE = 2.0**-14
"""Factor by which the encoder brings a value to the range of subnormal halves."""
FROM = (8, 6)
"""Compute capability from which the encoder has this form: its minimum of halves with a sign came with it. The form
before it compares a value's bits, and nothing is proven of it."""
_ONE = 0x3F80_0000  # bits of 1 as a float
_PLACES = (0, 2, 1, 3)
"""Value of each byte of a random word (PTX ISA, ``cvt``, the figure of the random bits for ``.e2m1x4``)."""


def doubt(listing: Listing, graph: Flow, executes: Executes) -> str:
    """Return the reason why the inputs that run do not decide about all others; empty if they do.

    NotFollowedError if a code depends on more than its value and its random byte.
    """
    symbols = Symbols()
    values = [symbols.of_value(lane, executes.bits) for lane in range(executes.lanes)]
    least = [symbols.of_value(lane, 8, "random") for lane in range(executes.lanes)]
    next_ = [symbols.add(byte, constant(1, 8)) for byte in least]
    low, high = (_followed(listing, graph, executes, symbols, values, random) for random in (least, next_))
    kinds = len(executes.factors) or 1
    for lane, code in enumerate(low):
        if [bit.diagram for bit in code] != [bit.diagram for bit in low[lane % kinds]]:
            return f"code {lane} is not the function that code {lane % kinds} is"
    for lane in range(kinds):
        last = symbols.same(least[lane], constant(255, 8))
        one, other = low[lane], high[lane]
        falls = symbols.either(symbols.below(other[:3], one[:3]), symbols.differ(other[3], one[3]))
        if symbols.both(symbols.invert(last), falls) != ZERO:
            return "a code may fall as its random byte grows"
        factors = [*executes.factors[lane : lane + 1], SCALE]
        if executes.bits == 32 and (found := _entered(symbols, one, values[lane], factors)):
            return found
    return ""


def _followed(
    listing: Listing,
    graph: Flow,
    executes: Executes,
    symbols: Symbols,
    values: Sequence[Word],
    random: Sequence[Word],
) -> tuple[Word, ...]:
    """Return the code of each lane for these values and random bytes."""
    count = -(-executes.lanes // 4) * 4
    places = [first + place for first in range(0, count, 4) for place in _PLACES]
    words = [random[at] if at < executes.lanes else (OTHER,) * 8 for at in places]
    record = tuple(bit for word in (*values, *words) for bit in word)
    return codes(listing, graph, symbols, record, lanes=executes.lanes, stored=stored_bits(executes.output))


def _entered(symbols: Symbols, code: Word, value: Word, factors: Sequence[float]) -> str:
    """Return how a float comes into a code otherwise than by its half, if it does."""
    bits, seen = np.array(factors, dtype=np.float32).view(np.uint32).tolist(), set[Atom]()
    ready = symbols.atoms(bit.diagram for bit in code)
    while ready:
        atom = ready.pop()
        kind, *rest = atom
        if atom in seen or kind == "random":
            continue
        seen.add(atom)
        if kind == "value":
            return f"bit {rest[0]} of a value decides about its code"
        if kind == "choose":
            ready |= symbols.atoms(rest)
        elif kind[0] != "halves_toward_zero":
            ready |= symbols.atoms(diagram for word in kind[1:] for diagram in word)
        elif _products(symbols, kind[1], value) != bits:
            return "its half is not that of the value times its factors"
    return ""


def _products(symbols: Symbols, diagrams: Sequence[int], value: Word) -> list[int] | None:
    """Return the bits of the constants by which a value was multiplied; None if something else was done."""
    if list(diagrams) == [bit.diagram for bit in value]:
        return []
    operation, *arguments = symbols.made_by(diagrams[:31]) or ("",)
    if operation == "flush":
        return _products(symbols, [*arguments[0][:31], diagrams[31]], value)
    if operation != "fmul" or symbols.made_by(diagrams) is None:
        return None
    constants = [word for word in arguments if all(diagram in (NO, YES) for diagram in word)]
    others = [word for word in arguments if word not in constants]
    if len(constants) != 1 or (before := _products(symbols, others[0], value)) is None:
        return None
    by = sum(1 << at for at, diagram in enumerate(constants[0]) if diagram == YES)
    return [*before, by] if by != _ONE else before
