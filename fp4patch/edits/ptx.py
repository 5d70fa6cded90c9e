"""Values that the PTX of an inline-assembly statement packs: symbolic execution, nibble by nibble.

The order in which a statement packs its values is stated only in its PTX: the instruction puts its first source in the
high nibble, ``mov`` puts the first element of a vector lowest, and the list of C++ operands may be in any order. So the
PTX is executed over symbols. The module refuses everything that it does not support: a wrong guess would make a wrong
kernel.

Source: PTX ISA, sections cvt, mov, mul and fma, and "Inline PTX Assembly in CUDA". The instructions are those of the
statements of all releases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

ENCODE = "cvt.rn.satfinite.e2m1x2.f32"
"""The conversion to nearest that is understood. ``ENCODE d, a, b`` puts ``a`` in the high nibble of ``d``."""

STOCHASTIC = "cvt.rs.satfinite.e2m1x4.f32"
"""The stochastic one. ``STOCHASTIC d, {a, b, e, f}, rbits`` puts ``a`` in the highest nibble of ``d``, ``f`` in the
lowest."""

WIDTHS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
"""Bits of an operand by the letter of its constraint."""

_CONVERSION = re.compile(r"\bcvt(?:\s*\.\s*[\w:]+)+")
_FORMAT = re.compile(r"e2m1x[0-9]")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOKEN = re.compile(
    r"""
      (?P<blank>\s+)
    | (?P<operand>%(?:[0-9]+|\[\w+\]))
    | (?P<name>(?:%%)?[A-Za-z_$][\w$]*(?:(?:\.|::)\w+)*)
    | (?P<directive>\.[A-Za-z_]\w*)
    | (?P<number>0[fFdDxX][0-9A-Fa-f]+U?|0[bB][01]+U?|[0-9]+U?)
    | (?P<mark>.)
    """,
    re.VERBOSE,
)
_MOVE = re.compile(r"mov\.[busf](16|32|64)")
_WIDEN = re.compile(r"cvt\.u(8|16|32|64)\.u(8|16|32|64)")
_REGISTER = re.compile(r"\.[busf](8|16|32|64)")
_NIBBLE = 0xF


class NotUnderstood(ValueError):  # noqa: N818 - it is a refusal, named as the evaluator means it
    """PTX that the evaluator does not know, or whose result is not a packing of E2M1 codes and zeros."""

    def __init__(self, message: str, ptx: str, offset: int) -> None:
        super().__init__(f"{message}: {ptx}" if ptx else message)
        self.message = message
        self.ptx = ptx
        """The PTX line in question."""
        self.offset = offset
        """Where it begins in the template."""


@dataclass(frozen=True)
class Operand:
    """One operand of an asm statement, as the template sees it."""

    constraint: str
    """``=r``, ``+r``, ``f``."""
    name: str = ""
    """The symbolic name, as in ``[out] "=r"(x)``; empty if there is none."""

    @property
    def letter(self) -> str:
        """The constraint without its modifiers: ``r``."""
        return self.constraint.strip("=+&%")

    @property
    def width(self) -> int:
        """Width in bits; 0 if the constraint does not determine it."""
        return WIDTHS.get(self.letter, 0)


class Bits(NamedTuple):
    """Four bits of an operand."""

    operand: int
    nth: int


@dataclass(frozen=True)
class Word:
    """32 bits of an operand, taken as a float, or as random bits."""

    operand: int
    nth: int


@dataclass(frozen=True)
class Brain:
    """16 bits of an operand, a bfloat16, as the float that it stands for."""

    operand: int
    nth: int


@dataclass(frozen=True)
class Product:
    """Two floats multiplied, rounded to nearest even. ``plus_zero``: and 0 added, by an FMA, so that -0 becomes 0."""

    a: Float
    b: Float
    plus_zero: bool = False


Float = Word | Brain | Product


class Part(NamedTuple):
    """Four bits of a float that was computed."""

    of: Float
    nth: int


class Encoded(NamedTuple):
    """The E2M1 code of a float: to nearest, or stochastic with the random byte of a lane (0 to 3, ``f`` to ``a``)."""

    value: Float
    rbits: Word | None = None
    lane: int = 0


class Unknown(NamedTuple):
    """A nibble that nothing known was written to."""

    why: str


Cell = Bits | Part | Encoded | Unknown | int
"""Four bits; an int is a constant."""
Value = tuple[Cell, ...]
"""Cells from bit 0 up."""


@dataclass(frozen=True)
class Packed:
    """Contents of one output after the statement."""

    operand: int
    width: int
    """In bits."""
    nibbles: tuple[Encoded | None, ...]
    """E2M1 codes from bit 0 up, or None for zeros."""

    @property
    def stochastic(self) -> bool:
        """True if its codes take random bits."""
        return any(code is not None and code.rbits is not None for code in self.nibbles)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def conversions(template: str) -> tuple[str, ...]:
    """Return the ``cvt`` opcodes of a template in order: they decide whether a statement concerns E2M1."""
    return tuple("".join(found.split()) for found in _CONVERSION.findall(_uncommented(template)))


def unexplained(template: str) -> str:
    """Return a mention of the packed format outside any ``cvt`` and any comment; empty if there is none."""
    found = _FORMAT.search(_CONVERSION.sub("", _uncommented(template)))
    return found.group() if found else ""


def is_encode(opcode: str) -> bool:
    """Return whether a ``cvt`` opcode converts to E2M1: all that name the format and do not decode."""
    return "e2m1" in opcode and not is_decode(opcode)


def is_stochastic(opcode: str) -> bool:
    """Return whether a ``cvt`` opcode takes random bits."""
    return opcode.startswith("cvt.rs.")


def is_decode(opcode: str) -> bool:
    """Return whether a ``cvt`` opcode converts from E2M1: the source's type comes last."""
    rest, _, source = opcode.rpartition(".")
    return _FORMAT.fullmatch(source) is not None and "e2m1" not in rest


