"""Words of translated machine code as functions of a thread's values, bit by bit.

A bit is a decision diagram over *atoms*: bits of one value, and bits of the results of operations that are not followed
further. An atom is the same for each of a thread's values, and the bit has the value's number: two bits with the same
diagram are the same function of their values. A bit of several values, or of something that is no value, is OTHER:
nothing is known about it. A diagram may end there, as where a register is written on a condition.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

NO, YES = 0, 1
"""Diagrams of the two constants."""
_UNKNOWN = 2

_MOST = 2_000
"""Diagrams of one bit; a larger one becomes an atom."""


class Bit(NamedTuple):
    """A function of one of the thread's values."""

    diagram: int
    value: int | None
    """Number of the value; None: the function is constant."""


ZERO, ONE = Bit(NO, None), Bit(YES, None)
OTHER = Bit(_UNKNOWN, None)
"""Depends on several values, or on something else than a value."""

Atom = tuple[Any, ...]
"""``("value", 31)``, a bit of a value; ``("choose", …)``, three diagrams; ``((operation, argument, …), 7)``, a bit of a
result, whose arguments are words of diagrams."""

Word = tuple[Bit, ...]
"""Lowest bit first."""


class TooLargeError(Exception):
    """A diagram has too many parts."""


class Symbols:
    """Diagrams, each of which is made once."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, int]] = [(1 << 60, end, end) for end in (NO, YES, _UNKNOWN)]
        self._ends_unknown = [False, False, True]
        self._known: dict[tuple[int, int, int], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}
        self._atoms: dict[Atom, int] = {}
        self._limit = 0

    # diagrams

    def _part(self, atom: int, without: int, having: int) -> int:
        if without == having:
            return having
        found = self._known.get((atom, without, having))
        if found is None:
            if len(self._parts) >= self._limit:
                raise TooLargeError
            found = self._known[atom, without, having] = len(self._parts)
            self._parts.append((atom, without, having))
            self._ends_unknown.append(self._ends_unknown[without] or self._ends_unknown[having])
        return found

    def _choose(self, test: int, having: int, without: int) -> int:
        """If-then-else of three diagrams."""
        if test in (NO, YES, _UNKNOWN) or having == without:
            return having if test == YES or having == without else without if test == NO else _UNKNOWN
        if having == YES and without == NO:
            return test
        key = (test, having, without)
        if (found := self._chosen.get(key)) is None:
            (a, a_low, a_high), (b, b_low, b_high), (c, c_low, c_high) = map(self._parts.__getitem__, key)
            atom = min(a, b, c)
            low = a_low if a == atom else test, b_low if b == atom else having, c_low if c == atom else without
            high = a_high if a == atom else test, b_high if b == atom else having, c_high if c == atom else without
            found = self._chosen[key] = self._part(atom, self._choose(*low), self._choose(*high))
        return found

    def _atom(self, key: Atom) -> int:
        number = self._atoms.setdefault(key, len(self._atoms))
        self._limit = len(self._parts) + 1
        return self._part(number, NO, YES)

    # bits

    def of_value(self, value: int, bits: int, kind: str = "value") -> Word:
        """Return one of the thread's values. Its highest bit is the first in a diagram: an exponent selects."""
        return tuple(Bit(self._atom((kind, bit)), value) for bit in reversed(range(bits)))[::-1]

    def atoms(self, diagrams: Iterable[int]) -> set[Atom]:
        """Return what diagrams are made of."""
        keys = list(self._atoms)
        ready = list(diagrams)
        seen = {NO, YES, _UNKNOWN}
        while ready:
            one = ready.pop()
            if one not in seen:
                seen.add(one)
                ready += self._parts[one][1:]
        return {keys[self._parts[one][0]] for one in seen - {NO, YES, _UNKNOWN}}

    def made_by(self, diagrams: Sequence[int]) -> Atom | None:
        """Return the operation that made a word, and its arguments; None if the word is not the whole of a result."""
        keys, found = list(self._atoms), set[Atom]()
        for place, one in enumerate(diagrams):
            atom, *sides = self._parts[one]
            key = keys[atom] if sides == [NO, YES] else ()
            if len(key) != 2 or key[1] != place or not isinstance(key[0], tuple):
                return None
            found.add(key[0])
        return found.pop() if len(found) == 1 else None

    def choose(self, test: Bit, having: Bit, without: Bit) -> Bit:
        """If-then-else of three bits."""
        if test.diagram in (NO, YES) or having == without:
            return without if test.diagram == NO else having
        # A register that is written on a condition may have held another value before.
        value = next((bit.value for bit in (test, having, without) if bit.value is not None), None)
        bits = [bit if bit.value in (value, None) else OTHER for bit in (test, having, without)]
        diagrams = tuple(bit.diagram for bit in bits)
        key = ("choose", *diagrams)
        try:
            if key in self._atoms:  # a second attempt would go on where the first one ended
                raise TooLargeError
            self._limit = len(self._parts) + _MOST
            found = self._choose(*diagrams)
        except TooLargeError:
            if any(map(self.is_unknown, bits)):
                return OTHER
            found = self._atom(key)
        return Bit(found, None if found in (NO, YES, _UNKNOWN) else value)

    def is_unknown(self, bit: Bit) -> bool:
        """Return whether a bit may depend on something else than one value."""
        return self._ends_unknown[bit.diagram]

    def invert(self, one: Bit) -> Bit:
        """Return the complement."""
        return self.choose(one, ZERO, ONE)

    def both(self, one: Bit, other: Bit) -> Bit:
        """Return 1 if both are. A 0 decides, whatever the other bit depends on."""
        if ZERO in (one, other):
            return ZERO
        return other if one == ONE else one if other in (ONE, one) else self.choose(one, other, ZERO)

    def either(self, one: Bit, other: Bit) -> Bit:
        """Return 1 if at least one is."""
        if ONE in (one, other):
            return ONE
        return other if one == ZERO else one if other in (ZERO, one) else self.choose(one, ONE, other)

    def differ(self, one: Bit, other: Bit) -> Bit:
        """Return 1 if they are not the same."""
        if ZERO in (one, other):
            return other if one == ZERO else one
        return self.choose(one, self.invert(other), other)

    # words

    def each(self, how: Callable[[Bit, Bit], Bit], one: Word, other: Word) -> Word:
        """Return a word of which each bit is made of the two at its place."""
        return tuple(how(a, b) for a, b in zip(one, other, strict=True))

    def add(self, one: Word, other: Word, carry: Bit = ZERO) -> Word:
        """Return the sum, of as many bits."""
        found = []
        for a, b in zip(one, other, strict=True):
            found.append(self.differ(self.differ(a, b), carry))
            carry = self.either(self.both(a, b), self.both(carry, self.either(a, b)))
        return tuple(found)

    def multiply(self, one: Word, other: Word) -> Word:
        """Return the product, of as many bits; followed only if one factor is a sum of two powers of two."""
        factor, times = (one, other) if number(one) is not None else (other, one)
        known = number(factor)
        if known is None or known.bit_count() > 2:
            return self.made("product", sorted((one, other), key=repr), len(one))
        total: Word = (ZERO,) * len(one)
        for at, bit in enumerate(factor):
            if bit == ONE:
                total = self.add(total, ((ZERO,) * at + times)[: len(one)])
        return total

    def below(self, one: Word, other: Word) -> Bit:
        """Return 1 if one number without sign is less than the other."""
        found = ZERO
        for a, b in zip(one, other, strict=True):
            found = self.choose(self.differ(a, b), b, found)
        return found

    def same(self, one: Word, other: Word) -> Bit:
        """Return 1 if two words are equal."""
        return self.invert(self.any(self.each(self.differ, one, other)))

    def any(self, word: Word) -> Bit:
        """Return 1 if one bit of a word is."""
        found = ZERO
        for bit in word:
            found = self.either(found, bit)
        return found

    def made(self, operation: str, arguments: Sequence[Word], bits: int) -> Word:
        """Return what an operation that is not followed makes of its arguments: a function of their value, if it is
        one."""
        values = {bit.value for word in arguments for bit in word if bit.value is not None}
        if len(values) > 1 or any(self.is_unknown(bit) for word in arguments for bit in word):
            return (OTHER,) * bits
        key = (operation, *(tuple(bit.diagram for bit in word) for word in arguments))
        return tuple(Bit(self._atom((key, bit)), next(iter(values), None)) for bit in range(bits))


def constant(value: int, bits: int) -> Word:
    """Return a number as a word."""
    return tuple(ONE if value >> bit & 1 else ZERO for bit in range(bits))


def number(word: Word) -> int | None:
    """Return the number that a word is, if it is constant."""
    if any(bit not in (ZERO, ONE) for bit in word):
        return None
    return sum(1 << at for at, bit in enumerate(word) if bit == ONE)
