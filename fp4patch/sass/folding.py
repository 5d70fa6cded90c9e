"""Expressions of instructions on words of symbols, bit by bit.

A function that moves bits, or that does the same to both halves of a word, is followed; any other is an operation of
which only the arguments are known.
"""

from collections.abc import Callable, Mapping

from fp4patch.sass.bit_functions import ONE, OTHER, ZERO, Bit, Symbols, Word, constant, number
from fp4patch.sass.expressions import FUNCTIONS, Function, Op


class NotFollowedError(Exception):
    """Code whose effect on the thread's values is not followed."""


class Folder:
    """Folds the expressions of one instruction: ``registers`` are their values before it."""

    def __init__(
        self,
        symbols: Symbols,
        registers: Callable[[str], Word],
        *,
        constants: Callable[[int], Word],
        load: Callable[[Word, int], Word],
        index: Word = (OTHER,) * 32,
    ) -> None:
        self._symbols = symbols
        self._registers = registers
        self._constants = constants
        """Word at an offset of constant bank 0."""
        self._load = load
        """Word of so many bits at an address."""
        self._index = index
        self._known: dict[Op, Word] = {}

    def word(self, op: Op) -> Word:
        """Return an operation's value; NotFollowedError if it is not followed."""
        if op not in self._known:
            found = self._leaf(op)
            self._known[op] = self._value(op) if found is None else found
        return self._known[op]

    def truth(self, op: Op) -> Bit:
        """Return whether a value is not zero."""
        return self._symbols.any(self.word(op))

    def _leaf(self, op: Op) -> Word | None:
        first = op.arguments[0] if op.arguments else None
        if op.name == "number" and isinstance(first, int):
            return constant(first, op.bits)
        if op.name == "register" and isinstance(first, str):
            return self._registers(first)[: op.bits]
        if op.name == "constant" and isinstance(first, int):
            return self._constants(first)
        if op.name == "index":
            return self._index
        return (OTHER,) * op.bits if op.name == "poison" else None

    def _value(self, op: Op) -> Word:
        operands = [self.word(one) for one in op.operands]
        if op.name in FUNCTIONS:
            return self._called(FUNCTIONS[op.name], operands)
        symbols, bits = self._symbols, op.bits
        if op.name in _COMPARISONS:
            # In C, too, a value of few bits has no sign.
            width = max(32 if op.name == "less_signed" else 1, *map(len, operands))
            return (self._compared(op.name, *(extended(word, width) for word in operands)),)
        if op.name == "select":
            test = symbols.any(operands[0])
            return symbols.each(lambda a, b: symbols.choose(test, a, b), *(extended(w, bits) for w in operands[1:]))
        if op.name in _MOVES:
            count = next((one for one in op.arguments if isinstance(one, int)), 0)
            return _MOVES[op.name](operands, bits, count)
        one, other = (*(extended(word, bits) for word in operands), (ZERO,) * bits)[:2]
        words: Mapping[str, Callable[[], Word]] = {
            "and": lambda: symbols.each(symbols.both, one, other),
            "or": lambda: symbols.each(symbols.either, one, other),
            "xor": lambda: symbols.each(symbols.differ, one, other),
            "not": lambda: tuple(map(symbols.invert, one)),
            "add": lambda: symbols.add(one, other),
            "subtract": lambda: symbols.add(one, tuple(map(symbols.invert, other)), ONE),
            "multiply": lambda: symbols.multiply(one, other),
        }
        return words[op.name]()

    def _compared(self, name: str, one: Word, other: Word) -> Bit:
        symbols = self._symbols
        if name == "equal":
            return symbols.same(one, other)
        if name == "less_signed":  # the order of signed numbers is that of the others with the sign inverted
            one, other = ((*word[:-1], symbols.invert(word[-1])) for word in (one, other))
        return symbols.below(one, other)

    # functions

    def _called(self, function: Function, words: list[Word]) -> Word:
        name = function.name
        if name.startswith("load_"):
            return self._load(words[0], function.bits)
        if name == "aligned":
            return words[0]
        if function.grid:
            raise NotFollowedError(name)
        if function.packs:
            return self._made(function, [words[1]], 16) + self._made(function, [words[0]], 16)
        if count := function.halves:
            parts = [[*(word[at : at + 16] for word in words[:count]), *words[count:]] for at in (0, 16)]
            return self._made(function, parts[0], 16) + self._made(function, parts[1], 16)
        moved = self._moved(name, [extended(word, max(32, len(word))) for word in words]) if function.moves else None
        return self._made(function, words, function.bits) if moved is None else moved

    def _made(self, function: Function, words: list[Word], bits: int) -> Word:
        name = function.name
        if name == "flush":  # keeps the sign
            return (*self._symbols.made(name, [(*words[0][:31], ZERO)], 31), words[0][31])
        if name == "fmul" and any(number(word) is not None and word[31] == ONE for word in words):
            words = [(*word[:31], self._symbols.invert(word[31])) for word in words]
        return self._symbols.made(name, sorted(words, key=repr) if function.commutes else words, bits)

    def _moved(self, name: str, words: list[Word]) -> Word | None:  # noqa: PLR0911 - one return a function
        """Return the result of a function that moves bits; None if it does so by a number that is not known."""
        if name == "permute":
            return self._permuted(words)
        if name == "pack":
            return extended(words[0], 16) + extended(words[1], 16)
        if name == "hmnmx2_xorsign":
            return self._minimum(words, 0) + self._minimum(words, 16)
        first, by = number(words[0]), number(words[1])
        if by is None:
            return None
        if name == "count":
            return None if first is None else constant(min(first, by), 32)
        if name == "shift_word_left":
            return ((ZERO,) * min(by, 32) + words[0])[:32]
        if name.startswith("shift_word_"):
            fill = words[0][31] if name == "shift_word_signed" else ZERO
            return (words[0][min(by, 32) :] + (fill,) * 32)[:32]
        pair, by, upper = words[0] + words[2], min(by, 64), number(words[3])
        if name == "shift_left":
            moved = ((ZERO,) * by + pair)[:64]
        else:
            moved = (pair[by:] + (words[2][31] if number(words[4]) else ZERO,) * 64)[:64]
        return moved[32:] if upper else moved[:32]

    def _minimum(self, words: list[Word], at: int) -> Word:
        """Return a half of the minimum of two magnitudes, with the signs joined: it is no larger than a number among
        them."""
        symbols = self._symbols
        one, other, least = words[0][at : at + 16], words[1][at : at + 16], words[2]
        made = symbols.made("half minimum and signs", (one, other, least), 16)
        known = number(other[:15])
        if known is None or known > 0x7C00 or number(least) != 1:
            return made
        limit = constant(known, 15)
        above = symbols.below(limit, made[:15])
        capped = [symbols.choose(above, cap, bit) for cap, bit in zip(limit, made[:15], strict=True)]
        return (
            *(bit if place < known.bit_length() else ZERO for place, bit in enumerate(capped)),
            symbols.differ(one[15], other[15]),
        )

    def _permuted(self, words: list[Word]) -> Word:
        """Return four of eight bytes: which one, and whether its sign fills it, is said by four bits of the selector
        alone, so that each byte may be chosen by another value."""
        choose, found = self._symbols.choose, list[Bit]()
        for at in range(0, 16, 4):
            *which, sign = words[1][at : at + 4]
            bytes_left = [word[8 * k : 8 * k + 8] for word in (words[0], words[2]) for k in range(4)]
            for bit in which:
                pairs = zip(bytes_left[1::2], bytes_left[::2], strict=True)
                bytes_left = [tuple(choose(bit, a, b) for a, b in zip(*pair, strict=True)) for pair in pairs]
            (byte,) = bytes_left
            found += [choose(sign, byte[7], bit) for bit in byte]
        return tuple(found)


def extended(word: Word, bits: int) -> Word:
    """Return a word of so many bits: the lowest ones, and zeros above."""
    return (*word, *(ZERO,) * (bits - len(word)))[:bits]


_COMPARISONS = {"equal", "less", "less_signed"}
_MOVES: Mapping[str, Callable[[list[Word], int, int], Word]] = {
    "left": lambda words, bits, count: extended((ZERO,) * count + words[0], bits),
    "right": lambda words, bits, count: extended(words[0][count:], bits),
    "right_signed": lambda words, bits, count: (words[0][count:] + (words[0][-1],) * count)[:bits],
    "pair": lambda words, _, __: extended(words[0], 32) + extended(words[1], 32),
    "low": lambda words, _, __: words[0][:32],
    "high": lambda words, _, __: words[0][32:],
    "wide": lambda words, bits, _: extended(words[0], bits),
    "wide_signed": lambda words, bits, _: (words[0] + (words[0][-1],) * bits)[:bits],
}
