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
from typing import NamedTuple

from fp4patch.edits.refusal import Refusal

ENCODE = "cvt.rn.satfinite.e2m1x2.f32"
"""The conversion to nearest that is understood. ``ENCODE d, a, b`` puts ``a`` in the high nibble of ``d``."""

STOCHASTIC = "cvt.rs.satfinite.e2m1x4.f32"
"""The stochastic one. ``STOCHASTIC d, {a, b, e, f}, rbits`` puts ``a`` in the highest nibble of ``d``, ``f`` in the
lowest."""

WIDTHS = {"h": 16, "r": 32, "l": 64, "f": 32, "d": 64}
"""Bits of an operand by the letter of its constraint."""

_CONVERSION = re.compile(r"\bcvt(?:\s*\.\s*[\w:]+)+")
_FORMAT = re.compile(r"e2m1x[0-9]")
_ARITHMETIC = re.compile(
    r"\b(?:add|sub|mul|fma)(?:\s*\.\s*[a-z]+)*\s*\.\s*(?!e2m1)u?(?:[sbf]|bf|tf|e[0-9]m)[0-9](?:\s*\.\s*|\w)*"
)
"""Arithmetic on packed types: that of the result comes first (PTX ISA 9.4), and it is not E2M1."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STEP = re.compile(r"[{};]|[^\s{};][^;]*;?")
"""A brace of a scope, or a statement: braces inside of one are those of a vector."""
_NAME = r"(?:%%)?[A-Za-z_$][\w$]*"
_OPERAND = rf"(?:%(?:[0-9]+|\[\w+\])|{_NAME}|[0-9]\w*)"
_ARGUMENT = rf"(?:{_OPERAND}|\{{ ?{_OPERAND}(?: ?, ?{_OPERAND})* ?\}})"
_INSTRUCTION = re.compile(rf"([a-z][\w.:]*)(?: |(?=[%{{]))({_ARGUMENT}(?: ?, ?{_ARGUMENT})*) ?;")
_REGISTERS = re.compile(rf"\.reg ?\.[busf](8|16|32|64) ({_NAME}(?: ?, ?{_NAME})*) ?;")
_MOVE = re.compile(r"mov\.[busf](16|32|64)")
_WIDEN = re.compile(r"cvt\.u(8|16|32|64)\.u(8|16|32|64)")
_NIBBLE = 0xF
_Argument = tuple[str, ...]
"""One operand as it is written, or the elements of a vector."""


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


Cell = Bits | Part | Encoded | int | None
"""Four bits; an int is a constant, and None was never written."""
Value = tuple[Cell, ...]
"""Cells from bit 0 up."""


@dataclass(frozen=True)
class Packed:
    """Contents of one output after the statement."""

    operand: int
    nibbles: tuple[Encoded | None, ...]
    """E2M1 codes from bit 0 up, or None for zeros."""

    @property
    def stochastic(self) -> bool:
        """True if its codes take random bits."""
        return any(code is not None and code.rbits is not None for code in self.nibbles)


def conversions(template: str) -> tuple[str, ...]:
    """Return the ``cvt`` opcodes of a template in order: they decide whether a statement concerns E2M1."""
    return tuple("".join(found.split()) for found in _CONVERSION.findall(_uncommented(template)))


def unexplained(template: str) -> str:
    """Return a mention of the packed format outside any ``cvt`` and any comment; empty if there is none.

    Arithmetic that reads E2M1 and results in another type, such as ``mul.rn.e4m3x4.e2m1x4.e4m3x4``, is no mention.
    """
    found = _FORMAT.search(_ARITHMETIC.sub("", _CONVERSION.sub("", _uncommented(template))))
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


def evaluate(
    template: str, outputs: Sequence[Operand], inputs: Sequence[Operand], line: int | None = None
) -> tuple[Packed, ...]:
    """Return the contents of each output, by executing the template; operands are numbered outputs first.

    Refusal, at a line of the file: an instruction, type or form that is not known, or a result that is not a packing.
    """
    machine = _Machine(outputs, inputs, line)
    machine.run(_uncommented(template))
    return tuple(machine.packed(number) for number in range(len(outputs)))


def _uncommented(template: str) -> str:
    return _COMMENT.sub(" ", template)


class _Machine:
    """Registers in nested scopes, and the operands. Instructions are those of the table in :meth:`execute`."""

    def __init__(self, outputs: Sequence[Operand], inputs: Sequence[Operand], line: int | None) -> None:
        self.line = line
        self.operands = [*outputs, *inputs]
        self.outputs = len(outputs)
        self.values: list[Value] = [self._initial(number) for number in range(len(self.operands))]
        self.scopes: list[dict[str, Value]] = [{}]
        self.step = ""

    def _initial(self, number: int) -> Value:
        cells = self.operands[number].width // 4
        if number < self.outputs:
            return (None,) * cells
        return tuple(Bits(number, index) for index in range(cells))

    def fail(self, message: str) -> Refusal:
        return Refusal("PTX that packs E2M1 codes", message, self.line, nearest=self.step)

    def run(self, ptx: str) -> None:
        for step in _STEP.findall(ptx):
            self.step = " ".join(step.split())
            if step == "{":
                self.scopes.append({})
            elif step == "}":
                if len(self.scopes) == 1:
                    raise self.fail("a } too many")
                self.scopes.pop()
            elif form := _REGISTERS.fullmatch(self.step):
                self.declare(int(form[1]), re.findall(_NAME, form[2]))
            elif form := _INSTRUCTION.fullmatch(self.step):
                arguments = re.findall(rf"\{{.*?\}}|{_OPERAND}", form[2])
                self.execute(form[1], [tuple(re.findall(_OPERAND, argument)) for argument in arguments])
            elif step != ";":
                raise self.fail("not a known instruction")
        if len(self.scopes) > 1:
            raise self.fail("a { that is never closed")

    def declare(self, width: int, names: Sequence[str]) -> None:
        for name in names:
            if name in self.scopes[-1]:
                raise self.fail(f"register {name} declared twice")
            self.scopes[-1][name] = (None,) * (width // 4)

    # --- instructions ------------------------------------------------------------------------------------------------

    def execute(self, opcode: str, arguments: Sequence[_Argument]) -> None:
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

    def move(self, width: int, arguments: Sequence[_Argument]) -> None:
        """``mov d, a``; ``mov d, {a, b}`` packs with ``a`` lowest; ``mov {a, b}, d`` unpacks."""
        if len(arguments) != 2 or any(len(argument) not in (1, 2, 4) for argument in arguments):
            raise self.fail("mov takes two operands, of which one may have two or four elements")
        targets, sources = arguments
        if len(targets) > 1 < len(sources):
            raise self.fail("mov unpacks one register")
        value = tuple(cell for source in sources for cell in self.read(source, width // len(sources)))
        each = width // len(targets)
        for number, target in enumerate(targets):
            self.write(target, value[number * each // 4 : (number + 1) * each // 4], exact=each)

    def encode(self, operand: str) -> Cell:
        """Return the E2M1 code of a float, wherever it was moved to; of the constant 0 it is 0."""
        if all(cell == 0 for cell in self.read(operand, 32)):
            return 0
        return Encoded(self.single(operand))

    def stochastic(self, arguments: Sequence[_Argument]) -> None:
        """``cvt.rs d, {a, b, e, f}, rbits``."""
        if [len(argument) for argument in arguments] != [1, 4, 1]:
            raise self.fail("not a target, a vector of four and random bits")
        (target,), values, (random,) = arguments
        rbits = self.single(random)
        if not isinstance(rbits, Word):
            raise self.fail("random bits that are no operand")
        codes = (Encoded(self.single(value), rbits, lane) for lane, value in enumerate(reversed(values)))
        self.write(target, tuple(codes), exact=16)

    def single(self, operand: str) -> Float:
        return self.float_of(self.read(operand, 32))

    def float_of(self, value: Value) -> Float:
        """Return the float whose bits these are: a whole word of an operand, or one that was computed."""
        first = value[0]
        if isinstance(first, Part) and value == _parts(first.of):
            return first.of
        if isinstance(first, Bits) and first.nth % 8 == 0 and value == _consecutive(first, 8):
            return Word(first.operand, first.nth // 8)
        raise self.fail("what is not a float operand, or computed of such")

    def brain(self, operand: str) -> Brain:
        value = self.read(operand, 16)
        first = value[0]
        if isinstance(first, Bits) and first.nth % 4 == 0 and value == _consecutive(first, 4):
            return Brain(first.operand, first.nth // 4)
        raise self.fail("what is not a bfloat16 operand")

    # --- operands ----------------------------------------------------------------------------------------------------

    def scalars(self, arguments: Sequence[_Argument], count: int) -> list[str]:
        if len(arguments) != count or any(len(argument) > 1 for argument in arguments):
            raise self.fail(f"not {count} plain operands")
        return [argument[0] for argument in arguments]

    def number(self, operand: str) -> int:
        """Return the number of the operand that ``%3`` or ``%[name]`` means."""
        named = [n for n, other in enumerate(self.operands) if operand in (f"%{n}", f"%[{other.name}]")]
        if len(named) != 1:
            raise self.fail(f"no operand {operand}")
        return named[0]

    def scope(self, name: str) -> dict[str, Value]:
        """Return the innermost scope that has a register."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope
        raise self.fail(f"register {name} is not declared here")

    def constant(self, text: str) -> int:
        """Return the value of an integer, or the bits of a float written as ``0f3F800000``."""
        digits = text.removesuffix("U")
        try:
            return int(digits[2:], 16) if digits[:2] in ("0f", "0F") else int(digits, 0)
        except ValueError:
            raise self.fail("not a number") from None

    def value(self, operand: str) -> Value:
        """Return what an operand or a register holds."""
        if operand[0] == "%" != operand[1]:
            return self.values[self.number(operand)]
        return self.scope(operand)[operand]

    def read(self, operand: str, width: int, *, wider: bool = False) -> Value:
        """Return the cells of a source. ``cvt`` alone takes the low bits of a wider one (PTX ISA, operand size)."""
        if operand[0].isdigit():
            constant = self.constant(operand)
            if constant >> width:
                raise self.fail("a constant wider than its type")
            return tuple(constant >> shift & _NIBBLE for shift in range(0, width, 4))
        value = self.value(operand)
        if len(value) * 4 != width and not (wider and len(value) * 4 > width):
            raise self.fail(f"{operand} has {len(value) * 4} bits where the instruction takes {width}")
        return value[: width // 4]

    def write(self, operand: str, value: Value, *, exact: int) -> None:
        """``exact``: the width that the target must have; 0 if it may be wider and is filled with zeros, as by cvt."""
        width = len(self.value(operand)) * 4
        if width != exact if exact else width < len(value) * 4:
            raise self.fail(f"{operand} has {width} bits where the instruction writes {exact or len(value) * 4}")
        if operand[0] == "%" != operand[1]:
            if self.number(operand) >= self.outputs:
                raise self.fail(f"{operand} is an input and is written to")
            self.values[self.number(operand)] = _resized(value, width)
        else:
            self.scope(operand)[operand] = _resized(value, width)

    # --- result ------------------------------------------------------------------------------------------------------

    def packed(self, number: int) -> Packed:
        self.step = ""
        operand = self.operands[number]
        if operand.letter not in ("h", "r", "l"):
            raise self.fail(f'output %{number} is "{operand.constraint}", no integer of 16, 32 or 64 bits')
        nibbles: list[Encoded | None] = []
        for index, cell in enumerate(self.values[number]):
            if isinstance(cell, Encoded):
                nibbles.append(cell)
            elif cell == 0:
                nibbles.append(None)
            else:
                holds = "never written" if cell is None else "neither an E2M1 code nor zero"
                raise self.fail(f"bits {index * 4} to {index * 4 + 3} of %{number}: {holds}")
        return Packed(number, tuple(nibbles))


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