def evaluate(template: str, outputs: Sequence[Operand], inputs: Sequence[Operand]) -> tuple[Packed, ...]:
    """Return the contents of each output, by executing the template; operands are numbered outputs first.

    NotUnderstood is raised for an instruction, type or form that the module does not support, or a result that is not a
    packing.
    """
    machine = _Machine(template, outputs, inputs)
    machine.run()
    return tuple(machine.packed(number) for number in range(len(outputs)))


def _uncommented(template: str) -> str:
    """Blanks where comments were, so that offsets stay."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), template)


def _tokens(template: str) -> list[_Token]:
    text = _uncommented(template)
    found = [_Token(str(match.lastgroup), match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    for before, after in pairwise(found):
        pasted = "operand" in (before.kind, after.kind) and {before.kind, after.kind} - {"operand", "mark", "blank"}
        if pasted:  # the compiler would paste them into one register's name
            raise NotUnderstood("an operand joined to another word", before.text + after.text, before.start)
    return [token for token in found if token.kind != "blank"]


@dataclass
class _Register:
    width: int
    value: Value


class _Machine:
    """Registers in nested scopes, and the operands. Instructions are those of the table in :meth:`execute`."""

    def __init__(self, template: str, outputs: Sequence[Operand], inputs: Sequence[Operand]) -> None:
        self.template = template
        self.tokens = _tokens(template)
        self.operands = [*outputs, *inputs]
        self.outputs = len(outputs)
        self.values: list[Value] = [self._initial(number) for number in range(len(self.operands))]
        self.scopes: list[dict[str, _Register]] = [{}]
        self.here: tuple[int, int] = (0, 0)

    def _initial(self, number: int) -> Value:
        cells = self.operands[number].width // 4
        if number < self.outputs:
            return (Unknown("never written"),) * cells
        return tuple(Bits(number, index) for index in range(cells))

    def fail(self, message: str) -> NotUnderstood:
        start, end = self.here
        return NotUnderstood(message, " ".join(self.template[start:end].split()), start)

    # --- structure ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            self.here = token.start, token.end
            if token.text == "{":
                self.scopes.append({})
                at += 1
            elif token.text == "}":
                if len(self.scopes) == 1:
                    raise self.fail("a } too many")
                self.scopes.pop()
                at += 1
            elif token.text == ";":  # an empty statement
                at += 1
            else:
                end = next((n for n in range(at, len(self.tokens)) if self.tokens[n].text == ";"), None)
                self.here = token.start, self.tokens[-1 if end is None else end].end
                if end is None:
                    raise self.fail("no ; behind an instruction")
                self.statement(self.tokens[at:end])
                at = end + 1
        if len(self.scopes) > 1:
            self.here = 0, 0
            raise self.fail("a { that is never closed")

    def statement(self, tokens: Sequence[_Token]) -> None:
        if tokens[0].text == ".reg":
            self.declare(tokens[1:])
        elif tokens[0].kind == "name":
            self.execute(tokens[0].text, self.arguments(tokens[1:]))
        else:
            raise self.fail("not a known instruction")

    def declare(self, tokens: Sequence[_Token]) -> None:
        """``.reg .b8 a, b``."""
        form = _REGISTER.fullmatch(tokens[0].text) if tokens else None
        if form is None:
            raise self.fail("an unknown register type")
        width, names = int(form[1]), tokens[1:]
        if len(names) % 2 == 0 or any(token.text != "," for token in names[1::2]):
            raise self.fail("not a list of registers")
        for token in names[::2]:
            name = token.text
            if token.kind != "name" or "." in name:
                raise self.fail("not a register's name")
            if name in self.scopes[-1]:
                raise self.fail(f"register {name} declared twice")
            self.scopes[-1][name] = _Register(width, (Unknown(f"register {name}, never written"),) * (width // 4))

    def arguments(self, tokens: Sequence[_Token]) -> list[tuple[_Token, ...]]:
        """Split at commas; a vector is its elements, with ``{`` kept in front."""
        arguments: list[tuple[_Token, ...]] = []
        at = 0
        while at < len(tokens):
            if tokens[at].text == "{":
                close = next((n for n in range(at, len(tokens)) if tokens[n].text == "}"), None)
                if close is None:
                    raise self.fail("a vector that is never closed")
                inside = tokens[at + 1 : close]
                if len(inside) % 2 == 0 or any(token.text != "," for token in inside[1::2]):
                    raise self.fail("not a vector of registers")
                arguments.append((tokens[at], *inside[::2]))
                at = close + 1
            else:
                arguments.append((tokens[at],))
                at += 1
            if at < len(tokens):
                if tokens[at].text != "," or at + 1 == len(tokens):
                    raise self.fail("not a list of operands")
                at += 1
        known = ("name", "operand", "number")
        if any(token.kind not in known for each in arguments for token in each if token.text != "{"):
            raise self.fail("an unknown operand")
        return arguments

    # --- instructions ------------------------------------------------------------------------------------------------

    def execute(self, opcode: str, arguments: list[tuple[_Token, ...]]) -> None:
        if opcode == ENCODE:
            target, high, low = self.scalars(arguments, 3)
            self.write(target, (self.encode(low), self.encode(high)), exact=8)
        elif opcode == STOCHASTIC:
            self.stochastic(arguments)
        elif opcode == "cvt.f32.bf16":
            target, source = self.scalars(arguments, 2)
            self.write(target, _parts(self.brain(source)), exact=32)
        elif opcode in ("mul.f32", "mul.rn.f32"):
            target, a, b = self.scalars(arguments, 3)
            self.write(target, _parts(Product(self.single(a), self.single(b))), exact=32)
        elif opcode in ("mul.f32x2", "mul.rn.f32x2"):
            target, a, b = self.scalars(arguments, 3)
            halves = zip(_halved(self.read(a, 64)), _halved(self.read(b, 64)), strict=True)
            product = (_parts(Product(self.float_of(x), self.float_of(y))) for x, y in halves)
            self.write(target, tuple(cell for part in product for cell in part), exact=64)
        elif opcode == "fma.rn.f32.bf16":
            target, a, b, c = self.scalars(arguments, 4)
            if any(cell != 0 for cell in self.read(c, 32)):
                raise self.fail("an addend that is not 0")
            self.write(target, _parts(Product(self.brain(a), self.brain(b), plus_zero=True)), exact=32)
        elif form := _MOVE.fullmatch(opcode):
            self.move(int(form[1]), arguments)
        elif form := _WIDEN.fullmatch(opcode):
            target, source = self.scalars(arguments, 2)
            to, of = int(form[1]), int(form[2])
            value = self.read(source, of, wider=True)
            self.write(target, _resized(value, to), exact=0)
        else:
            raise self.fail("an unknown instruction")

    def move(self, width: int, arguments: list[tuple[_Token, ...]]) -> None:
        """``mov d, a``; ``mov d, {a, b}`` packs with ``a`` lowest; ``mov {a, b}, d`` unpacks."""
        if len(arguments) != 2:
            raise self.fail("mov takes two operands")
        target, source = arguments
        if source[0].text == "{":
            each = width // (len(source) - 1)
            if len(source) - 1 not in (2, 4):
                raise self.fail("mov packs two or four elements")
            value: Value = tuple(cell for element in source[1:] for cell in self.read(element, each))
        else:
            value = self.read(source[0], width)
        if target[0].text == "{":
            each = width // (len(target) - 1)
            if len(target) - 1 not in (2, 4) or source[0].text == "{":
                raise self.fail("mov unpacks one register into two or four elements")
            for number, element in enumerate(target[1:]):
                self.write(element, value[number * each // 4 : (number + 1) * each // 4], exact=each)
        else:
            self.write(target[0], value, exact=width)

    def encode(self, token: _Token) -> Cell:
        """Return the E2M1 code of a float, wherever it was moved to; of the constant 0 it is 0."""
        if all(cell == 0 for cell in self.read(token, 32)):
            return 0
        return Encoded(self.single(token))

    def stochastic(self, arguments: list[tuple[_Token, ...]]) -> None:
        """``cvt.rs d, {a, b, e, f}, rbits``."""
        if len(arguments) != 3 or [len(one) for one in arguments] != [1, 5, 1] or arguments[1][0].text != "{":
            raise self.fail("not a target, a vector of four and random bits")
        (target,), (_, *values), (random,) = arguments
        rbits = self.single(random)
        if not isinstance(rbits, Word):
            raise self.fail("random bits that are no operand")
        codes = (Encoded(self.single(value), rbits, lane) for lane, value in enumerate(reversed(values)))
        self.write(target, tuple(codes), exact=16)

    def single(self, token: _Token) -> Float:
        return self.float_of(self.read(token, 32))

    def float_of(self, value: Value) -> Float:
        """Return the float whose bits these are: a whole word of an operand, or one that was computed."""
        first = value[0]
        if isinstance(first, Part) and value == _parts(first.of):
            return first.of
        if isinstance(first, Bits) and first.nth % 8 == 0 and value == _consecutive(first, 8):
            return Word(first.operand, first.nth // 8)
        raise self.fail("what is not a float operand, or computed of such")

    def brain(self, token: _Token) -> Brain:
        value = self.read(token, 16)
        first = value[0]
        if isinstance(first, Bits) and first.nth % 4 == 0 and value == _consecutive(first, 4):
            return Brain(first.operand, first.nth // 4)
        raise self.fail("what is not a bfloat16 operand")

    # --- operands ----------------------------------------------------------------------------------------------------

    def scalars(self, arguments: list[tuple[_Token, ...]], count: int) -> list[_Token]:
        if len(arguments) != count or any(argument[0].text == "{" for argument in arguments):
            raise self.fail(f"not {count} plain operands")
        return [argument[0] for argument in arguments]

    def number(self, token: _Token) -> int:
        """Return the number of the operand that ``%3`` or ``%[name]`` means."""
        text = token.text[1:]
        if text.isdigit():
            number = int(text)
        else:
            named = [n for n, operand in enumerate(self.operands) if operand.name == text[1:-1]]
            number = named[0] if len(named) == 1 else len(self.operands)
        if number >= len(self.operands):
            raise self.fail(f"no operand {token.text}")
        return number

    def register(self, name: str) -> _Register:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise self.fail(f"register {name} is not declared here")

    def constant(self, text: str) -> int:
        """Return the value of an integer, or the bits of a float written as ``0f3F800000``."""
        digits = text.removesuffix("U")
        try:
            return int(digits[2:], 16) if digits[:2] in ("0f", "0F") else int(digits, 0)
        except ValueError:
            raise self.fail("not a number") from None

    def read(self, token: _Token, width: int, *, wider: bool = False) -> Value:
        """Return the cells of a source. ``cvt`` alone takes the low bits of a wider one (PTX ISA, operand size)."""
        if token.kind == "number":
            constant = self.constant(token.text)
            if constant >> width:
                raise self.fail("a constant wider than its type")
            return tuple(constant >> shift & _NIBBLE for shift in range(0, width, 4))
        value = self.values[self.number(token)] if token.kind == "operand" else self.register(token.text).value
        if len(value) * 4 != width and not (wider and len(value) * 4 > width):
            raise self.fail(f"{token.text} has {len(value) * 4} bits where the instruction takes {width}")
        return value[: width // 4]

    def write(self, token: _Token, value: Value, *, exact: int) -> None:
        """``exact``: the width that the target must have; 0 if it may be wider and is filled with zeros, as by cvt."""
        if token.kind == "operand":
            number = self.number(token)
            if number >= self.outputs:
                raise self.fail(f"{token.text} is an input and is written to")
            width = self.operands[number].width
        elif token.kind == "name":
            width = self.register(token.text).width
        else:
            raise self.fail("a constant as a target")
        if width != exact if exact else width < len(value) * 4:
            raise self.fail(f"{token.text} has {width} bits where the instruction writes {exact or len(value) * 4}")
        value = _resized(value, width)
        if token.kind == "operand":
            self.values[self.number(token)] = value
        else:
            self.register(token.text).value = value

    # --- result ------------------------------------------------------------------------------------------------------

    def packed(self, number: int) -> Packed:
        operand = self.operands[number]
        if operand.letter not in ("h", "r", "l"):
            raise NotUnderstood(f'output %{number} is "{operand.constraint}", no integer of 16, 32 or 64 bits', "", 0)
        nibbles: list[Encoded | None] = []
        for index, cell in enumerate(self.values[number]):
            if isinstance(cell, Encoded):
                nibbles.append(cell)
            elif cell == 0:
                nibbles.append(None)
            else:
                holds = cell.why if isinstance(cell, Unknown) else "neither an E2M1 code nor zero"
                raise NotUnderstood(f"bits {index * 4} to {index * 4 + 3} of %{number}: {holds}", "", 0)
        return Packed(number, operand.width, tuple(nibbles))


def operands_of(value: Float) -> tuple[int, ...]:
    """Return the operands that a float is computed of, each as often as it is read."""
    if isinstance(value, Product):
        return (*operands_of(value.a), *operands_of(value.b))
    return (value.operand,)


def _parts(value: Float) -> Value:
    return tuple(Part(value, index) for index in range(8))


def _consecutive(first: Bits, count: int) -> Value:
    return tuple(Bits(first.operand, first.nth + index) for index in range(count))


def _halved(value: Value) -> tuple[Value, Value]:
    return value[: len(value) // 2], value[len(value) // 2 :]


def _resized(value: Value, width: int) -> Value:
    """Cut off, or filled with zeros."""
    cells = width // 4
    return value[:cells] + (0,) * (cells - len(value))
