"""Semantics of each instruction: one entry per opcode with its modifiers, each with the source of its meaning.

If NVIDIA documents the operation (PTX ISA 9.x; CUDA Binary Utilities' instruction set reference names the opcodes), the
entry cites the section. Machine code's own conventions, such as the order of operands, are not documented: "by
experiment" means that the golden digests of a real GPU (``tests/sass/golden``) decide. An opcode, modifier or
operand form without an entry is refused by name, since a guess could hide an error.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from operator import add, or_
from typing import Literal

from fp4patch.sass.expressions import (
    FALSE,
    FUNCTIONS,
    POISON,
    ZERO,
    Effect,
    Op,
    Set,
    Store,
    Wait,
    either,
    equal,
    high,
    index,
    less,
    less_signed,
    low,
    number,
    pair,
    select,
    sign_of,
    wide,
    wide_signed,
)
from fp4patch.sass.listing import Integer, Real, Register
from fp4patch.sass.operands import Lacks, Operands

Emit = Callable[[Operands], list[Effect]]
"""Effects of an instruction with these operands."""
Value = Callable[..., Op]
"""A value of the values of operands."""


@dataclass(frozen=True)
class Semantics:
    """Semantics of an opcode with its modifiers."""

    emit: Emit
    source: str
    """Source of the entry; "by experiment" if it is not documented."""
    family: object = None
    """Equal for entries that differ in a number, a width or a relation alone."""
    joins: bool = False
    """Threads for which its predicate does not hold wait with the others, and take part."""


TABLE: dict[str, Semantics] = {}
"""By opcode with modifiers, as the disassembler writes it."""


def _entry(opcodes: str | Iterable[str], source: str, family: object = None) -> Callable[[Emit], Emit]:
    def add(emit: Emit) -> Emit:
        for opcode in [opcodes] if isinstance(opcodes, str) else opcodes:
            assert opcode not in TABLE, opcode
            TABLE[opcode] = Semantics(emit, source, family or emit.__code__)
        return emit

    return add


def _set(to: Sequence[str], value: Op) -> list[Effect]:
    """Give one word to a register, or to nowhere; 64 bits to two registers."""
    return [
        Set(one, word) for one, word in zip(to, (low(value), high(value)) if len(to) == 2 else (value,), strict=False)
    ]


def _set_all(*pairs: tuple[str, Op]) -> list[Effect]:
    """Give values to registers, of which some are nowhere."""
    return [Set(to, value) for to, value in pairs if to]


# --- entries with one result ------------------------------------------------------------------------------------------

Take = Callable[[Operands], Op]
"""Takes the next operand."""
WORD, PAIR, WIDE, TRUTH = Operands.word, Operands.pair, Operands.wide, Operands.truth
SINGLE, HALVES = Operands.single, Operands.halves
SIGNED, FLUSHED, BRAINS = partial(WORD, negation=True), partial(SINGLE, flush=True), partial(HALVES, brain=True)
F = FUNCTIONS


def _gives(
    opcodes: str | Iterable[str],
    source: str,
    value: Value,
    *takes: Take,
    words: int = 1,
    grid: bool = False,
    family: object = None,
) -> None:
    """Enter opcodes whose destination of 1 or 2 words gets a value of the sources, which are taken in their order.

    ``grid``: they are in the table of whole warps alone.
    """

    def emit(o: Operands) -> list[Effect]:
        if grid:
            o.only_in_a_grid()
        to, sources = o.to(words), [take(o) for take in takes]
        o.end()
        return _set(to, value(*sources))

    _entry(opcodes, source, family=family or (getattr(value, "__code__", value), grid))(emit)


# --- moves -----------------------------------------------------------------------------------------------------------


def _wide_immediate(o: Operands) -> Op:
    return number(o.immediate(), 64) if o.peek(Integer) else o.pair()


def _some_single(o: Operands) -> Op:
    """Take a float, of which the disassembler does not print the bits if it is an immediate NaN."""
    return o.some_nan() if o.grid and o.peek(Real) else o.single()


def _same(value: Op) -> Op:
    return value


def _selected(one: Op, other: Op, test: Op) -> Op:
    return select(test, one, other)


_gives(("MOV", "UMOV"), "PTX ISA, mov", _same, WORD)
_gives(("MOV.64", "UMOV.64"), "PTX ISA, mov.b64", _same, _wide_immediate, words=2, family="MOV.64")
_gives(("SEL", "USEL"), "PTX ISA, selp", _selected, WORD, WORD, TRUTH)
_gives(("SEL.64", "USEL.64"), "PTX ISA, selp.b64", _selected, WIDE, WIDE, TRUTH, words=2, family="SEL.64")
_FSEL = "PTX ISA, selp; a sign or bars on a source change its sign bit alone: by experiment"
_gives("FSEL", _FSEL, _selected, SINGLE, _some_single, TRUTH, family="FSEL")


_SPECIAL = {f"SR_{name}.{axis}": index(f"{name.lower()}_{axis.lower()}") for name in ("TID", "CTAID") for axis in "XYZ"}
_SPECIAL |= {"SR_LANEID": index("laneid"), "SR_CgaCtaId": ZERO}
_OF_ONE_THREAD = ("SR_TID.X", "SR_CTAID.X")


def _special(o: Operands) -> list[Effect]:
    to, register = o.to(), o.special()
    o.end()
    if register not in (_SPECIAL if o.grid else _OF_ONE_THREAD):
        raise Lacks(f"special register {register}")
    return _set(to, _SPECIAL[register])


_entry(
    ("S2R", "S2UR"),
    "PTX ISA, special registers %tid, %ctaid and %laneid; SR_CgaCtaId is %cluster_ctarank, 0 without clusters",
)(_special)


def _zero(words: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, register = o.to(words), o.special()
        o.end()
        if register != "SRZ" and (register != "SR_CgaSize" or words == 2 or not o.grid):
            raise Lacks(f"special register {register}")
        return [Set(one, ZERO) for one in to]

    return emit


_CLUSTER = "; SR_CgaSize selects words of constant bank 0 about clusters: by experiment, ptxas of %cluster_nctaid"
_entry("CS2R", "CUDA Binary Utilities: move special register to register; SRZ is zero, in a pair: by experiment")(
    _zero(2)
)
_entry("CS2R.32", "CUDA Binary Utilities: move special register to register; SRZ is zero" + _CLUSTER)(_zero(1))


def _load_constant(words: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, place = o.to(words), o.constant()
        o.end()
        return [Set(register, o.loaded(place, step)) for step, register in enumerate(to)]

    return emit


_LOADS_CONSTANTS = "PTX ISA, ld.param; the bank's layout by experiment"
_entry(("LDC", "LDCU", "ULDC"), _LOADS_CONSTANTS)(_load_constant(1))
_entry(("LDC.64", "LDCU.64", "ULDC.64"), _LOADS_CONSTANTS)(_load_constant(2))
_entry(("LDC.128", "LDCU.128"), _LOADS_CONSTANTS)(_load_constant(4))


def _load(bits: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, address = o.to(max(1, bits // 32)), o.address()
        o.end()
        return _loads(to, address, bits)

    return emit


def _loads(to: Sequence[str], address: Op, bits: int) -> list[Effect]:
    """Load registers from global memory."""
    if bits <= 32:
        return [Set(register, F[f"load_{bits}"](address)) for register in to]
    start = F["aligned"](address, number(bits // 8))
    return [Set(register, F["load_32"](start + 4 * step)) for step, register in enumerate(to)]


def _store(bits: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        address = o.address()
        values = o.values(max(1, bits // 32))
        o.end()
        if bits <= 32:
            return [Store("global", address, values[0], bits)]
        start = F["aligned"](address, number(bits // 8))
        return [Store("global", start + 4 * step, value, 32) for step, value in enumerate(values)]

    return emit


_STRONG = tuple(f".STRONG.{scope}" for scope in ("CTA", "SM", "GPU", "SYS"))


def _load_constant_byte(*, signed: bool) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, place = o.to(), o.constant()
        o.end()
        word, before = o.loaded(replace(place, offset=place.offset & ~3), 0), 8 * (place.offset & 3)
        return _set(to, sign_of(word << 24 - before, 24) if signed else word >> before & 255)

    return emit


_entry(("LDC.U8", "LDCU.U8", "ULDC.U8"), _LOADS_CONSTANTS)(_load_constant_byte(signed=False))
_entry(("LDC.S8", "LDCU.S8", "ULDC.S8"), _LOADS_CONSTANTS)(_load_constant_byte(signed=True))


for _suffix, _bits in ((".U8", 8), (".U16", 16), ("", 32), (".64", 64), (".128", 128)):
    _entry(
        [f"LDG.E{_suffix}{kind}" for kind in ("", ".CONSTANT", ".SYS", ".CONSTANT.SYS", *_STRONG)],
        "PTX ISA, ld.global; .SYS and .STRONG are the scope in which it is ordered",
    )(_load(_bits))
    _entry(f"LD.E{_suffix}", "PTX ISA, ld of a generic address: of an array")(_load(_bits))
    _entry(f"ST.E{_suffix}", "PTX ISA, st to a generic address: of an array")(_store(_bits))
    _entry([f"STG.E{_suffix}{kind}" for kind in ("", ".SYS", *_STRONG)], "PTX ISA, st.global")(_store(_bits))


@_entry(
    [f"LDG.E.ENL2.256{kind}" for kind in ("", ".CONSTANT", *_STRONG)],
    "PTX ISA, ld.global.v8.b32; the second group is from the lower address, as ptxas uses it (test_pairs.py)",
)
def _load_256(o: Operands) -> list[Effect]:
    upper, lower, address = o.to(4), o.to(4), o.address()
    o.end()
    return _loads([*lower, *upper], address, 256)


def _shared(bits: int, *, store: bool, memory: str = "shared") -> Emit:
    words = max(1, bits // 32)

    def emit(o: Operands) -> list[Effect]:
        o.only_in_a_grid()
        to = [] if store else o.to(words)
        place = o.shared_address()
        values = o.values(words) if store else []
        o.end()
        at = F[f"{memory}_aligned"](place, number(bits // 8)) if bits > 32 else place
        size = min(bits, 32)
        if store:
            return [Store(memory, at + 4 * step, value, size) for step, value in enumerate(values)]
        return [Set(one, F[f"{memory}_load_{size}"](at + 4 * step)) for step, one in enumerate(to)]

    return emit


for _suffix, _bits in ((".U8", 8), (".U16", 16), ("", 32), (".64", 64), (".128", 128)):
    _entry((f"LDS{_suffix}", f"LDS.U{_suffix}"), "PTX ISA, ld.shared; sm_75 has .U at all of them")(
        _shared(_bits, store=False)
    )
    _entry(f"STS{_suffix}", "PTX ISA, st.shared")(_shared(_bits, store=True))
    _entry((f"LDL{_suffix}", f"LDL.LU{_suffix}"), "PTX ISA, ld.local; .LU is the last use of a spilled register")(
        _shared(_bits, store=False, memory="local")
    )
    _entry(f"STL{_suffix}", "PTX ISA, st.local")(_shared(_bits, store=True, memory="local"))
_entry("STL.S16", "PTX ISA, st.local.b16")(_shared(16, store=True, memory="local"))


# --- other threads ---------------------------------------------------------------------------------------------------


def _shfl(mode: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        o.only_in_a_grid()
        inside, to, value, b, c = o.to_predicate(), o.to(), o.word(), o.word(), o.word()
        o.end()
        results = [(one, 0) for one in to] + ([(inside, 1)] if inside else [])
        return [Wait(f"SHFL_{mode}", (value, b, c), tuple(results))]

    return emit


for _mode in ("UP", "DOWN", "BFLY", "IDX"):
    _entry(f"SHFL.{_mode}", "PTX ISA, shfl.sync; the order of operands by experiment")(_shfl(_mode))


@_entry(
    ("NOP", "ACQBULK", "PREEXIT", "WARPSYNC.ALL"),
    "CUDA Binary Utilities: no operation; PTX ISA, griddepcontrol, bar.warp.sync",
)
def _nop(o: Operands) -> list[Effect]:
    o.end()
    return []


@_entry("BREAK.RELIABLE", "CUDA Binary Utilities: break out of a convergence barrier; nothing for one thread alone")
def _break(o: Operands) -> list[Effect]:
    o.barrier()
    o.end()
    return []


@_entry(
    "BMOV.32.CLEAR",
    "CUDA Binary Utilities: move convergence barrier state, to RZ and so nowhere; ptxas writes it before each BSSY for "
    "sm_75. Nothing is assumed of the barrier until then: a BSYNC between the two is refused",
)
def _bmov_clear(o: Operands) -> list[Effect]:
    if not o.is_zero(negated=False):
        raise Lacks("it keeps the threads that wait, which is no value of one thread")
    o.word()
    o.barrier()
    o.end()
    return []


_P2R = "CUDA Binary Utilities: move predicate register to register; those of a mask, each at its bit"


@_entry(("P2R", "UP2UR"), _P2R)
def _p2r(o: Operands) -> list[Effect]:
    to, a, mask = o.to(), o.word(), o.immediate()
    o.end()
    file: Literal["P", "UP"] = "UP" if to and to[0].startswith("u") else "P"
    if not 0 < mask < 1 << _PREDICATES:
        raise Lacks("its mask names other bits than those of predicates")
    chosen = [o.value(Register(file, n)) << n for n in range(_PREDICATES) if mask >> n & 1]
    return _set(to, reduce(or_, chosen, a & ~mask & 0xFFFF_FFFF))


@_entry("R2P", "CUDA Binary Utilities: move register to predicate registers; those of a mask, each from its bit")
def _r2p(o: Operands) -> list[Effect]:
    a, mask = o.word(), o.immediate()
    o.end()
    if not 0 < mask < 1 << _PREDICATES:
        raise Lacks("its mask names other bits than those of predicates")
    return [Set(o.named_predicate(n), a >> n & number(1, 1)) for n in range(_PREDICATES) if mask >> n & 1]


_PREDICATES = 7
"""P0 to P6; P7 is PT."""


# --- integers --------------------------------------------------------------------------------------------------------


def _carries(o: Operands, *, most: int = 1) -> list[str]:
    """Carry-out predicates, none, one or two of them; PT is none."""
    carries = []
    while o.peek_predicate():
        carries.append(o.to_predicate())
    if len(carries) > 2 or (len(carries) == 2 and carries[1] and (most == 1 or not carries[0])):
        raise Lacks("two carries out")
    return [carry for carry in carries if carry]


def _with_carry(to: Sequence[str], carries: Sequence[str], total: Op) -> list[Effect]:
    """Give a register the low word of a 64-bit sum of words, and a predicate its bit 32."""
    return [*_set(to, low(total)), *(Set(carry, high(total) & 1) for carry in carries)]


def _iadd3(o: Operands) -> list[Effect]:
    to, carries = o.to(), _carries(o, most=2)
    # The carry of a difference is that of adding the complement and one: no borrow.
    negations = o.negations(3)
    words = [o.word(negation=not carries, complement=bool(carries)) for _ in range(3)]
    o.end()
    if not carries:
        return _set(to, reduce(add, words))
    first = wide(words[0]) + words[1]
    if len(carries) == 2:
        if negations:
            raise Lacks("two carries out of a difference")
        total = wide(low(first)) + words[2]
        return [*_set(to, low(total)), *_set_all((carries[0], high(first)), (carries[1], high(total)))]
    return _with_carry(to, carries, first + words[2] + negations if negations else first + words[2])


def _iadd3_x(o: Operands) -> list[Effect]:
    to, carries = o.to(), _carries(o)
    first, *words = [o.word(inversion=True) for _ in range(3)]
    words += [o.truth(), o.truth() if len(o) else FALSE]
    o.end()
    return _with_carry(to, carries, reduce(add, words, wide(first)))


_ADDS = "PTX ISA, add.cc and addc; the order of operands by experiment"
_entry(("IADD3", "UIADD3"), _ADDS)(_iadd3)
_entry(("IADD3.X", "UIADD3.X"), _ADDS)(_iadd3_x)


_gives("VIADD", "PTX ISA, add", add, SIGNED, SIGNED)
_gives("IADD", "PTX ISA, add; ptxas of CUDA 13.1 and later", add, SIGNED, SIGNED)
_SIGNED_PAIR, _SIGNED_WIDE = partial(PAIR, negation=True), partial(WIDE, negation=True)
_gives(("IADD.64", "UIADD.64"), "PTX ISA, add.s64", add, _SIGNED_PAIR, _SIGNED_WIDE, words=2, family="IADD.64")


@_entry("UIADD3.64", "PTX ISA, add.s64, of three")
def _uiadd3_64(o: Operands) -> list[Effect]:
    to, carries = o.to(2), _carries(o)
    a, b, c = o.pair(negation=True), o.wide(negation=True), o.wide(negation=True)
    o.end()
    if carries:
        raise Lacks("a carry out of 64 bits")
    return _set(to, a + b + c)


# .MOV, .SHL and .IADD only give the purpose of the multiplication: by one, by a power of two.
_MAD = ("IMAD", "IMAD.U32", "IMAD.MOV", "IMAD.MOV.U32", "IMAD.SHL", "IMAD.SHL.U32", "IMAD.IADD", "IMAD.IADD.U32")
_gives((*_MAD, "UIMAD", "UIMAD.U32"), "PTX ISA, mad.lo", lambda a, b, c: a * b + c, SIGNED, SIGNED, SIGNED)
_MADC = "PTX ISA, madc.lo; the carry's place by experiment"
_INVERTIBLE = partial(WORD, inversion=True)
_gives("IMAD.X", _MADC, lambda a, b, c, carry: a * b + c + carry, WORD, WORD, _INVERTIBLE, TRUTH)


def _carry(carries: Sequence[str], total: Op, added: Op) -> list[Effect]:
    """Set the carry of 64 bits: a sum that is less than what was added."""
    return [Set(carry, less(total, added)) for carry in carries]


def _imad_wide(extended: Value, *, carry: bool = False) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, carries = o.to(2), _carries(o)
        a, b, c = o.word(), o.word(), o.pair()
        total = extended(a) * extended(b) + c
        if carry:
            total += o.truth()
        o.end()
        if carry and carries:
            raise Lacks("a carry in and one out")
        return [*_set(to, total), *_carry(carries, total, c)]

    return emit


_entry(("IMAD.WIDE", "UIMAD.WIDE"), "PTX ISA, mad.wide.s32")(_imad_wide(wide_signed))
_WIDE_U32 = "PTX ISA, mad.wide.u32; a predicate is the carry out of 64 bits"
_entry(("IMAD.WIDE.U32", "UIMAD.WIDE.U32"), _WIDE_U32)(_imad_wide(wide))
_entry(
    ("IMAD.WIDE.U32.X", "UIMAD.WIDE.U32.X"),
    "PTX ISA, mad.wide.u32, with a carry in; the order of operands as of IADD3.X",
)(_imad_wide(wide, carry=True))


_MAD_HI_U32 = "PTX ISA, mad.hi.u32; it adds a pair before it takes the upper word: by experiment"


@_entry(("IMAD.HI.U32", "UIMAD.HI.U32"), _MAD_HI_U32)
def _imad_hi(o: Operands) -> list[Effect]:
    to, carries = o.to(), _carries(o)
    a, b, c = o.word(), o.word(), o.pair()
    o.end()
    total = wide(a) * wide(b) + c
    return [*_set(to, high(total)), *_carry(carries, total, c)]


_MAD_HI = "PTX ISA, mad.hi.s32; it adds a pair before it takes the upper word, as IMAD.HI.U32 does"
_gives("IMAD.HI", _MAD_HI, lambda a, b, c: high(wide_signed(a) * wide_signed(b) + c), WORD, WORD, PAIR)
_gives("IABS", "PTX ISA, abs.s32", lambda a: select(less_signed(a, ZERO), ZERO - a, a), WORD)


@_entry("SGXT", "PTX ISA, szext.clamp.s32: the lowest bits with the sign of the highest of them")
def _sgxt(o: Operands) -> list[Effect]:
    to, a, bits = o.to(), o.word(), o.immediate()
    o.end()
    if not 0 < bits <= 32:
        raise Lacks("a number of bits that is none or beyond 32")
    return _set(to, sign_of(a << 32 - bits, 32 - bits))


def _lea(o: Operands) -> list[Effect]:
    to, carries = o.to(), _carries(o)
    a, b, shift = o.word(), o.word(), o.immediate()
    o.end()
    return _with_carry(to, carries, wide(a << (shift & 31)) + b)


def _lea_hi(*, carry: bool, extended: bool) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, carries = o.to(), _carries(o)
        a, b = o.word(), o.word()
        upper = sign_of(a) if extended else o.word()
        shift = o.immediate()
        total = wide(high(pair(a, upper) << (shift & 31))) + b
        if carry:
            total += o.truth()
        o.end()
        return _with_carry(to, carries, total)

    return emit


_LEA = "CUDA Binary Utilities: load effective address; by experiment: (a << shift) + b, .HI of {c, a} << shift"
_entry(("LEA", "ULEA"), _LEA)(_lea)
_entry(("LEA.HI", "ULEA.HI"), _LEA)(_lea_hi(carry=False, extended=False))
_entry(("LEA.HI.X", "ULEA.HI.X"), _LEA)(_lea_hi(carry=True, extended=False))
_entry(("LEA.HI.SX32", "ULEA.HI.SX32"), _LEA)(_lea_hi(carry=False, extended=True))
_entry(("LEA.HI.X.SX32", "ULEA.HI.X.SX32"), _LEA)(_lea_hi(carry=True, extended=True))


def _shift(*, left: bool, wrap: bool, most: int, upper: bool, signed: bool) -> Value:
    def value(a: Op, by: Op, b: Op) -> Op:
        # The word that stays when the other one has left: a plain shift of one word.
        if not wrap and most == 32 and left != upper:
            return F["shift_word_left"](a, by) if left else F[f"shift_word_{'signed' if signed else 'right'}"](b, by)
        count = by & most - 1 if wrap else F["count"](by, number(most))
        sides = [] if left else [number(signed)]
        return F["shift_left" if left else "shift_right"](a, count, b, number(upper), *sides)

    return value


_SHF = "PTX ISA, shf, shl, shr; .HI is the upper word, counts stop at the type's width: by experiment"
for _left, _wrap, _upper in product((True, False), repeat=3):
    for _type, _most in (("U32", 32), ("S32", 32), ("U64", 64), ("S64", 64)):
        _opcode = f"SHF.{'L' if _left else 'R'}{'.W' if _wrap else ''}.{_type}{'.HI' if _upper else ''}"
        _shifted = _shift(left=_left, wrap=_wrap, most=_most, upper=_upper, signed=_type[0] == "S")
        _gives((_opcode, f"U{_opcode}"), _SHF, _shifted, WORD, WORD, WORD, family=_SHF)


def logic(table: int, *words: Op) -> Op:  # noqa: PLR0911 - one return a form
    """Any function of words; of three, bit ``4 * a + 2 * b + c`` of the table is its value (PTX ISA, lop3).

    A word that is known comes first: each of its bits then selects what the others are joined by.
    """
    if len(words) == 1:
        (only,) = words
        return [number(0, only.bits), ~only, only, number(-1, only.bits)][table]
    first, *rest = words
    known = next((at for at, word in enumerate(words) if word.name == "number"), 0)
    if known:
        places = 1 << len(rest) | 1 << len(rest) - known
        rows = (row if row & places in (0, places) else row ^ places for row in range(2 << len(rest)))
        table = sum((table >> row & 1) << at for at, row in enumerate(rows))
        first, rest[known - 1] = words[known], first
    ones = (1 << (1 << len(rest))) - 1
    upper, lower = table >> (1 << len(rest)), table & ones  # where the first has ones, and where it has none
    where, elsewhere = logic(upper, *rest), logic(lower, *rest)
    if upper == lower:
        return where
    if upper ^ lower == ones:
        return first ^ elsewhere if lower not in (0, ones) else first if upper else ~first
    if upper == ones:
        return first | elsewhere
    if lower == ones:
        return ~first | where
    if not (upper and lower):
        return first & where if upper else ~first & elsewhere
    return first & where | ~first & elsewhere


def _lop3(o: Operands) -> list[Effect]:
    test = o.to_predicate() if o.peek_predicate() else ""
    to, a, b, c, table, other = o.to(), o.word(), o.word(), o.word(), o.immediate(), o.truth()
    o.end()
    if not 0 <= table <= 255:
        raise Lacks(f"truth table {table:#x}")
    if other != FALSE:
        raise Lacks("its predicate is joined with another")
    bits = logic(table, a, b, c)
    return [*_set(to, bits), *_set_all((test, ~equal(bits, ZERO)))]


_entry(("LOP3.LUT", "ULOP3.LUT"), "PTX ISA, lop3; the predicate states that the result is not zero: by experiment")(
    _lop3
)


@_entry(
    ("PLOP3.LUT", "UPLOP3.LUT"), "as lop3 (PTX ISA) of predicates; the first table is the first result's: by experiment"
)
def _plop3(o: Operands) -> list[Effect]:
    first, second = o.to_predicate(), o.to_predicate()
    a, b, c = o.truth(), o.truth(), o.truth()
    tables = o.immediate(), o.immediate()
    o.end()
    if second:
        raise Lacks("a second result")
    return _set_all((first, logic(tables[0] & 255, a, b, c)))


def _prmt(o: Operands) -> list[Effect]:
    to, a = o.to(), o.word()
    if o.peek(Integer):
        selector = o.immediate()
        b = o.word()
        o.end()
        return _set(to, _permuted(a, selector, b))
    selector_register, b = o.word(), o.word()
    o.end()
    return _set(to, F["permute"](a, selector_register, b))


_entry(("PRMT", "UPRMT"), "PTX ISA, prmt, default mode; operands are in the order a, selector, b: by experiment")(_prmt)


def _permuted(a: Op, selector: int, b: Op) -> Op:
    """Return a permutation that is known: each source word shifted and masked, bytes that move by the same way at a
    time."""
    groups: dict[tuple[Op, int], int] = {}
    for byte in range(4):
        nibble = selector >> 4 * byte & 15
        if nibble & 8:
            return F["permute"](a, number(selector), b)
        moved = (a if nibble < 4 else b, byte - (nibble & 3))
        groups[moved] = groups.get(moved, 0) | 0xFF << 8 * byte
    parts = []
    for (source, by), mask in groups.items():
        if source == ZERO:
            continue
        shifted = source << 8 * by if by > 0 else source >> -8 * by
        parts.append(shifted if mask == 0xFFFF_FFFF else shifted & mask)
    return reduce(or_, parts) if parts else ZERO


# --- comparisons -----------------------------------------------------------------------------------------------------

_JOINED: dict[str, Value] = {"AND": lambda a, b: a & b, "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b}
_RELATIONS = ("LT", "EQ", "LE", "GT", "NE", "GE")


def _ordered(relation: str, below: Value, same: Value) -> Value:
    """Return a relation of two values, made of two."""
    return {
        "LT": below,
        "EQ": same,
        "LE": lambda a, b: ~below(b, a),
        "GT": lambda a, b: below(b, a),
        "NE": lambda a, b: ~same(a, b),
        "GE": lambda a, b: ~below(a, b),
    }[relation]


def _setp(opcodes: str | Iterable[str], source: str, test: Value, joined: str, *takes: Take, more: int = 0) -> None:
    """Enter opcodes with p = test op c, q = !test op c (PTX ISA, setp).

    ``more`` predicates come behind c, and are sources of the test behind the others.
    """

    def emit(o: Operands) -> list[Effect]:
        first, second = o.to_predicate(), o.to_predicate()
        sources, other, behind = [take(o) for take in takes], o.truth(), [o.truth() for _ in range(more)]
        o.end()
        holds = test(*sources, *behind)
        return _set_all((first, _JOINED[joined](holds, other)), (second, _JOINED[joined](~holds, other)))

    _entry(opcodes, source, family=(takes, more))(emit)


def _extended(relation: str, below: Value) -> Value:
    """Return a relation of 64 bits, by the upper words and the result of the lower ones."""
    if relation in ("NE", "EQ"):
        return lambda a, b, lower: ~equal(a, b) | lower if relation == "NE" else equal(a, b) & lower
    strictly = _ordered(relation[0] + "T", below, equal)
    return lambda a, b, lower: strictly(a, b) | equal(a, b) & lower


_UPPER = "the upper words of a 64-bit comparison, after the lower ones: by experiment"
for _relation, _name in product(_RELATIONS, _JOINED):
    for _type, _below in (("", less_signed), (".U32", less), (".S64", less_signed), (".U64", less)):
        _opcode, _test = f"ISETP.{_relation}{_type}.{_name}", _ordered(_relation, _below, equal)
        if "64" in _type:
            _setp((_opcode, f"U{_opcode}"), "PTX ISA, setp.s64", _test, _name, PAIR, WIDE)
        else:
            _setp((_opcode, f"U{_opcode}"), "PTX ISA, setp", _test, _name, WORD, WORD)
            _with_lower = (f"{_opcode}.EX", f"U{_opcode}.EX")
            _setp(_with_lower, _UPPER, _extended(_relation, _below), _name, WORD, WORD, more=1)


def _of_floats(relation: str, a: Op, b: Op) -> Op:
    """Return a relation of two floats: one that ends in U, and NE, holds as stated where one is NaN (PTX ISA, setp)."""
    below, most, same = F["single_less"], F["single_less_equal"], F["single_equal"]
    return {
        "LT": lambda: below(a, b),
        "LE": lambda: most(a, b),
        "GT": lambda: below(b, a),
        "GE": lambda: most(b, a),
        "EQ": lambda: same(a, b),
        "NE": lambda: below(a, b) | below(b, a),
        "LTU": lambda: ~most(b, a),
        "LEU": lambda: ~below(b, a),
        "GTU": lambda: ~most(a, b),
        "GEU": lambda: ~below(a, b),
        "EQU": lambda: ~(below(a, b) | below(b, a)),
        "NEU": lambda: ~same(a, b),
        "NUM": lambda: ~(F["is_nan"](a) | F["is_nan"](b)),
        "NAN": lambda: F["is_nan"](a) | F["is_nan"](b),
    }[relation]()


_UNORDERED = (*_RELATIONS, *(f"{relation}U" for relation in _RELATIONS))
for _relation, _name in product((*_UNORDERED, "NUM", "NAN"), _JOINED):
    _fsetp = partial(_of_floats, _relation)
    _opcode = f"FSETP.{_relation}.{_name}"
    _setp((_opcode, f"U{_opcode}"), "PTX ISA, setp", _fsetp, _name, SINGLE, SINGLE)
    _setp(f"FSETP.{_relation}.FTZ.{_name}", "PTX ISA, setp.ftz", _fsetp, _name, FLUSHED, FLUSHED)


@_entry("VIADDMNMX", "CUDA Binary Utilities: add and minimum or maximum; the order of operands as of VIADD and VIMNMX")
def _viaddmnmx(o: Operands) -> list[Effect]:
    to, a, b, c, least = o.to(), o.word(negation=True), o.word(negation=True), o.word(), o.truth()
    o.end()
    return _set(to, either(a + b, c, least=least, signed=True))


def _least_of_pairs(*, signed: bool) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        results = o.to_predicate(), o.to_predicate()
        to, a, b, least, other = o.to(2), o.pair(), o.pair(), o.truth(), o.truth()
        o.end()
        if any(results) or other != FALSE:
            raise Lacks("with a predicate as result, or another operand than !PT behind")
        return _set(to, either(a, b, least=least, signed=signed))

    return emit


_PAIRS = "PTX ISA, {}; the predicate selects which, PT the minimum: by experiment"
_entry(("IMNMX.U64", "UIMNMX.U64"), _PAIRS.format("min.u64, max.u64"))(_least_of_pairs(signed=False))
_entry(("IMNMX.S64", "UIMNMX.S64"), _PAIRS.format("min.s64, max.s64"))(_least_of_pairs(signed=True))


_MINIMUM = "PTX ISA, min and max; the predicate selects which, PT the minimum: by experiment"
for _minima, _signed in (
    (("VIMNMX", "VIMNMX.S32", "IMNMX", "UVIMNMX", "UVIMNMX.S32"), True),
    (("VIMNMX.U32", "IMNMX.U32", "UVIMNMX.U32"), False),
):

    def _least(a: Op, b: Op, least: Op, signed: bool = _signed) -> Op:
        return either(a, b, least=least, signed=signed)

    _gives(_minima, _MINIMUM, _least, WORD, WORD, TRUTH, family=(_MINIMUM, _signed))


_NAN = number(0x7FFF_FFFF)
"""The NaN that arithmetic gives."""

# --- single precision ------------------------------------------------------------------------------------------------


def _flushed(name: str) -> Value:
    return lambda *sources: F["flush"](F[name](*sources))


for _opcode, _function, _ptx, _sources in (
    ("FADD", "fadd", "add", 2),
    ("FMUL", "fmul", "mul", 2),
    ("FFMA", "ffma", "fma", 3),
):
    _gives((_opcode, f"U{_opcode}"), f"PTX ISA, {_ptx}.rn.f32", F[_function], *[SINGLE] * _sources)
    _ftz = f"PTX ISA, {_ptx}.rn.ftz.f32"
    _gives(f"{_opcode}.FTZ", _ftz, _flushed(_function), *[FLUSHED] * _sources, family=(_opcode, "FTZ"))

for _rounding in ("rm", "rp", "rz"):
    _ffma = F[f"ffma_{_rounding}"]
    _gives(f"FFMA.{_rounding.upper()}", f"PTX ISA, fma.{_rounding}.f32", _ffma, SINGLE, SINGLE, SINGLE)


def _fmul_rz(a: Op, b: Op) -> Op:
    return F["ffma_rz"](a, b, number(1 << 31))


_gives("FMUL.RZ", "PTX ISA, mul.rz.f32: a product whose sum with -0 is rounded once", _fmul_rz, SINGLE, SINGLE)


def _two(form: Value, sources: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, values = o.to(2), [o.two_singles() for _ in range(sources)]
        o.end()
        lower, upper = (form(*half) for half in zip(*values, strict=True))
        return _set(to, pair(lower, upper))

    return emit


_TWO = "PTX ISA, {}.f32x2 (SM10x); HI_LO is the order of the registers, as ptxas uses them (test_pairs.py)"
_entry("FADD2", _TWO.format("add.rn"))(_two(F["fadd"], 2))
_entry("FMUL2", _TWO.format("mul.rn"))(_two(F["fmul"], 2))
_entry("FMUL2.RZ", _TWO.format("mul.rz"))(_two(_fmul_rz, 2))
_entry("FFMA2", _TWO.format("fma.rn"))(_two(F["ffma"], 3))


_FHFMA = "PTX ISA, fma.rn.f32.bf16: two bfloat16 times one another, and a float; no name is the lower half"
_gives("FHFMA.BF16", _FHFMA, F["ffma"], Operands.brain, Operands.brain, SINGLE, family="FHFMA.BF16")

_RCP = "PTX ISA, rcp.approx.ftz.f32: at most one unit in the last place off; see sass_rcp"
_gives("MUFU.RCP", _RCP, F["rcp"], SINGLE, grid=True)
_EX2 = "PTX ISA, ex2.approx.ftz.f32; approximate: here the rounded value, for every target alike"
_gives("MUFU.EX2", _EX2, F["ex2"], SINGLE, grid=True)


@_entry("MUFU.RSQ", "PTX ISA, rsqrt.approx.ftz.f32, of NaN: how the compiler makes one; else the rounded value")
def _mufu_rsq(o: Operands) -> list[Effect]:
    to = o.to()
    if o.peek(Real):
        o.not_a_number()
        o.end()
        return _set(to, _NAN)
    o.only_in_a_grid()
    a = o.single()
    o.end()
    return _set(to, F["rsq"](a))


@_entry("FCHK", "CUDA Binary Utilities: floating-point range check, for a division; see sass_fchk")
def _fchk(o: Operands) -> list[Effect]:
    to, a, b = o.to_predicate(), o.single(), o.single()
    o.end()
    return _set_all((to, F["fchk"](a, b)))


_FMNMX = "PTX ISA, min.f32 and max.f32; the predicate selects which"
_gives("FMNMX", _FMNMX, F["fmnmx"], SINGLE, SINGLE, TRUTH)
_gives("FMNMX.FTZ", "PTX ISA, min.ftz.f32 and max.ftz.f32", F["fmnmx"], FLUSHED, FLUSHED, TRUTH)


def _of_three(name: str) -> Value:
    return lambda a, b, c, least: F[name](F[name](a, b, least), c, least)


_FMNMX3 = "PTX ISA, min.f32 and max.f32 of three (SM10x); the predicate selects which"
_gives("FMNMX3", _FMNMX3, _of_three("fmnmx"), SINGLE, SINGLE, SINGLE, TRUTH, family="FMNMX3")


def _fmnmx_nan(a: Op, b: Op, least: Op) -> Op:
    return select(F["is_nan"](a) | F["is_nan"](b), _NAN, F["fmnmx"](a, b, least))


_gives("FMNMX.NAN", "PTX ISA, min.NaN.f32 and max.NaN.f32: NaN if either source is", _fmnmx_nan, SINGLE, SINGLE, TRUTH)

_XORSIGN = (
    "PTX ISA, min and max with .xorsign.abs; the sign of one NaN counts, and the result of two has none: by experiment"
)
for _opcode, _in_bars in (
    ("FMNMX", partial(Operands.in_bars, halves=False)),
    ("HMNMX2", partial(Operands.in_bars, halves=True)),
):
    _gives(f"{_opcode}.XORSIGN", _XORSIGN, F[f"{_opcode.lower()}_xorsign"], _in_bars, _in_bars, TRUTH)


# --- half precision --------------------------------------------------------------------------------------------------


_gives("HADD2", "PTX ISA, add.f16x2", F["hadd2"], HALVES, HALVES)
_gives("HMUL2", "PTX ISA, mul.f16x2", F["hmul2"], HALVES, HALVES)
_BMUL2 = "PTX ISA, mul.rn.bf16x2: adding -0 changes nothing"
_gives("HMUL2.BF16_V2", _BMUL2, lambda a, b: F["bfma2"](a, b, number(0x8000_8000)), BRAINS, BRAINS)
_BADD2 = "PTX ISA, add.rn.bf16x2: multiplying by one changes nothing"
_gives("HADD2.BF16_V2", _BADD2, lambda a, b: F["bfma2"](a, number(0x3F80_3F80), b), BRAINS, BRAINS)
_BFMA2 = "PTX ISA, fma.rn.bf16x2; subnormals are kept"
_gives(("HFMA2.BF16_V2", "HFMA2.MMA.BF16_V2"), _BFMA2, F["bfma2"], BRAINS, BRAINS, BRAINS)


@_entry(("HFMA2", "HFMA2.MMA"), "PTX ISA, fma.rn.f16x2; of two immediates the first is the high half: by experiment")
def _hfma2(o: Operands) -> list[Effect]:
    to = o.to()
    zero = o.is_zero(negated=True)
    a = o.halves()
    zero = zero and o.is_zero(negated=False)
    b = o.halves()
    if zero and o.peek(Real):  # -0 * 0 + an immediate: how the compiler moves one
        c = o.halves()
        o.end()
        return _set(to, c)
    product = o.is_zero(negated=True)
    c = o.halves()
    o.end()
    # Adding -0 changes nothing, not even the sign of a zero.
    return _set(to, F["hmul2"](a, b) if product else F["hfma2"](a, b, c))


_HMNMX2 = "PTX ISA, min.f16x2 and max.f16x2; the predicate selects which"
_gives("HMNMX2", _HMNMX2, F["hmnmx2"], HALVES, HALVES, TRUTH)
_gives("HMNMX2.BF16_V2", "PTX ISA, min.bf16x2 and max.bf16x2", F["bmnmx2"], BRAINS, BRAINS, TRUTH)
for _opcode, _type, _function, _take in (
    ("VHMNMX", "f16x2", "hmnmx2", HALVES),
    ("VHMNMX.BF16_V2", "bf16x2", "bmnmx2", BRAINS),
):
    _of = f"PTX ISA, min.{_type} and max.{_type} of three: by experiment"
    _gives(_opcode, _of, _of_three(_function), _take, _take, _take, TRUTH, family=_opcode)


def _hsetp2(relation: str, joined: str, *, brain: bool) -> Emit:
    single = F["single_of_bfloat16" if brain else "single_of_half"]

    def emit(o: Operands) -> list[Effect]:
        first, second = o.to_predicate(), o.to_predicate()
        a, b, other = o.halves(brain=brain), o.halves(brain=brain), o.truth()
        o.end()
        lower = _of_floats(relation, single(a & 0xFFFF), single(b & 0xFFFF))
        upper = _of_floats(relation, single(a >> 16), single(b >> 16))
        return _set_all((first, _JOINED[joined](lower, other)), (second, _JOINED[joined](upper, other)))

    return emit


for _relation, _name, _brain in product(_UNORDERED, _JOINED, (False, True)):
    _entry(
        f"HSETP2{'.BF16_V2' if _brain else ''}.{_relation}.{_name}",
        "PTX ISA, setp.f16x2 and setp.bf16x2; the first result is that of the low halves: by experiment",
    )(_hsetp2(_relation, _name, brain=_brain))


@_entry(
    "HADD2.F32", "PTX ISA, cvt.f32.f16: the sum with -0 of one half, widened; a NaN becomes canonical: by experiment"
)
def _hadd2_f32(o: Operands) -> list[Effect]:
    to = o.to()
    before = o.is_zero(negated=True)
    if before:
        o.halves()
    half = o.one_half()
    if not before:
        if not o.is_zero(negated=True):
            raise Lacks("it adds something else than -0")
        o.halves()
    o.end()
    return _set(to, F["canonical_single_of_half"](half))


# --- conversions -----------------------------------------------------------------------------------------------------

_PACKED = "PTX ISA, {}; the first source is the high half"
_TO_HALF, _TO_BFLOAT16 = _PACKED.format("cvt.rn.f16x2.f32"), _PACKED.format("cvt.rn.bf16x2.f32")
_ZERO = _PACKED.format("cvt.rz.f16x2.f32: beyond the largest half, that; infinity stays")
for _opcodes, _source, _function in (
    (("F2FP.F16.F32.PACK_AB", "F2FP.PACK_AB"), _TO_HALF, "halves_of_singles"),
    (("F2FP.F16.F32.PACK_AB.RZ", "F2FP.PACK_AB.RZ"), _ZERO, "halves_toward_zero"),
    (("F2FP.BF16.F32.PACK_AB", "F2FP.BF16.PACK_AB"), _TO_BFLOAT16, "bfloat16s_of_singles"),
):
    _gives(_opcodes, _source, F[_function], SINGLE, SINGLE)


def _merged(function: str, bits: int, *, grid: bool = False) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        if grid:
            o.only_in_a_grid()
        to, first, second = o.to(), o.single(), o.single()
        alone = o.is_zero(negated=False)
        c = o.word()
        o.end()
        codes = F[function](first) << bits | F[function](second)
        return _set(to, codes if alone else c << 2 * bits | codes)

    return emit


_entry(
    "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C",
    "the specification, by definition (PTX ISA, cvt.rn.satfinite.e2m1x2.f32): executing it proves nothing of silicon",
)(_merged("to_e2m1", 4))


_STOCHASTIC = (
    "the specification, by definition (PTX ISA, cvt.rs.satfinite.e2m1x4.f32): executing it proves nothing of silicon. "
    "It is two of these: a and b with the random bits as C, e and f with the first one's result. Since the merge moves "
    "C up by a byte, both take the high bytes of C's halves, and e and f so get the low bytes of the random bits; that "
    "the first source has the upper half is read from the figure of the random bits alone"
)
_gives("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS", _STOCHASTIC, F["stochastic"], SINGLE, SINGLE, WORD)

for _form in ("e4m3", "e5m2", "e2m3", "e3m2"):
    _narrow = f"PTX ISA, cvt.rn.satfinite.{_form}x2.f32"
    _entry(f"F2FP.SATFINITE.{_form.upper()}.F32.PACK_AB_MERGE_C", _narrow)(_merged(f"to_{_form}", 8))
_entry(
    "F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP", "PTX ISA, cvt.rp.satfinite.ue8m0x2.f32; no negative number is defined"
)(_merged("to_ue8m0", 8, grid=True))

_UNPACKED = "PTX ISA, cvt.rn.{}: exact; the low {} gives the low half"


def _unpacked(name: str, bits: int) -> Value:
    mask = (1 << bits) - 1
    return lambda codes: F["pack"](F[name](codes & mask), F[name](codes >> bits & mask))


_nibbles = _UNPACKED.format("f16x2.e2m1x2", "nibble")
_gives("F2FP.F16.E2M1.UNPACK_B", _nibbles, _unpacked("half_of_e2m1", 4), Operands.byte, family="F2FP.F16.E2M1")
for _opcode, _function, _types in (
    ("F2FP.F16.E4M3.UNPACK_B", "half_of_e4m3", "f16x2.e4m3x2"),
    ("F2FP.F16.E5M2.UNPACK_B", "half_of_e5m2", "f16x2.e5m2x2"),
    ("F2FP.F16.E2M3.UNPACK_B", "half_of_e2m3", "f16x2.e2m3x2"),
    ("F2FP.F16.E3M2.UNPACK_B", "half_of_e3m2", "f16x2.e3m2x2"),
    ("F2FP.BF16.E8.UNPACK_B", "bfloat16_of_ue8m0", "bf16x2.ue8m0x2"),
):
    _source, _bytes = _UNPACKED.format(_types, "byte"), _unpacked(_function, 8)
    _gives(_opcode, _source, _bytes, Operands.two_bytes, grid=_opcode == "F2FP.BF16.E8.UNPACK_B", family=_opcode)

_F2I = "PTX ISA, cvt.rni.s32.f32: to nearest even, saturated, NaN is 0; .NTZ by experiment"
_gives("F2I.NTZ", _F2I, F["f2i"], SINGLE)

_TO_U32 = "PTX ISA, cvt.rzi.{}u32.f32: toward zero, saturated, NaN is 0"
_gives(("F2I.U32.TRUNC.NTZ", "UF2I.U32.TRUNC.NTZ"), _TO_U32.format(""), F["f2u"], SINGLE)
_gives(("F2I.FTZ.U32.TRUNC.NTZ", "UF2I.FTZ.U32.TRUNC.NTZ"), _TO_U32.format("ftz."), F["f2u"], FLUSHED)


_gives(("I2F.RP", "I2F.S32.RP", "UI2F.RP"), "PTX ISA, cvt.rp.f32.s32", F["single_of_s32_upward"], WORD)
_gives(("I2F.U32.RP", "UI2F.U32.RP"), "PTX ISA, cvt.rp.f32.u32", F["single_of_u32_upward"], WORD)
_gives("I2F.U64.RP", "PTX ISA, cvt.rp.f32.u64", F["single_of_u64_upward"], PAIR, grid=True)
_TO_U64 = "PTX ISA, cvt.rzi.u64.f32: toward zero, saturated, NaN is 2^63"
_gives("F2I.U64.TRUNC", _TO_U64, F["f2u_64"], SINGLE, words=2)


def _lower(name: str) -> Value:
    """Return a conversion to a low half; of the high one nothing is known."""
    return lambda source: F["pack"](F[name](source), POISON >> 16)


_LOW = "PTX ISA, cvt.{}: the low half; of the high one nothing is documented, so it is poison"
_gives("I2F.BF16", _LOW.format("rn.bf16.s32"), _lower("bfloat16_of_s32"), WORD, family="I2F.BF16")
_gives(("I2FP.F32.U32", "UI2FP.F32.U32"), "PTX ISA, cvt.rn.f32.u32", F["single_of_u32"], WORD)
_gives(("I2FP.F32.S32", "UI2FP.F32.S32"), "PTX ISA, cvt.rn.f32.s32", F["single_of_s32"], WORD)
_gives("F2F.F16.F32", _LOW.format("rn.f16.f32"), _lower("to_half"), SINGLE, family="F2F.F16.F32")
_gives("F2F.BF16.F32", _LOW.format("rn.bf16.f32"), _lower("to_bfloat16"), SINGLE, family="F2F.BF16.F32")
_UPWARD = "PTX ISA, cvt.rp.bf16.f32, as F2F.BF16.F32: the float that is not below"
_gives("F2F.BF16.F32.RP", _UPWARD, _lower("to_bfloat16_upward"), SINGLE, grid=True, family="F2F.BF16.F32.RP")
_F64 = "PTX ISA, cvt.f64.f32: exact; a NaN keeps its sign and payload: by experiment"
_gives("F2F.F64.F32", _F64, F["double_of_single"], SINGLE, words=2)

_NARROW = "PTX ISA, cvt.{}.f32.f64; a NaN keeps its sign and payload, as on an H100, of which no golden digest is kept"
for _opcode, _rounding in (("F2F.F32.F64", "rn"), ("F2F.F32.F64.RZ", "rz")):

    def _narrowed(source: Op, toward_zero: int = _rounding == "rz") -> Op:
        return F["single_of_double"](source, number(toward_zero))

    _gives(_opcode, _NARROW.format(_rounding), _narrowed, PAIR, family=_opcode)
