"""An instruction's operands as expressions: taken one by one, refused if left over or of the wrong kind."""

import struct
from dataclasses import dataclass, replace

from fp4patch.sass import expressions
from fp4patch.sass.expressions import FALSE, FUNCTIONS, POISON, TRUE, ZERO, Op, number
from fp4patch.sass.listing import Constant, Decoded, Integer, Memory, Real, Register, Special


class Lacks(Exception):  # noqa: N818 - a statement about the table
    """The table has no such opcode, or not with these operands."""


@dataclass(frozen=True)
class Layout:
    """Byte offsets of the driver's data for a kernel in constant bank 0."""

    block_size: int
    """blockDim.x, .y and .z."""
    grid_size: int
    """gridDim.x, .y and .z."""
    parameters: int
    stack: int
    """The end of local memory, which kernels load into R1 whether they use it or not."""
    descriptor: int | None
    """Descriptor of global memory, for LDG and STG: 8 bytes. None: there is none, and addresses are not marked as
    pairs of registers."""
    shared: int
    """Start of a kernel's own shared memory."""
    window: int | None = None
    """Address of the parameters in global memory: 8 bytes."""
    cluster: int | None = None
    """Words about clusters, of which there are none here: three sizes in blocks, their reciprocals, and so on."""


_BLACKWELL = Layout(
    block_size=0x360,
    grid_size=0x370,
    parameters=0x380,
    stack=0x37C,
    descriptor=0x358,
    shared=0x400,
    window=0x348,
    cluster=0x2A0,
)
LAYOUTS = {
    7: Layout(block_size=0x00, grid_size=0x0C, parameters=0x160, stack=0x28, descriptor=None, shared=0),
    8: Layout(block_size=0x00, grid_size=0x0C, parameters=0x160, stack=0x28, descriptor=0x118, shared=0),
    9: Layout(
        block_size=0x00, grid_size=0x0C, parameters=0x210, stack=0x28, descriptor=0x208, shared=0x400, window=0x198
    ),
    10: _BLACKWELL,
    12: _BLACKWELL,
}
"""By major compute capability; by experiment. For parameters, EIATTR_PARAM_CBANK of any cubin states the same."""

_OWN = 2
"""Constant bank of a kernel's own constants."""
PARAMETERS_END = 0x1000
"""Kernel parameters are at most 4 KB (CUDA C++ Programming Guide, "Function Parameters")."""


def name(register: Register) -> str:
    """Return the variable of a register that is not RZ or PT."""
    assert register.index is not None
    return f"{register.file.lower()}{register.index}"


