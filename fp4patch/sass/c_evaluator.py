"""Evaluation of the C that the table of semantics emits, on words of symbols.

So the table stays the only place with the effect of an instruction. A function of ``runtime.h`` that moves bits, or
that does the same to both halves of a word, is followed; any other is an operation of which only the arguments are
known.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fp4patch.sass.bit_functions import ONE, OTHER, ZERO, Bit, Symbols, Word, constant, number

_TOKEN = re.compile(r"\s*(0x[0-9a-f]+u?|\d+u?|[A-Za-z_][\w]*(?:->\w+)?|<<|>>|<=|>=|==|!=|[-+*&|^~!<>?:(),])")
_CAST = re.compile(r"\s*\(\s*(u?int(?:8|16|32|64)_t)\s*\)")
_BINARY = {"|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8, "<=": 8, ">=": 8, "<<": 9, ">>": 9, "+": 10,
           "-": 10, "*": 11}  # fmt: skip
_DECLARED = re.compile(r"^const (u?int(?:32|64)_t) ")
_ASSIGNED = re.compile(r"^(\w+) = (.*)$", re.DOTALL)
_STORED = re.compile(r"^lift_store_(8|16|32)\((.*)\)$")

_OF_HALVES = {"lift_hmul2": 2, "lift_hadd2": 2, "lift_hfma2": 3, "lift_hmnmx2": 2, "lift_bmnmx2": 2, "lift_bfma2": 3}
"""Functions that do the same to the low and to the high halves of so many words."""
_NARROWED = {"lift_halves_of_singles", "lift_halves_toward_zero", "lift_bfloat16s_of_singles"}
_BITS = {"lift_to_e2m1": 4, "lift_to_e4m3": 8, "lift_to_e5m2": 8, "lift_to_e2m3": 6, "lift_to_e3m2": 6,
         "lift_is_nan": 1, "lift_fchk": 1, "lift_half_of_e2m1": 16, "lift_double_of_single": 64,
         "lift_f2u_64": 64}  # fmt: skip
"""Bits of a result that can be set; 32 of any other."""
_COMMUTE = {"lift_fmul", "lift_fadd", "lift_hmul2", "lift_hadd2"}


class NotFollowedError(Exception):
    """Code whose effect on the thread's values is not followed."""


@dataclass(frozen=True)
class Value:
    """A value of C: an integer of some type, or a float."""

    word: Word
    signed: bool = False
    real: bool = False

    @property
    def bits(self) -> int:
        """Width of its type."""
        return len(self.word)


_NAMED = {"LIFT_POISON": Value((OTHER,) * 32), "LIFT_NAN": Value(constant(0x7FFF_FFFF, 32))}
"""Values of names of ``runtime.h``."""