class Operands:
    """Takes an instruction's operands one by one, and refuses what is left over or of the wrong kind."""

    def __init__(
        self, instruction: Decoded, layout: Layout, *, grid: bool = False, arch: tuple[int, int] = (9, 0)
    ) -> None:
        self._rest = list(instruction.operands)
        self.arch = arch
        """Compute capability."""
        self.guard: Op | None = None
        """Predicate of the instruction."""
        self.layout = layout
        self.at = instruction.address
        self.grid = grid
        """Whether whole warps are executed: then threads can exchange values."""
        self.read: set[str] = set()
        """Variables that were named, for their declarations."""
        self.written: list[str] = []
        """Variables that are destinations."""
        self.sources: set[str] = set()
        """Variables that are sources."""

    def __len__(self) -> int:
        return len(self._rest)

    def peek(self, kind: type, *files: str) -> bool:
        """Return whether the next operand is of this kind, and a register of one of these files."""
        if not self._rest or not isinstance(self._rest[0], kind):
            return False
        first = self._rest[0]
        return not files or (isinstance(first, Register) and first.file in files)

    def peek_predicate(self) -> bool:
        """Return whether the next operand is a predicate."""
        return self.peek(Register, "P", "UP")

    def only_in_a_grid(self) -> None:
        """Refuse an instruction that is in the table of whole warps alone."""
        if not self.grid:
            raise Lacks("no such opcode in the table")

    def end(self) -> None:
        """Nothing may be left."""
        if self._rest:
            raise Lacks("more operands than this opcode is known with")

    def _take(self, what: str) -> object:
        if not self._rest:
            raise Lacks(f"no {what} where one is expected")
        return self._rest.pop(0)

    def _named(self, register: Register) -> Op:
        self.sources.add(name(register))
        self.read.add(name(register))
        return expressions.register(name(register))

    def _to(self, register: Register) -> str:
        self.written.append(name(register))
        self.read.add(name(register))
        return name(register)

    # destinations

    def to(self, words: int = 1) -> list[str]:
        """Return the variables of a destination, lowest first; empty for RZ."""
        register = self._take("destination")
        if not is_plain(register, "R", "UR"):
            raise Lacks("its destination is not a register")
        assert isinstance(register, Register)
        if register.index is None:
            return []
        if register.index % words:
            raise Lacks(f"its destination is no aligned group of {words}")
        return [self._to(Register(register.file, register.index + i)) for i in range(words)]

    def to_group(self, words: int) -> list[str]:
        """Return the variables of a destination of registers that follow one another; empty for RZ."""
        return [self._to(one) for one in self._group(words, "") if one.index is not None]

    def to_predicate(self) -> str:
        """Return the variable of a destination; empty for PT."""
        register = self._take("predicate")
        if not (isinstance(register, Register) and register.file in ("P", "UP") and not register.inverted):
            raise Lacks("its destination is not a predicate")
        return "" if register.index is None else self._to(register)

    def named_predicate(self, number: int) -> str:
        """Return the variable of a predicate that no operand names, as a destination."""
        return self._to(Register("P", number))

    # sources

    def values(self, words: int) -> list[Op]:
        """Return an aligned group of registers that is stored, lowest first; zeros for RZ."""
        if self.is_zero(negated=False):
            return [self.word()] * words
        register = self._take("source")
        if not is_plain(register, "R", "UR"):
            raise Lacks("what it stores is not a register")
        assert isinstance(register, Register)
        assert register.index is not None
        if register.index % words:
            raise Lacks(f"what it stores is no aligned group of {words}")
        return [self._named(Register(register.file, register.index + i)) for i in range(words)]

    def group(self, words: int, part: str = "") -> list[Op]:
        """Return registers that follow one another; zeros for RZ."""
        return [ZERO if one.index is None else self._named(one) for one in self._group(words, part)]

    def _group(self, words: int, part: str) -> list[Register]:
        register = self._take("group of registers")
        plain = replace(register, part="") if isinstance(register, Register) and register.part == part else register
        if not (is_plain(plain, "R", "UR") and isinstance(plain, Register)):
            raise Lacks("an operand is not a group of registers")
        if plain.index is None:
            return [plain] * words
        return [replace(plain, index=plain.index + step) for step in range(words)]

    def registers_from(self, words: int) -> list[Op]:
        """Return uniform registers that follow one another, of which the first stands in brackets."""
        memory = self._take("registers")
        if not isinstance(memory, Memory) or memory != Memory(Register("UR", memory.base.index)):
            raise Lacks("an operand is not a uniform register in brackets")
        index = memory.base.index
        if index is None:
            raise Lacks("an operand is URZ in brackets")
        return [self._named(Register("UR", index + step)) for step in range(words)]

    def drop(self) -> None:
        """Take what is left, of an instruction that does nothing here."""
        self._rest = []

    def truth(self) -> Op:
        """Return a predicate as 0 or 1."""
        register = self._take("predicate")
        if not (isinstance(register, Register) and register.file in ("P", "UP")):
            raise Lacks("a source is not a predicate")
        return self.value(register)

    def value(self, register: Register) -> Op:
        """Return a predicate as 0 or 1, also where it guards an instruction."""
        if register.index is None:
            return FALSE if register.inverted else TRUE
        return ~self._named(register) if register.inverted else self._named(register)

    def negations(self, sources: int) -> int:
        """Return how many of the next operands are registers with a minus sign."""
        return sum(isinstance(one, (Register, Constant)) and one.negated for one in self._rest[:sources])

    def word(self, *, negation: bool = False, inversion: bool = False, complement: bool = False) -> Op:
        """32 bits as an integer. ``complement``: of a source with a minus sign, the complement, one less."""
        source = self._take("source")
        if isinstance(source, Integer):
            if not -(1 << 31) <= source.value < 1 << 32:
                raise Lacks("an immediate has more than 32 bits")
            return number(source.value)
        if isinstance(source, (Register, Constant)):
            signed = source.negated and not (negation or complement)
            if source.absolute or signed or (source.inverted and not inversion):
                raise Lacks("a source has a sign, bars or a tilde")
            word = self._bits(source)
            if source.inverted or (source.negated and complement):
                return ~word
            return ZERO - word if source.negated else word
        raise Lacks("a source is not an integer")

    def immediate(self) -> int:
        """Return an immediate number of the instruction."""
        source = self._take("immediate")
        if not isinstance(source, Integer):
            raise Lacks("an operand is not an immediate")
        return source.value

    def pair(self, *, negation: bool = False) -> Op:
        """64 bits: two registers."""
        if self.peek(Constant):
            place = self.constant()
            return expressions.pair(self.loaded(place, 0), self.loaded(place, 1))
        source = self._take("source")
        negated = negation and isinstance(source, Register) and source.negated
        plain = replace(source, negated=False) if negated and isinstance(source, Register) else source
        if not is_plain(plain, "R", "UR"):
            raise Lacks("a source is not a pair of registers")
        assert isinstance(plain, Register)
        return number(0, 64) - self._pair(plain) if negated else self._pair(plain)

    def wide(self, *, negation: bool = False) -> Op:
        """64 bits: two registers, or an immediate with its sign."""
        if not self.peek(Integer):
            return self.pair(negation=negation)
        value = self.immediate()
        if not -(1 << 31) <= value < 1 << 31:
            raise Lacks("an immediate whose sign is not known")
        return number(value, 64)

    def _pair(self, source: Register) -> Op:
        if source.index is None:
            return number(0, 64)
        if source.index % 2:
            raise Lacks("a pair of registers begins with an odd one")
        return expressions.pair(self._named(source), self._named(Register(source.file, source.index + 1)))

    def single(self, *, flush: bool = False) -> Op:
        """Return the bits of a float32."""
        source = self._take("source")
        if isinstance(source, Real):
            bits = number(single_bits(source))
        elif isinstance(source, Integer):
            bits = number(source.value)
        elif isinstance(source, (Register, Constant)):
            if source.inverted:
                raise Lacks("a source has a tilde")
            bits = self._signed(source)
        else:
            raise Lacks("a source is not a float")
        return FUNCTIONS["flush"](bits) if flush else bits

    def two_singles(self) -> tuple[Op, Op]:
        """Return the bits of two float32, the lower register's first; F32 names one register for both, as an immediate
        is for both, and NP negates the upper one."""
        source = self._take("source")
        if isinstance(source, Real):
            return number(single_bits(source)), number(single_bits(source))
        parts = ("F32x2.HI_LO", "F32x2.HI_LO.NP", "F32")
        if not isinstance(source, Register) or source.inverted or source.part not in parts:
            raise Lacks("a source is not two floats")
        if source.index is None or source.part == "F32":
            bits = self._signed(replace(source, part=""))
            return bits, bits
        if source.index % 2:
            raise Lacks("a pair of registers begins with an odd one")
        low = replace(source, part="")
        opposite = source.negated != source.part.endswith(".NP")
        return self._signed(low), self._signed(replace(low, index=source.index + 1, negated=opposite))

    def halves(self, *, brain: bool = False) -> Op:
        """Return the bits of two halves, or of two bfloat16 (``brain``). Of immediates the first is the high one."""
        source = self._take("source")
        if isinstance(source, Real):
            low = self._take("second immediate")
            if not isinstance(low, Real):
                raise Lacks("one immediate where there are two of half precision")
            bits_of = brain_bits if brain else half_bits
            return number(bits_of(source) << 16 | bits_of(low))
        if not isinstance(source, Register) or source.inverted or source.file not in ("R", "UR"):
            raise Lacks("a source is not two halves")
        bits = ZERO if source.index is None else self._named(source)
        if source.part == "H0_H0":
            bits = (bits & 0xFFFF) * 0x10001
        elif source.part == "H1_H1":
            bits = (bits >> 16) * 0x10001
        elif source.part:
            raise Lacks(f"part {source.part} of a source")
        bits = bits & 0x7FFF_7FFF if source.absolute else bits
        return bits ^ 0x8000_8000 if source.negated else bits

    def one_half(self) -> Op:
        """Return the bits of the half that H0_H0 or H1_H1 names."""
        source, bits = self._with_part("one half", "H0_H0", "H1_H1")
        bits = bits >> 16 if source.part == "H1_H1" else bits & 0xFFFF
        bits = bits & 0x7FFF if source.absolute else bits
        return bits ^ 0x8000 if source.negated else bits

    def brain(self) -> Op:
        """Return the bits of a float from a bfloat16: the half that H1 names; without it, the lower one."""
        source, bits = self._with_part("one bfloat16", "", "H1", absolute=False)
        bits = bits & 0xFFFF_0000 if source.part else bits << 16
        return bits ^ 0x8000_0000 if source.negated else bits

    def byte(self) -> Op:
        """Return the bits of the byte that B0 to B3 names; without one, the lowest."""
        source, bits = self._with_part("one byte", "", "B0", "B1", "B2", "B3", absolute=False, negated=False)
        return bits >> 8 * int(source.part[1:] or "0")

    def two_bytes(self) -> Op:
        """Return the bits of the upper two bytes, which H1 names; without a part, of the lower two."""
        source, bits = self._with_part("two bytes", "", "H1", absolute=False, negated=False)
        return bits >> 16 if source.part else bits

    def _with_part(self, what: str, *parts: str, absolute: bool = True, negated: bool = True) -> tuple[Register, Op]:
        """Take a register of which one of these parts may be read, and return it with its bits; signs if allowed."""
        source = self._take("source")
        if not isinstance(source, Register) or source.inverted or source.part not in parts:
            raise Lacks(f"a source is not {what}")
        if (source.absolute and not absolute) or (source.negated and not negated):
            raise Lacks(f"a source of {what} has a sign or bars")
        return source, ZERO if source.index is None else self._named(source)

    def in_bars(self, *, halves: bool) -> Op:
        """Return a source of .XORSIGN, in bars or an immediate: its bits with the sign, as they are before the bars."""
        source = self._rest[0] if self._rest else None
        if isinstance(source, Register) and source.absolute and not source.negated:
            self._rest[0] = replace(source, absolute=False)
        elif not isinstance(source, (Real, Integer)):
            raise Lacks("a source of .XORSIGN is not in bars")
        return self.halves() if halves else self.single()

    def is_zero(self, *, negated: bool) -> bool:
        """Return whether the next source is RZ or -RZ."""
        source = self._rest[0] if self._rest else None
        return (
            isinstance(source, Register)
            and source.file in ("R", "UR")
            and source.index is None
            and source.negated is negated
            and not source.absolute
            and not source.inverted
        )

    def constant(self) -> Constant:
        """Return a place in a constant bank."""
        source = self._take("constant")
        if not isinstance(source, Constant) or source.negated or source.absolute or source.inverted:
            raise Lacks("its source is not a place in a constant bank")
        if source.bank != _OWN and source.register and source.register.index is not None and not self.grid:
            raise Lacks("its place in the constant bank is computed")
        return source

    def address(self, *, anywhere: bool = False) -> Op:
        """Return a global address, 64 bits; ``anywhere``: a pair of registers may stand there without a descriptor."""
        memory = self._take("address")
        if (
            anywhere
            and isinstance(memory, Memory)
            and memory == Memory(Register("R", memory.base.index), memory.offset)
        ):
            return self._pair(memory.base) + memory.offset
        marked = self.layout.descriptor is not None or (isinstance(memory, Memory) and memory.uniform)
        if not isinstance(memory, Memory) or memory.base.part != ("64" if marked else ""):
            raise Lacks("its address is not a pair of registers")
        if memory.uniform and memory.descriptor:
            raise Lacks("its address has a uniform part")
        if memory.descriptor:
            self._named(memory.descriptor)
        base = self._pair(memory.base)
        # A count of bytes that may be negative, as the hardware adds it.
        return (base + self._pair(memory.uniform) if memory.uniform else base) + memory.offset

    def shared_address(self) -> Op:
        """Return an address in shared memory, 32 bits."""
        memory = self._take("address")
        if not isinstance(memory, Memory) or memory.base.part == "64" or memory.descriptor:
            raise Lacks("its address is not one of shared memory")
        scale = int(memory.base.part[1:] or "1")
        base = replace(memory.base, part="")
        place = self._bits(base) * scale if scale > 1 else self._bits(base)
        return (place + self._bits(memory.uniform) if memory.uniform else place) + memory.offset

    def barrier(self) -> None:
        """A barrier register, which one thread alone does not wait at."""
        if not is_plain(self._take("barrier"), "B"):
            raise Lacks("its source is not a barrier register")

    def not_a_number(self) -> None:
        """An immediate that is some NaN."""
        source = self._take("immediate")
        if not (isinstance(source, Real) and source.text.endswith("QNAN")):
            raise Lacks("its source is not an immediate NaN")

    def some_nan(self) -> Op:
        """Return an immediate's bits; of a NaN, which has unknown ones, those of a NaN with poison in it."""
        source = self._rest[0]
        if not (isinstance(source, Real) and source.text.endswith("QNAN")):
            return self.single()
        self.not_a_number()
        return POISON >> 10 | 0x7FC0_0000

    def special(self) -> str:
        """Return a special register's name."""
        source = self._take("special register")
        if not isinstance(source, Special):
            raise Lacks("its source is not a special register")
        return source.name

    def _signed(self, source: Register | Constant) -> Op:
        """Return the bits of a float with the bars and the sign that the operand has."""
        bits = self._bits(source)
        bits = bits & 0x7FFF_FFFF if source.absolute else bits
        return bits ^ 0x8000_0000 if source.negated else bits

    def _bits(self, source: Register | Constant) -> Op:
        if isinstance(source, Constant):
            if source.register and source.register.index is not None:
                raise Lacks("a place in a constant bank is computed")
            return self.loaded(source, 0)
        if source.file not in ("R", "UR") or source.part:
            raise Lacks(f"a source is {source.file}{'.' + source.part if source.part else ''}")
        return ZERO if source.index is None else self._named(source)

    def loaded(self, place: Constant, step: int) -> Op:
        """Return a word of constant bank 0 or 2, ``step`` words on; raise ``Lacks`` if nothing defines it."""
        offset = place.offset + 4 * step
        if place.bank == _OWN and self.grid:
            at = number(offset)
            if place.register and place.register.index is not None:
                at = self._named(place.register) + at
            return FUNCTIONS["own_constant"](at)
        if place.bank == 0 and self.grid and place.register and place.register.index is not None:
            return FUNCTIONS["bank"](self._named(place.register) + offset)
        known = (
            offset == self.layout.stack
            or (self.layout.window is not None and offset - self.layout.window in (0, 4) and self.grid)
            or (self.layout.descriptor is not None and offset - self.layout.descriptor in (0, 4))
            or any(at <= offset < at + 12 for at in (self.layout.block_size, self.layout.grid_size))
            or self.layout.parameters <= offset < self.layout.parameters + PARAMETERS_END
        )
        if place.bank != 0 or not known or offset % 4:
            raise Lacks(f"the contents of c[{place.bank:#x}][{offset:#x}] is not known")
        return expressions.constant(offset)

    def word_of_bank(self, offset: int) -> Op:
        """Return a word of constant bank 0."""
        return self.loaded(Constant(0, offset), 0)


def is_plain(operand: object, *files: str) -> bool:
    """Return whether an operand is a whole register of these files: no sign, no bars, no part of it."""
    return isinstance(operand, Register) and operand == Register(operand.file, operand.index) and operand.file in files


def single_bits(source: Real) -> int:
    """Return a decimal immediate's bits: the disassembler writes 20 digits, which are enough for exactly one float."""
    if source.text.endswith("QNAN"):
        raise Lacks("an immediate is a NaN, whose bits the disassembler does not print")
    bits: int = struct.unpack("<I", struct.pack("<f", float(source.text)))[0]
    return bits


def half_bits(source: Real) -> int:
    """Return the same of half precision."""
    if source.text.endswith("QNAN"):
        raise Lacks("an immediate is a NaN, whose bits the disassembler does not print")
    bits: int = struct.unpack("<H", struct.pack("<e", float(source.text)))[0]
    return bits


def brain_bits(source: Real) -> int:
    """Return the same of bfloat16."""
    return single_bits(source) >> 16