class Evaluator:
    """Evaluates expressions and statements; variables are registers and what statements declare."""

    def __init__(
        self,
        symbols: Symbols,
        constants: Callable[[int], Word],
        load: Callable[[Word, int], Word],
        index: Word = (OTHER,) * 32,
    ) -> None:
        self._symbols = symbols
        self._constants = constants
        """Word at an offset of constant bank 0."""
        self._load = load
        """Word of so many bits at an address."""
        self._index = index
        self._tokens: list[str] = []
        self._variables: Mapping[str, Value] = {}

    def run(
        self, statements: list[str], registers: Mapping[str, Word], store: Callable[[Word, Word], None]
    ) -> dict[str, Word]:
        """Return the registers that the statements of one instruction write."""
        seen = {name: Value(word) for name, word in registers.items()}
        written: dict[str, Word] = {}
        for text in statements:
            statement = text.rstrip(";")
            if found := _STORED.match(statement):
                self._tokens, self._variables = _tokens(f"{found[2]})"), seen
                address, value = self._rest()
                store(address.word, value.word[: int(found[1])])
                continue
            declared = _DECLARED.match(statement)
            for part in _parts(statement[declared.end() :]) if declared else [statement]:
                assigned = _ASSIGNED.match(part)
                if not assigned:
                    raise NotFollowedError(part)
                value = self._evaluate(assigned[2], seen)
                if declared:
                    seen[assigned[1]] = self._as(value, declared[1])
                else:
                    seen[assigned[1]] = self._as(value, "uint32_t")
                    written[assigned[1]] = seen[assigned[1]].word
        return written

    def truth(self, text: str, registers: Mapping[str, Word]) -> Bit:
        """Return an expression as a condition."""
        return self._symbols.any(self._evaluate(text, {name: Value(word) for name, word in registers.items()}).word)

    def _evaluate(self, text: str, variables: Mapping[str, Value]) -> Value:
        self._tokens, self._variables = _tokens(text), variables
        value = self._ternary()
        if self._tokens:
            raise NotFollowedError(text)
        return value

    # the grammar

    def _take(self, *expected: str) -> str:
        if not self._tokens or (expected and self._tokens[0] not in expected):
            raise NotFollowedError(" ".join(self._tokens))
        return self._tokens.pop(0)

    def _rest(self) -> list[Value]:
        found = []
        while True:
            found.append(self._ternary())
            if self._take(",", ")") == ")":
                return found

    def _ternary(self) -> Value:
        test = self._binary(0)
        if not self._tokens or self._tokens[0] != "?":
            return test
        self._take("?")
        one = self._ternary()
        self._take(":")
        one, other = self._alike(one, self._ternary())
        holds = self._symbols.any(test.word)
        word = tuple(self._symbols.choose(holds, a, b) for a, b in zip(one.word, other.word, strict=True))
        return Value(word, one.signed)

    def _binary(self, least: int) -> Value:
        left = self._unary()
        while self._tokens and _BINARY.get(self._tokens[0], -1) > least:
            operator = self._take()
            left = self._joined(operator, left, self._binary(_BINARY[operator]))
        return left

    def _unary(self) -> Value:  # noqa: PLR0911 - one return a form
        part = self._take()
        if part.startswith("cast "):
            return self._as(self._unary(), part[5:])
        if part == "(":
            value = self._ternary()
            self._take(")")
            return value
        if part in ("~", "!", "-"):
            value = self._unary()
            if part == "!":
                return _truth(self._symbols.invert(self._symbols.any(value.word)))
            value = self._promoted(value)
            inverted = tuple(self._symbols.invert(bit) for bit in value.word)
            one = constant(1, value.bits)
            return Value(inverted if part == "~" else self._symbols.add(inverted, one), value.signed)
        if part[0].isdigit():
            return Value(constant(int(part.rstrip("u"), 0), 32), signed=not part.endswith("u"))
        if self._tokens and self._tokens[0] == "(":
            self._take("(")
            if part == "UINT64_C":
                value = Value(constant(int(self._take().rstrip("u"), 0), 64))
                self._take(")")
                return value
            return self._called(part, self._rest())
        if part.startswith("launch"):
            return Value(self._index)
        if part not in self._variables and part not in _NAMED:
            raise NotFollowedError(part)
        return self._variables.get(part) or _NAMED[part]

    # operators

    def _as(self, value: Value, kind: str) -> Value:
        bits, signed = int(kind.strip("uint_")), not kind.startswith("u")
        if value.real:
            raise NotFollowedError("a float is no integer")
        fill = value.word[-1] if value.signed else ZERO
        return Value((value.word + (fill,) * bits)[:bits], signed)

    def _promoted(self, value: Value) -> Value:
        return value if value.bits >= 32 else self._as(value, "int32_t")

    def _alike(self, one: Value, other: Value) -> tuple[Value, Value]:
        """The usual arithmetic conversions."""
        one, other = self._promoted(one), self._promoted(other)
        bits = max(one.bits, other.bits)
        signed = all(value.signed for value in (one, other) if value.bits == bits)
        kind = f"{'' if signed else 'u'}int{bits}_t"
        return self._as(one, kind), self._as(other, kind)

    def _joined(self, operator: str, one: Value, other: Value) -> Value:  # noqa: PLR0911 - one return an operator
        symbols = self._symbols
        if one.real or other.real:
            (bit,) = self._symbols.made(f"float {operator}", (one.word, other.word), 1)
            return _truth(bit)
        if operator in ("<<", ">>"):
            return self._shifted(operator, self._promoted(one), other)
        one, other = self._alike(one, other)
        if operator in ("&", "|", "^"):
            how = {"&": symbols.both, "|": symbols.either, "^": symbols.differ}[operator]
            return Value(symbols.each(how, one.word, other.word), one.signed)
        if operator == "+":
            return Value(symbols.add(one.word, other.word), one.signed)
        if operator == "-":
            inverted = tuple(symbols.invert(bit) for bit in other.word)
            return Value(symbols.add((*one.word,), inverted, constant(1, 1)[0]), one.signed)
        if operator == "*":
            return Value(symbols.multiply(one.word, other.word), one.signed)
        if operator in ("==", "!="):
            same = symbols.same(one.word, other.word)
            return _truth(same if operator == "==" else symbols.invert(same))
        a, b = (one, other) if operator in ("<", ">=") else (other, one)
        if a.signed:  # the order of signed numbers is that of the others with the sign inverted
            a, b = (Value((*v.word[:-1], symbols.invert(v.word[-1]))) for v in (a, b))
        less = symbols.below(a.word, b.word)
        return _truth(symbols.invert(less) if operator in ("<=", ">=") else less)

    def _shifted(self, operator: str, one: Value, count: Value) -> Value:
        by = number(count.word)
        if by is None:
            made = self._symbols.made(f"{one.signed} {operator}", (one.word, count.word), one.bits)
            return Value(made, one.signed)
        if operator == "<<":
            return Value(((ZERO,) * by + one.word)[: one.bits], one.signed)
        fill = one.word[-1] if one.signed else ZERO
        return Value((one.word[by:] + (fill,) * by)[: one.bits], one.signed)

    # functions of runtime.h

    def _called(self, name: str, arguments: list[Value]) -> Value:  # noqa: PLR0911 - one return a kind of function
        words = [value.word for value in arguments]
        if name == "lift_constant":
            place = number(words[1])
            assert place is not None
            return Value(self._constants(place))
        if name.startswith("lift_load_"):
            return Value(self._load(words[0], int(name.removeprefix("lift_load_"))))
        if name == "lift_single":
            return Value(words[0], real=True)
        if name in ("LIFT_LOW", "LIFT_HIGH"):
            half = words[0][:16] if name == "LIFT_LOW" else words[0][16:32]
            return Value(half + (ZERO,) * 16)
        if name == "lift_pack":
            return Value(words[0][:16] + words[1][:16])
        if name == "lift_pair":
            return Value(words[0] + words[1])
        if name in ("lift_low", "lift_high"):
            return Value(words[0][:32] if name == "lift_low" else words[0][32:])
        if name in ("lift_of_half", "lift_of_bfloat16"):
            return Value(self._symbols.made(name, (words[0][:16],), 32), real=True)
        if name in _NARROWED:
            return Value(self._made(name, [words[1]], 16) + self._made(name, [words[0]], 16))
        if count := _OF_HALVES.get(name):
            parts = [[*(word[at : at + 16] for word in words[:count]), *words[count:]] for at in (0, 16)]
            return Value(self._made(name, parts[0], 16) + self._made(name, parts[1], 16))
        if name == "lift_hmnmx2_xorsign":
            return Value(self._minimum(words, 0) + self._minimum(words, 16))
        if (found := self._moved(name, words)) is not None:
            return Value(found)
        bits = _BITS.get(name, 32)
        return Value(self._made(name, words, bits) + (ZERO,) * (32 - bits))

    def _made(self, operation: str, words: list[Word], bits: int) -> Word:
        if operation == "lift_flush":  # keeps the sign
            return (*self._symbols.made(operation, [(*words[0][:31], ZERO)], 31), words[0][31])
        if operation == "lift_fmul" and any(number(word) is not None and word[31] == ONE for word in words):
            words = [(*word[:31], self._symbols.invert(word[31])) for word in words]
        return self._symbols.made(operation, sorted(words, key=repr) if operation in _COMMUTE else words, bits)

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

    def _moved(self, name: str, words: list[Word]) -> Word | None:  # noqa: PLR0911 - one return a function
        """Return the result of a function that moves bits; None if it is another, or by a number that is not known."""
        if name == "lift_permute":
            return self._permuted(words)
        first, by = number(words[0]), number(words[1]) if len(words) > 1 else None
        if by is None:
            return None
        if name == "lift_count":
            return None if first is None else constant(min(first, by), 32)
        if name == "lift_shl":
            return ((ZERO,) * min(by, 32) + words[0])[:32]
        if name in ("lift_shr", "lift_sar"):
            fill = words[0][31] if name == "lift_sar" else ZERO
            return (words[0][min(by, 32) :] + (fill,) * 32)[:32]
        if name in ("lift_shift_left", "lift_shift_right"):
            return self._shifted_pair(name, words, by)
        return None

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

    @staticmethod
    def _shifted_pair(name: str, words: list[Word], by: int) -> Word:
        pair, by = words[0] + words[2], min(by, 64)
        upper = bool(number(words[3]))
        if name == "lift_shift_left":
            moved = ((ZERO,) * by + pair)[:64]
        else:
            fill = words[2][31] if number(words[4]) else ZERO
            moved = (pair[by:] + (fill,) * 64)[:64]
        return moved[32:] if upper else moved[:32]


def _truth(bit: Bit) -> Value:
    return Value((bit, *(ZERO,) * 31), signed=True)


def _tokens(text: str) -> list[str]:
    found, at = list[str](), 0
    while at < len(text.rstrip()):
        cast = _CAST.match(text, at)
        token = cast or _TOKEN.match(text, at)
        if not token:
            raise NotFollowedError(text)
        found.append(f"cast {token[1]}" if cast else token[1])
        at = token.end()
    return found


def _parts(text: str) -> list[str]:
    """Split declarators at commas outside of parentheses."""
    found, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found]
