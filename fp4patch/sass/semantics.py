"""Semantics of each instruction as C: one entry per opcode with its modifiers, each with the source of its meaning.

If NVIDIA documents the operation (PTX ISA 9.x; CUDA Binary Utilities' instruction set reference names the opcodes), the
entry cites the section. Machine code's own conventions, such as the order of operands, are not documented: "by
experiment" means that the golden digests of a real GPU (``tests/sass/golden``) decide. An opcode, modifier or
operand form without an entry is refused by name, since a guess could hide an error.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from fp4patch.sass.listing import Integer, Real, Register
from fp4patch.sass.operands import Lacks, Operands, hexadecimal

Emit = Callable[[Operands], list[str]]
"""C statements for an instruction's operands. All sources are read before a destination is written."""


@dataclass(frozen=True)
class Semantics:
    """Semantics of an opcode with its modifiers."""

    emit: Emit
    source: str
    """Source of the entry; "by experiment" if it is not documented."""
    family: object = None
    """Equal for entries that differ in a number, a width or a relation alone."""


TABLE: dict[str, Semantics] = {}
"""By opcode with modifiers, as the disassembler writes it."""


def _entry(opcodes: str | Iterable[str], source: str, family: object = None) -> Callable[[Emit], Emit]:
    def add(emit: Emit) -> Emit:
        for opcode in [opcodes] if isinstance(opcodes, str) else opcodes:
            assert opcode not in TABLE, opcode
            TABLE[opcode] = Semantics(emit, source, family or emit.__code__)
        return emit

    return add


def _set(to: Sequence[str], value: str) -> list[str]:
    """Return one word to a register, or nowhere."""
    return [f"{to[0]} = {value};"] if to else []


def _set_pair(to: Sequence[str], value: str) -> list[str]:
    return (
        [f"const uint64_t wide = {value};", f"{to[0]} = lift_low(wide);", f"{to[1]} = lift_high(wide);"] if to else []
    )


# --- entries with one result ------------------------------------------------------------------------------------------

Take = Callable[[Operands], str]
"""Takes the next operand as C."""
WORD, PAIR, WIDE, TRUTH = Operands.word, Operands.pair, Operands.wide, Operands.truth
SINGLE, HALVES = Operands.single, Operands.halves
SIGNED, FLUSHED, BRAINS = partial(WORD, negation=True), partial(SINGLE, flush=True), partial(HALVES, brain=True)


def _gives(
    opcodes: str | Iterable[str],
    source: str,
    value: str,
    *takes: Take,
    words: int = 1,
    grid: bool = False,
    family: object = None,
) -> None:
    """Enter opcodes whose destination of 1 or 2 words gets a value: C with ``{}`` for each source, in their order.

    ``grid``: they are in the table of whole warps alone.
    """

    def emit(o: Operands) -> list[str]:
        if grid:
            o.only_in_a_grid()
        to, sources = o.to(words), [take(o) for take in takes]
        o.end()
        return (_set if words == 1 else _set_pair)(to, value.format(*sources))

    _entry(opcodes, source, family=family or (value, grid))(emit)


# --- moves -----------------------------------------------------------------------------------------------------------


def _wide_immediate(o: Operands) -> str:
    return f"UINT64_C({o.immediate():#x})" if o.peek(Integer) else o.pair()


def _some_single(o: Operands) -> str:
    """Take a float, of which the disassembler does not print the bits if it is an immediate NaN."""
    return o.some_nan() if o.grid and o.peek(Real) else o.single()


_gives(("MOV", "UMOV"), "PTX ISA, mov", "{}", WORD)
_gives(("MOV.64", "UMOV.64"), "PTX ISA, mov.b64", "{}", _wide_immediate, words=2)
_gives(("SEL", "USEL"), "PTX ISA, selp", "{2} ? {0} : {1}", WORD, WORD, TRUTH)
_gives(("SEL.64", "USEL.64"), "PTX ISA, selp.b64", "{2} ? {0} : {1}", WIDE, WIDE, TRUTH, words=2)
_FSEL = "PTX ISA, selp; a sign or bars on a source change its sign bit alone: by experiment"
_gives("FSEL", _FSEL, "{2} ? {0} : {1}", SINGLE, _some_single, TRUTH)


_SPECIAL = {
    f"SR_{name}.{axis}": f"launch->{name.lower()}_{axis.lower()}" for name in ("TID", "CTAID") for axis in "XYZ"
}
_SPECIAL |= {"SR_LANEID": "launch->laneid", "SR_CgaCtaId": "0u"}
_OF_ONE_THREAD = ("SR_TID.X", "SR_CTAID.X")


def _special(o: Operands) -> list[str]:
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
    def emit(o: Operands) -> list[str]:
        to, register = o.to(words), o.special()
        o.end()
        if register != "SRZ":
            raise Lacks(f"special register {register}")
        return [f"{one} = 0u;" for one in to]

    return emit


_entry("CS2R", "CUDA Binary Utilities: move special register to register; SRZ is zero, in a pair: by experiment")(
    _zero(2)
)
_entry("CS2R.32", "CUDA Binary Utilities: move special register to register; SRZ is zero")(_zero(1))


def _load_constant(words: int) -> Emit:
    def emit(o: Operands) -> list[str]:
        to, place = o.to(words), o.constant()
        o.end()
        return [f"{register} = {o.loaded(place, step)};" for step, register in enumerate(to)]

    return emit


_LOADS_CONSTANTS = "PTX ISA, ld.param; the bank's layout by experiment"
_entry(("LDC", "LDCU", "ULDC"), _LOADS_CONSTANTS)(_load_constant(1))
_entry(("LDC.64", "LDCU.64", "ULDC.64"), _LOADS_CONSTANTS)(_load_constant(2))
_entry(("LDC.128", "LDCU.128"), _LOADS_CONSTANTS)(_load_constant(4))


def _load(bits: int) -> Emit:
    def emit(o: Operands) -> list[str]:
        to, address = o.to(max(1, bits // 32)), o.address()
        o.end()
        if bits < 32:
            return [f"{register} = lift_load_{bits}({address});" for register in to]
        return [
            f"const uint64_t from = {address};",
            *(f"{register} = lift_load_32(from + {4 * step});" for step, register in enumerate(to)),
        ]

    return emit


def _store(bits: int) -> Emit:
    def emit(o: Operands) -> list[str]:
        address = o.address()
        values = o.values(max(1, bits // 32))
        o.end()
        if bits < 32:
            return [f"lift_store_{bits}({address}, (uint{bits}_t){values[0]});"]
        return [
            f"const uint64_t there = {address};",
            *(f"lift_store_32(there + {4 * step}, {value});" for step, value in enumerate(values)),
        ]

    return emit


@_entry(("LDC.U8", "LDCU.U8", "ULDC.U8"), _LOADS_CONSTANTS)
def _load_constant_byte(o: Operands) -> list[str]:
    to, place = o.to(), o.constant()
    o.end()
    word = o.loaded(replace(place, offset=place.offset & ~3), 0)
    return _set(to, f"{word} >> {8 * (place.offset & 3)} & 255u")


for _suffix, _bits in ((".U8", 8), (".U16", 16), ("", 32), (".64", 64), (".128", 128)):
    _entry(
        [f"LDG.E{_suffix}{kind}" for kind in ("", ".CONSTANT", ".SYS", ".CONSTANT.SYS")],
        "PTX ISA, ld.global; .SYS is the scope in which it is ordered",
    )(_load(_bits))
    _entry((f"STG.E{_suffix}", f"STG.E{_suffix}.SYS"), "PTX ISA, st.global")(_store(_bits))


@_entry(
    ("LDG.E.ENL2.256", "LDG.E.ENL2.256.CONSTANT"),
    "PTX ISA, ld.global.v8.b32; the second group is from the lower address, as ptxas uses it (test_pairs.py)",
)
def _load_256(o: Operands) -> list[str]:
    upper, lower, address = o.to(4), o.to(4), o.address()
    o.end()
    loads = [f"{register} = lift_load_32(from + {4 * step});" for step, register in enumerate([*lower, *upper])]
    return [f"const uint64_t from = {address};", *loads]


def _shared(bits: int, *, store: bool, memory: str = "lift_shared") -> Emit:
    words = max(1, bits // 32)

    def emit(o: Operands) -> list[str]:
        o.only_in_a_grid()
        to = [] if store else o.to(words)
        place = o.shared_address()
        values = o.values(words) if store else to
        o.end()
        size = min(bits, 32)
        there = [f"{memory}(launch, at + {4 * step}, {size // 8})" for step in range(words)]
        moves = [
            f"*(uint{size}_t *){where} = (uint{size}_t){value};" if store else f"{value} = *(uint{size}_t *){where};"
            for where, value in zip(there, values, strict=False)
        ]
        return [f"const uint32_t at = {place};", *moves]

    return emit


for _suffix, _bits in ((".U8", 8), (".U16", 16), ("", 32), (".64", 64), (".128", 128)):
    _entry((f"LDS{_suffix}", f"LDS.U{_suffix}"), "PTX ISA, ld.shared; sm_75 has .U at all of them")(
        _shared(_bits, store=False)
    )
    _entry(f"STS{_suffix}", "PTX ISA, st.shared")(_shared(_bits, store=True))
    _entry((f"LDL{_suffix}", f"LDL.LU{_suffix}"), "PTX ISA, ld.local; .LU is the last use of a spilled register")(
        _shared(_bits, store=False, memory="lift_local")
    )
    _entry(f"STL{_suffix}", "PTX ISA, st.local")(_shared(_bits, store=True, memory="lift_local"))


# --- other threads ---------------------------------------------------------------------------------------------------


def _exchange(o: Operands, kind: str, *values: str) -> str:
    """Wait for the other threads. Execution goes on behind this statement."""
    o.only_in_a_grid()
    return f"LIFT_EXCHANGE({o.at:x}, {', '.join([kind, *values])});"


def _shfl(mode: str) -> Emit:
    def emit(o: Operands) -> list[str]:
        inside, to, value, b, c = o.to_predicate(), o.to(), o.word(), o.word(), o.word()
        o.end()
        return [
            _exchange(o, f"LIFT_SHFL_{mode}", value, b, c),
            *_set(to, "lane->result"),
            *([f"{inside} = lane->inside;"] if inside else []),
        ]

    return emit


for _mode in ("UP", "DOWN", "BFLY", "IDX"):
    _entry(f"SHFL.{_mode}", "PTX ISA, shfl.sync; the order of operands by experiment")(_shfl(_mode))


@_entry(("BAR.SYNC", "BAR.SYNC.DEFER_BLOCKING"), "PTX ISA, barrier.sync of all threads of a block")
def _bar_sync(o: Operands) -> list[str]:
    number, threads = o.immediate(), o.immediate() if len(o) else None
    if number and threads is None:
        raise Lacks("another barrier than 0")
    o.end()
    size = " * ".join(f"lift_constant(launch, {o.layout.block_size + 4 * axis:#x}u)" for axis in range(3))
    some = [] if threads is None else [f'if ({size} != {threads}u) lift_stray("barrier of some threads", 0, 0);']
    return [*some, _exchange(o, "LIFT_BARRIER", "0", "0", "0")]


@_entry("ELECT", "PTX ISA, elect.sync: one thread of a warp, here the first; the mask is not used")
def _elect(o: Operands) -> list[str]:
    o.only_in_a_grid()
    to, mask, among = o.to_predicate(), o.to(), o.truth()
    o.end()
    if mask or among != "1":
        raise Lacks("the threads to choose from")
    return [f"{to} = launch->laneid == 0;"] if to else []


_R2UR = "CUDA Binary Utilities: a register that all threads of a warp agree on, to a uniform one"
_gives("R2UR", _R2UR, "{}", WORD, grid=True)


def _atoms(o: Operands) -> list[str]:
    o.only_in_a_grid()
    to, place = o.to(), o.shared_address()
    by = o.word() if len(o) else "1u"
    o.end()
    there = [f"uint32_t *there = (uint32_t *)lift_shared(launch, {place}, 4);"]
    return [*there, "const uint32_t old = *there;", f"*there = old + {by};", *_set(to, "old")]


_entry(("ATOMS.ADD", "ATOMS.POPC.INC.32"), "PTX ISA, atom.shared.add; .INC adds one for each thread")(_atoms)


@_entry(
    ("NOP", "ACQBULK", "PREEXIT", "WARPSYNC.ALL"),
    "CUDA Binary Utilities: no operation; PTX ISA, griddepcontrol, bar.warp.sync",
)
def _nop(o: Operands) -> list[str]:
    o.end()
    return []


@_entry("BREAK.RELIABLE", "CUDA Binary Utilities: break out of a convergence barrier; nothing for one thread alone")
def _break(o: Operands) -> list[str]:
    o.barrier()
    o.end()
    return []


@_entry(
    "BMOV.32.CLEAR",
    "CUDA Binary Utilities: move convergence barrier state, to RZ and so nowhere; ptxas writes it before each BSSY for "
    "sm_75. Nothing is assumed of the barrier until then: a BSYNC between the two is refused",
)
def _bmov_clear(o: Operands) -> list[str]:
    if not o.is_zero(negated=False):
        raise Lacks("it keeps the threads that wait, which is no value of one thread")
    o.word()
    o.barrier()
    o.end()
    return []


@_entry("P2R", "CUDA Binary Utilities: move predicate register to register; those of a mask, each at its bit")
def _p2r(o: Operands) -> list[str]:
    to, a, mask = o.to(), o.word(), o.immediate()
    o.end()
    if not 0 < mask < 1 << _PREDICATES:
        raise Lacks("its mask names other bits than those of predicates")
    chosen = [f"{o.value(Register('P', n))} << {n}" for n in range(_PREDICATES) if mask >> n & 1]
    return _set(to, " | ".join([f"({a} & ~{mask:#x}u)", *(f"({one})" for one in chosen)]))


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


def _with_carry(to: Sequence[str], carries: Sequence[str], total: str) -> list[str]:
    """Return a 64-bit sum of words: the low word, and its bit 32."""
    if not carries:
        return _set(to, f"(uint32_t)({total})")
    carry = f"{carries[0]} = (uint32_t)(sum >> 32) & 1u;"
    return [f"const uint64_t sum = {total};", *_set(to, "(uint32_t)sum"), carry]


def _iadd3(o: Operands) -> list[str]:
    to, carries = o.to(), _carries(o, most=2)
    # The carry of a difference is that of adding the complement and one: no borrow.
    negations = o.negations(3)
    words = [o.word(negation=not carries, complement=bool(carries)) for _ in range(3)]
    o.end()
    total = " + ".join(f"(uint64_t){word}" for word in words)
    if len(carries) == 2:
        if negations:
            raise Lacks("two carries out of a difference")
        first = (
            f"const uint64_t first = (uint64_t){words[0]} + {words[1]}, sum = (uint64_t)(uint32_t)first + {words[2]};"
        )
        both = [f"{carry} = (uint32_t)({of} >> 32);" for carry, of in zip(carries, ("first", "sum"), strict=True)]
        return [first, *_set(to, "(uint32_t)sum"), *both]
    return _with_carry(to, carries, f"{total} + {negations}" if carries and negations else total)


def _iadd3_x(o: Operands) -> list[str]:
    to, carries = o.to(), _carries(o)
    words = [o.word(inversion=True) for _ in range(3)]
    carry_in, second = o.truth(), o.truth() if len(o) else "0"
    o.end()
    return _with_carry(to, carries, " + ".join(f"(uint64_t){word}" for word in [*words, carry_in, second]))


_ADDS = "PTX ISA, add.cc and addc; the order of operands by experiment"
_entry(("IADD3", "UIADD3"), _ADDS)(_iadd3)
_entry(("IADD3.X", "UIADD3.X"), _ADDS)(_iadd3_x)


_gives("VIADD", "PTX ISA, add", "{} + {}", SIGNED, SIGNED)
_SIGNED_PAIR, _SIGNED_WIDE = partial(PAIR, negation=True), partial(WIDE, negation=True)
_gives(("IADD.64", "UIADD.64"), "PTX ISA, add.s64", "{} + {}", _SIGNED_PAIR, _SIGNED_WIDE, words=2)


@_entry("UIADD3.64", "PTX ISA, add.s64, of three")
def _uiadd3_64(o: Operands) -> list[str]:
    to, carries = o.to(2), _carries(o)
    a, b, c = o.pair(negation=True), o.wide(negation=True), o.wide(negation=True)
    o.end()
    if carries:
        raise Lacks("a carry out of 64 bits")
    return _set_pair(to, f"{a} + {b} + {c}")


# .MOV, .SHL and .IADD only give the purpose of the multiplication: by one, by a power of two.
_MAD = ("IMAD", "IMAD.U32", "IMAD.MOV", "IMAD.MOV.U32", "IMAD.SHL", "IMAD.SHL.U32", "IMAD.IADD", "IMAD.IADD.U32")
_gives((*_MAD, "UIMAD", "UIMAD.U32"), "PTX ISA, mad.lo", "{} * {} + {}", SIGNED, SIGNED, SIGNED)
_MADC = "PTX ISA, madc.lo; the carry's place by experiment"
_gives("IMAD.X", _MADC, "{} * {} + {} + {}", WORD, WORD, partial(WORD, inversion=True), TRUTH)


def _carry(carries: Sequence[str]) -> str:
    """Return the carry of 64 bits: a sum that is less than what was added."""
    return f"{carries[0]} = sum < added;"


def _imad_wide(sign: str, *, carry: bool = False) -> Emit:
    def emit(o: Operands) -> list[str]:
        to, carries = o.to(2), _carries(o)
        a, b, c, carried = o.word(), o.word(), o.pair(), f" + {o.truth()}" if carry else ""
        o.end()
        product = f"(uint64_t)({sign}({a}) * {sign}({b}))"
        if not carries:
            return _set_pair(to, f"{product} + {c}{carried}")
        if carry:
            raise Lacks("a carry in and one out")
        return [f"const uint64_t added = {c}, sum = {product} + added;", *_set_pair(to, "sum"), _carry(carries)]

    return emit


_entry(("IMAD.WIDE", "UIMAD.WIDE"), "PTX ISA, mad.wide.s32")(_imad_wide("(int64_t)(int32_t)"))
_entry(("IMAD.WIDE.U32", "UIMAD.WIDE.U32"), "PTX ISA, mad.wide.u32; a predicate is the carry out of 64 bits")(
    _imad_wide("(uint64_t)")
)
_entry("IMAD.WIDE.U32.X", "PTX ISA, mad.wide.u32, with a carry in; the order of operands as of IADD3.X")(
    _imad_wide("(uint64_t)", carry=True)
)


_MAD_HI_U32 = "PTX ISA, mad.hi.u32; it adds a pair before it takes the upper word: by experiment"


@_entry(("IMAD.HI.U32", "UIMAD.HI.U32"), _MAD_HI_U32)
def _imad_hi(o: Operands) -> list[str]:
    to, carries = o.to(), _carries(o)
    a, b, c = o.word(), o.word(), o.pair()
    o.end()
    if not carries:
        return _set(to, f"lift_high((uint64_t){a} * {b} + {c})")
    sum_ = f"const uint64_t added = {c}, sum = (uint64_t){a} * {b} + added;"
    return [sum_, *_set(to, "lift_high(sum)"), _carry(carries)]


_MAD_HI = "PTX ISA, mad.hi.s32; it adds a pair before it takes the upper word, as IMAD.HI.U32 does"
_gives("IMAD.HI", _MAD_HI, "lift_high((uint64_t)((int64_t)(int32_t){} * (int32_t){}) + {})", WORD, WORD, PAIR)
_gives("IABS", "PTX ISA, abs.s32", "(int32_t){0} < 0 ? 0u - {0} : {0}", WORD)


@_entry("SGXT", "PTX ISA, szext.clamp.s32: the lowest bits with the sign of the highest of them")
def _sgxt(o: Operands) -> list[str]:
    to, a, bits = o.to(), o.word(), o.immediate()
    o.end()
    if not 0 < bits <= 32:
        raise Lacks("a number of bits that is none or beyond 32")
    return _set(to, f"(uint32_t)((int32_t)({a} << {32 - bits}) >> {32 - bits})")


def _lea(o: Operands) -> list[str]:
    to, carries = o.to(), _carries(o)
    a, b, shift = o.word(), o.word(), o.immediate()
    o.end()
    return _with_carry(to, carries, f"(uint64_t)(uint32_t)({a} << {shift & 31}) + {b}")


def _lea_hi(*, carry: bool, extended: bool) -> Emit:
    def emit(o: Operands) -> list[str]:
        to, carries = o.to(), _carries(o)
        a, b = o.word(), o.word()
        high = f"(uint32_t)((int32_t){a} >> 31)" if extended else o.word()
        shift = o.immediate()
        carried = f" + {o.truth()}" if carry else ""
        o.end()
        return _with_carry(to, carries, f"(uint64_t)lift_high(lift_pair({a}, {high}) << {shift & 31}) + {b}{carried}")

    return emit


_LEA = "CUDA Binary Utilities: load effective address; by experiment: (a << shift) + b, .HI of {c, a} << shift"
_entry(("LEA", "ULEA"), _LEA)(_lea)
_entry(("LEA.HI", "ULEA.HI"), _LEA)(_lea_hi(carry=False, extended=False))
_entry(("LEA.HI.X", "ULEA.HI.X"), _LEA)(_lea_hi(carry=True, extended=False))
_entry(("LEA.HI.SX32", "ULEA.HI.SX32"), _LEA)(_lea_hi(carry=False, extended=True))
_entry(("LEA.HI.X.SX32", "ULEA.HI.X.SX32"), _LEA)(_lea_hi(carry=True, extended=True))


def _shift(*, left: bool, wrap: bool, most: int, upper: bool, signed: bool) -> str:
    # The word that stays when the other one has left: a plain shift of one word.
    if not wrap and most == 32 and left != upper:
        return "lift_shl({0}, {1})" if left else f"lift_{'sar' if signed else 'shr'}({{2}}, {{1}})"
    count = f"({{1}} & {most - 1}u)" if wrap else f"lift_count({{1}}, {most})"
    if left:
        return f"lift_shift_left({{0}}, {count}, {{2}}, {int(upper)})"
    return f"lift_shift_right({{0}}, {count}, {{2}}, {int(upper)}, {int(signed)})"


_SHF = "PTX ISA, shf, shl, shr; .HI is the upper word, counts stop at the type's width: by experiment"
for _left, _wrap, _upper in product((True, False), repeat=3):
    for _type, _most in (("U32", 32), ("S32", 32), ("U64", 64), ("S64", 64)):
        _opcode = f"SHF.{'L' if _left else 'R'}{'.W' if _wrap else ''}.{_type}{'.HI' if _upper else ''}"
        _shifted = _shift(left=_left, wrap=_wrap, most=_most, upper=_upper, signed=_type[0] == "S")
        _gives((_opcode, f"U{_opcode}"), _SHF, _shifted, WORD, WORD, WORD, family=_SHF)


def logic(table: int, *words: str) -> str:  # noqa: PLR0911 - one return a form
    """C of any function of words; of three, bit ``4 * a + 2 * b + c`` of the table is its value (PTX ISA, lop3).

    A word that is known comes first: each of its bits then selects what the others are joined by.
    """
    if not words:
        return "~0u" if table else "0u"
    first, *rest = words
    known = next((at for at, word in enumerate(words) if word[0].isdigit()), 0)
    if known:
        places = 1 << len(rest) | 1 << len(rest) - known
        rows = (row if row & places in (0, places) else row ^ places for row in range(2 << len(rest)))
        table = sum((table >> row & 1) << at for at, row in enumerate(rows))
        first, rest[known - 1] = words[known], first
    ones = (1 << (1 << len(rest))) - 1
    high, low = table >> (1 << len(rest)), table & ones  # where the first has ones, and where it has none
    where, elsewhere = logic(high, *rest), logic(low, *rest)
    if high == low:
        return where
    if high ^ low == ones and low not in (0, ones):
        return f"({first} ^ {elsewhere})"
    if high == ones:
        return f"({first} | {elsewhere})" if low else first
    if low == ones:
        return f"(~{first} | {where})" if high else f"~{first}"
    if not (high and low):
        return f"({first} & {where})" if high else f"(~{first} & {elsewhere})"
    return f"(({first} & {where}) | (~{first} & {elsewhere}))"


def _lop3(o: Operands) -> list[str]:
    test = o.to_predicate() if o.peek_predicate() else ""
    to, a, b, c, table, other = o.to(), o.word(), o.word(), o.word(), o.immediate(), o.truth()
    o.end()
    if not 0 <= table <= 255:
        raise Lacks(f"truth table {table:#x}")
    if other != "0":
        raise Lacks("its predicate is joined with another")
    return [
        f"const uint32_t bits = {logic(table, a, b, c)};",
        *_set(to, "bits"),
        *([f"{test} = bits != 0;"] if test else []),
    ]


_entry(("LOP3.LUT", "ULOP3.LUT"), "PTX ISA, lop3; the predicate states that the result is not zero: by experiment")(
    _lop3
)


@_entry(
    ("PLOP3.LUT", "UPLOP3.LUT"), "as lop3 (PTX ISA) of predicates; the first table is the first result's: by experiment"
)
def _plop3(o: Operands) -> list[str]:
    first, second = o.to_predicate(), o.to_predicate()
    a, b, c = o.truth(), o.truth(), o.truth()
    tables = o.immediate(), o.immediate()
    o.end()
    if second:
        raise Lacks("a second result")
    sources = [f"(uint32_t)({source})" for source in (a, b, c)]
    return [f"{first} = {logic(tables[0] & 255, *sources)} & 1u;"] if first else []


def _prmt(o: Operands) -> list[str]:
    to, a = o.to(), o.word()
    if o.peek(Integer):
        selector = o.immediate()
        b = o.word()
        o.end()
        return _set(to, _permuted(a, selector, b))
    selector_register, b = o.word(), o.word()
    o.end()
    return _set(to, f"lift_permute({a}, {selector_register}, {b})")


_entry(("PRMT", "UPRMT"), "PTX ISA, prmt, default mode; operands are in the order a, selector, b: by experiment")(_prmt)


def _permuted(a: str, selector: int, b: str) -> str:
    """Return a permutation that is known: each source word shifted and masked, bytes that move by the same way at a
    time."""
    groups: dict[tuple[str, int], int] = {}
    for byte in range(4):
        nibble = selector >> 4 * byte & 15
        if nibble & 8:
            return f"lift_permute({a}, {hexadecimal(selector)}, {b})"
        moved = (a if nibble < 4 else b, byte - (nibble & 3))
        groups[moved] = groups.get(moved, 0) | 0xFF << 8 * byte
    parts = []
    for (source, by), mask in groups.items():
        if source == "0u":
            continue
        shifted = f"{source} << {8 * by}" if by > 0 else f"{source} >> {-8 * by}" if by else source
        parts.append(shifted if mask == 0xFFFF_FFFF else f"({shifted} & {hexadecimal(mask)})")
    return " | ".join(parts) or "0u"


# --- comparisons -----------------------------------------------------------------------------------------------------

_JOINED = {"AND": "&", "OR": "|", "XOR": "^"}
_ORDER = {"LT": "<", "EQ": "==", "LE": "<=", "GT": ">", "NE": "!=", "GE": ">="}


def _setp(opcodes: str | Iterable[str], source: str, test: str, joined: str, *takes: Take, more: int = 0) -> None:
    """Enter opcodes with p = test op c, q = !test op c (PTX ISA, setp); ``test`` is C with ``{}`` for each source.

    ``more`` predicates come behind c, and are sources behind it.
    """

    def emit(o: Operands) -> list[str]:
        first, second = o.to_predicate(), o.to_predicate()
        sources = [take(o) for take in (*takes, TRUTH, *[TRUTH] * more)]
        o.end()
        return [
            f"const uint32_t test = {test.format(*sources)};",
            f"const uint32_t other = {sources[len(takes)]};",
            *([f"{first} = test {joined} other;"] if first else []),
            *([f"{second} = (test ^ 1u) {joined} other;"] if second else []),
        ]

    _entry(opcodes, source, family=(takes, more))(emit)


def _isetp_ex(relation: str, cast: str) -> str:
    if relation in ("!=", "=="):
        return f"({{0}} {relation} {{1}}) {'|' if relation == '!=' else '&'} {{3}}"
    return f"({cast}({{0}}) {relation[0]} {cast}({{1}})) | (({{0}} == {{1}}) & {{3}})"


_UPPER = "the upper words of a 64-bit comparison, after the lower ones: by experiment"
for (_relation, _sign), (_name, _joined) in product(_ORDER.items(), _JOINED.items()):
    for _type, _cast in (("", "(int32_t)"), (".U32", "(uint32_t)"), (".S64", "(int64_t)"), (".U64", "(uint64_t)")):
        _opcode, _test = f"ISETP.{_relation}{_type}.{_name}", f"{_cast}({{}}) {_sign} {_cast}({{}})"
        if "64" in _type:
            _setp((_opcode, f"U{_opcode}"), "PTX ISA, setp.s64", _test, _joined, PAIR, WIDE)
        else:
            _setp((_opcode, f"U{_opcode}"), "PTX ISA, setp", _test, _joined, WORD, WORD)
            _extended = (f"{_opcode}.EX", f"U{_opcode}.EX")
            _setp(_extended, _UPPER, _isetp_ex(_sign, _cast), _joined, WORD, WORD, more=1)


def _fsetp(relation: str) -> str:
    x, y = "lift_single({0})", "lift_single({1})"
    unordered = "(lift_is_nan({0}) | lift_is_nan({1}))"
    if relation in ("NUM", "NAN"):
        return unordered if relation == "NAN" else f"!{unordered}"
    if relation == "NE":
        return f"({x} != {y}) & !{unordered}"
    if relation == "NEU":
        return f"{x} != {y}"
    if relation.endswith("U"):
        return f"({x} {_ORDER[relation[:-1]]} {y}) | {unordered}"
    return f"{x} {_ORDER[relation]} {y}"


for _relation in (*_ORDER, *(f"{relation}U" for relation in _ORDER), "NUM", "NAN"):
    for _name, _joined in _JOINED.items():
        _setp(f"FSETP.{_relation}.{_name}", "PTX ISA, setp", _fsetp(_relation), _joined, SINGLE, SINGLE)
        _setp(f"FSETP.{_relation}.FTZ.{_name}", "PTX ISA, setp.ftz", _fsetp(_relation), _joined, FLUSHED, FLUSHED)


@_entry("VIADDMNMX", "CUDA Binary Utilities: add and minimum or maximum; the order of operands as of VIADD and VIMNMX")
def _viaddmnmx(o: Operands) -> list[str]:
    to, a, b, c, least = o.to(), o.word(negation=True), o.word(negation=True), o.word(), o.truth()
    o.end()
    sum_ = f"const uint32_t sum = {a} + {b};"
    return [sum_, *_set(to, f"(((int32_t)sum < (int32_t)({c})) == ({least} != 0)) ? sum : {c}")]


@_entry("IMNMX.U64", "PTX ISA, max.u64; both predicates !PT are the maximum: by experiment")
def _imnmx_64(o: Operands) -> list[str]:
    first, second, to, a, b, least, other = (
        *(o.to_predicate(), o.to_predicate(), o.to(2)),
        *(o.pair(), o.pair(), o.truth(), o.truth()),
    )
    o.end()
    if first or second or (least, other) != ("0", "0"):
        raise Lacks("another form than the maximum")
    return [f"const uint64_t one = {a}, two = {b};", *_set_pair(to, "one > two ? one : two")]


_MINIMUM = "PTX ISA, min and max; the predicate selects which, PT the minimum: by experiment"
for _minima, _cast in (
    (("VIMNMX", "VIMNMX.S32", "IMNMX", "UVIMNMX", "UVIMNMX.S32"), "(int32_t)"),
    (("VIMNMX.U32", "IMNMX.U32", "UVIMNMX.U32"), "(uint32_t)"),
):
    _least = f"(({_cast}({{0}}) < {_cast}({{1}})) == ({{2}} != 0)) ? {{0}} : {{1}}"
    _gives(_minima, _MINIMUM, _least, WORD, WORD, TRUTH)


# --- single precision ------------------------------------------------------------------------------------------------


for _opcode, _function, _ptx, _sources in (
    ("FADD", "lift_fadd({}, {})", "add", 2),
    ("FMUL", "lift_fmul({}, {})", "mul", 2),
    ("FFMA", "lift_ffma({}, {}, {})", "fma", 3),
):
    _gives((_opcode, f"U{_opcode}"), f"PTX ISA, {_ptx}.rn.f32", _function, *[SINGLE] * _sources)
    _gives(f"{_opcode}.FTZ", f"PTX ISA, {_ptx}.rn.ftz.f32", f"lift_flush({_function})", *[FLUSHED] * _sources)

for _rounding in ("rm", "rp", "rz"):
    _ffma = f"lift_ffma_{_rounding}({{}}, {{}}, {{}})"
    _gives(f"FFMA.{_rounding.upper()}", f"PTX ISA, fma.{_rounding}.f32", _ffma, SINGLE, SINGLE, SINGLE)

_MUL_RZ = "PTX ISA, mul.rz.f32: a product whose sum with -0 is rounded once"
_gives("FMUL.RZ", _MUL_RZ, "lift_ffma_rz({}, {}, 0x80000000u)", SINGLE, SINGLE)


def _two(form: str, sources: int) -> Emit:
    def emit(o: Operands) -> list[str]:
        to, values = o.to(2), [o.two_singles() for _ in range(sources)]
        o.end()
        low, high = (form.format(*half) for half in zip(*values, strict=True))
        return _set_pair(to, f"lift_pair({low}, {high})")

    return emit


_TWO = "PTX ISA, {}.f32x2 (SM10x); HI_LO is the order of the registers, as ptxas uses them (test_pairs.py)"
_entry("FADD2", _TWO.format("add.rn"))(_two("lift_fadd({}, {})", 2))
_entry("FMUL2", _TWO.format("mul.rn"))(_two("lift_fmul({}, {})", 2))
_entry("FMUL2.RZ", _TWO.format("mul.rz"))(_two("lift_ffma_rz({}, {}, 0x80000000u)", 2))
_entry("FFMA2", _TWO.format("fma.rn"))(_two("lift_ffma({}, {}, {})", 3))


_FHFMA = "PTX ISA, fma.rn.f32.bf16: two bfloat16 times one another, and a float; no name is the lower half"
_gives("FHFMA.BF16", _FHFMA, "lift_ffma({}, {}, {})", Operands.brain, Operands.brain, SINGLE)

_RCP = "PTX ISA, rcp.approx.ftz.f32: at most one unit in the last place off; see lift_rcp"
_gives("MUFU.RCP", _RCP, "lift_rcp({})", SINGLE, grid=True)
_EX2 = "PTX ISA, ex2.approx.ftz.f32; approximate: here the rounded value, for every target alike"
_gives("MUFU.EX2", _EX2, "lift_ex2({})", SINGLE, grid=True)


@_entry("MUFU.RSQ", "PTX ISA, rsqrt.approx.ftz.f32, of NaN: how the compiler makes one; else the rounded value")
def _mufu_rsq(o: Operands) -> list[str]:
    to = o.to()
    if o.peek(Real):
        o.not_a_number()
        o.end()
        return _set(to, "(uint32_t)LIFT_NAN")
    o.only_in_a_grid()
    a = o.single()
    o.end()
    return _set(to, f"lift_rsq({a})")


@_entry("FCHK", "CUDA Binary Utilities: floating-point range check, for a division; see lift_fchk")
def _fchk(o: Operands) -> list[str]:
    to, a, b = o.to_predicate(), o.single(), o.single()
    o.end()
    return [f"{to} = lift_fchk({a}, {b});"] if to else []


_FMNMX = "PTX ISA, min.f32 and max.f32; the predicate selects which"
_gives("FMNMX", _FMNMX, "lift_fmnmx({}, {}, {})", SINGLE, SINGLE, TRUTH)
_gives("FMNMX.FTZ", "PTX ISA, min.ftz.f32 and max.ftz.f32", "lift_fmnmx({}, {}, {})", FLUSHED, FLUSHED, TRUTH)
_OF_THREE = "PTX ISA, min.f32 and max.f32 of three (SM10x); the predicate selects which"
_gives("FMNMX3", _OF_THREE, "lift_fmnmx(lift_fmnmx({0}, {1}, {3}), {2}, {3})", SINGLE, SINGLE, SINGLE, TRUTH)
_OR_NAN = "PTX ISA, min.NaN.f32 and max.NaN.f32: NaN if either source is"
_either = "(lift_is_nan({0}) | lift_is_nan({1})) ? (uint32_t)LIFT_NAN : lift_fmnmx({0}, {1}, {2})"
_gives("FMNMX.NAN", _OR_NAN, _either, SINGLE, SINGLE, TRUTH)

_XORSIGN = (
    "PTX ISA, min and max with .xorsign.abs; the sign of one NaN counts, and the result of two has none: by experiment"
)
for _opcode, _in_bars in (
    ("FMNMX", partial(Operands.in_bars, halves=False)),
    ("HMNMX2", partial(Operands.in_bars, halves=True)),
):
    _xorsign = f"lift_{_opcode.lower()}_xorsign({{}}, {{}}, {{}})"
    _gives(f"{_opcode}.XORSIGN", _XORSIGN, _xorsign, _in_bars, _in_bars, TRUTH)


# --- half precision --------------------------------------------------------------------------------------------------


_gives("HADD2", "PTX ISA, add.f16x2", "lift_hadd2({}, {})", HALVES, HALVES)
_gives("HMUL2", "PTX ISA, mul.f16x2", "lift_hmul2({}, {})", HALVES, HALVES)
_BMUL2 = "PTX ISA, mul.rn.bf16x2: adding -0 changes nothing"
_gives("HMUL2.BF16_V2", _BMUL2, "lift_bfma2({}, {}, 0x80008000u)", BRAINS, BRAINS)
_BFMA2 = "PTX ISA, fma.rn.bf16x2; subnormals are kept"
_gives(("HFMA2.BF16_V2", "HFMA2.MMA.BF16_V2"), _BFMA2, "lift_bfma2({}, {}, {})", BRAINS, BRAINS, BRAINS)


@_entry(("HFMA2", "HFMA2.MMA"), "PTX ISA, fma.rn.f16x2; of two immediates the first is the high half: by experiment")
def _hfma2(o: Operands) -> list[str]:
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
    return _set(to, f"lift_hmul2({a}, {b})" if product else f"lift_hfma2({a}, {b}, {c})")


_HMNMX2 = "PTX ISA, min.f16x2 and max.f16x2; the predicate selects which"
_gives("HMNMX2", _HMNMX2, "lift_hmnmx2({}, {}, {})", HALVES, HALVES, TRUTH)
_gives("HMNMX2.BF16_V2", "PTX ISA, min.bf16x2 and max.bf16x2", "lift_bmnmx2({}, {}, {})", BRAINS, BRAINS, TRUTH)
for _opcode, _type, _function, _take in (
    ("VHMNMX", "f16x2", "lift_hmnmx2", HALVES),
    ("VHMNMX.BF16_V2", "bf16x2", "lift_bmnmx2", BRAINS),
):
    _of_three = f"{_function}({_function}({{0}}, {{1}}, {{3}}), {{2}}, {{3}})"
    _of = f"PTX ISA, min.{_type} and max.{_type} of three: by experiment"
    _gives(_opcode, _of, _of_three, _take, _take, _take, TRUTH)


_RELATIONS = {
    **{name: f"{{}} {sign} {{}}" for name, sign in (*_ORDER.items(), ("NEU", "!=")) if name != "NE"},
    "NE": "({0} < {1}) | ({0} > {1})",
    "EQU": "!(({0} < {1}) | ({0} > {1}))",
    **{f"{name}U": f"!({{}} {sign} {{}})" for name, sign in (("LT", ">="), ("LE", ">"), ("GT", "<="), ("GE", "<"))},
}
"""C of each relation of two floats; with a U it holds as well where one is NaN."""


def _hsetp2(relation: str, joined: str, *, brain: bool) -> Emit:
    wide = "lift_of_bfloat16" if brain else "lift_of_half"

    def emit(o: Operands) -> list[str]:
        first, second = o.to_predicate(), o.to_predicate()
        a, b, other = o.halves(brain=brain), o.halves(brain=brain), o.truth()
        o.end()
        tests = [_RELATIONS[relation].format(f"{wide}({half}({a}))", f"{wide}({half}({b}))") for half in _HALVES]
        return [
            f"const uint32_t other = {other}, low = {tests[0]}, high = {tests[1]};",
            *(f"{to} = {test} {joined} other;" for to, test in ((first, "low"), (second, "high")) if to),
        ]

    return emit


_HALVES = ("LIFT_LOW", "LIFT_HIGH")
for _relation in _RELATIONS:
    for _name, _joined in _JOINED.items():
        for _brain in (False, True):
            _entry(
                f"HSETP2{'.BF16_V2' if _brain else ''}.{_relation}.{_name}",
                "PTX ISA, setp.f16x2 and setp.bf16x2; the first result is that of the low halves: by experiment",
            )(_hsetp2(_relation, _joined, brain=_brain))


@_entry(
    "HADD2.F32", "PTX ISA, cvt.f32.f16: the sum with -0 of one half, widened; a NaN becomes canonical: by experiment"
)
def _hadd2_f32(o: Operands) -> list[str]:
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
    return _set(to, f"lift_result(lift_of_half({half}))")


# --- conversions -----------------------------------------------------------------------------------------------------

_PACKED = "PTX ISA, {}; the first source is the high half"
_TO_HALF, _TO_BFLOAT16 = _PACKED.format("cvt.rn.f16x2.f32"), _PACKED.format("cvt.rn.bf16x2.f32")
_ZERO = _PACKED.format("cvt.rz.f16x2.f32: beyond the largest half, that; infinity stays")
for _opcodes, _source, _function in (
    (("F2FP.F16.F32.PACK_AB", "F2FP.PACK_AB"), _TO_HALF, "lift_halves_of_singles({}, {})"),
    (("F2FP.F16.F32.PACK_AB.RZ", "F2FP.PACK_AB.RZ"), _ZERO, "lift_halves_toward_zero({}, {})"),
    (("F2FP.BF16.F32.PACK_AB", "F2FP.BF16.PACK_AB"), _TO_BFLOAT16, "lift_bfloat16s_of_singles({}, {})"),
):
    _gives(_opcodes, _source, _function, SINGLE, SINGLE)


def _merged(function: str, bits: int, *, grid: bool = False) -> Emit:
    def emit(o: Operands) -> list[str]:
        if grid:
            o.only_in_a_grid()
        to, high, low = o.to(), o.single(), o.single()
        merged = "0u" if o.is_zero(negated=False) else ""
        c = o.word()
        o.end()
        pair = f"{function}({high}) << {bits} | {function}({low})"
        return _set(to, pair if merged else f"{c} << {2 * bits} | {pair}")

    return emit


_entry(
    "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C",
    "the specification, by definition (PTX ISA, cvt.rn.satfinite.e2m1x2.f32): executing it proves nothing of silicon",
)(_merged("lift_to_e2m1", 4))


_STOCHASTIC = (
    "the specification, by definition (PTX ISA, cvt.rs.satfinite.e2m1x4.f32): executing it proves nothing of silicon. "
    "It is two of these: a and b with the random bits as C, e and f with the first one's result. Since the merge moves "
    "C up by a byte, both take the high bytes of C's halves, and e and f so get the low bytes of the random bits; that "
    "the first source has the upper half is read from the figure of the random bits alone"
)
_gives("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS", _STOCHASTIC, "lift_stochastic({}, {}, {})", SINGLE, SINGLE, WORD)

for _form in ("e4m3", "e5m2", "e2m3", "e3m2"):
    _narrow = f"PTX ISA, cvt.rn.satfinite.{_form}x2.f32"
    _entry(f"F2FP.SATFINITE.{_form.upper()}.F32.PACK_AB_MERGE_C", _narrow)(_merged(f"lift_to_{_form}", 8))
_entry(
    "F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP", "PTX ISA, cvt.rp.satfinite.ue8m0x2.f32; no negative number is defined"
)(_merged("lift_to_ue8m0", 8, grid=True))

_UNPACKED = "PTX ISA, cvt.rn.{}: exact; the low {} gives the low half"
_nibbles = "lift_pack(lift_half_of_e2m1({0} & 15u), lift_half_of_e2m1({0} >> 4 & 15u))"
_gives("F2FP.F16.E2M1.UNPACK_B", _UNPACKED.format("f16x2.e2m1x2", "nibble"), _nibbles, Operands.byte)
for _opcode, _function, _types in (
    ("F2FP.F16.E4M3.UNPACK_B", "lift_half_of_e4m3", "f16x2.e4m3x2"),
    ("F2FP.F16.E2M3.UNPACK_B", "lift_half_of_e2m3", "f16x2.e2m3x2"),
    ("F2FP.F16.E3M2.UNPACK_B", "lift_half_of_e3m2", "f16x2.e3m2x2"),
    ("F2FP.BF16.E8.UNPACK_B", "lift_bfloat16_of_ue8m0", "bf16x2.ue8m0x2"),
):
    _bytes = f"lift_pack({_function}({{0}} & 255u), {_function}({{0}} >> 8 & 255u))"
    _source = _UNPACKED.format(_types, "byte")
    _gives(_opcode, _source, _bytes, Operands.two_bytes, grid=_opcode == "F2FP.BF16.E8.UNPACK_B")

_F2I = "PTX ISA, cvt.rni.s32.f32: to nearest even, saturated, NaN is 0; .NTZ by experiment"
_gives("F2I.NTZ", _F2I, "lift_f2i({})", SINGLE)

_TO_U32 = "PTX ISA, cvt.rzi.{}u32.f32: toward zero, saturated, NaN is 0"
_gives("F2I.U32.TRUNC.NTZ", _TO_U32.format(""), "lift_f2u({})", SINGLE)
_gives(("F2I.FTZ.U32.TRUNC.NTZ", "UF2I.FTZ.U32.TRUNC.NTZ"), _TO_U32.format("ftz."), "lift_f2u({})", FLUSHED)


def _float_of(cast: str, *, up: bool) -> Emit:
    """To nearest; ``up``: to the float that is not below. A float of 32 bits is exact in double precision."""

    def emit(o: Operands) -> list[str]:
        to, a = o.to(), o.word()
        o.end()
        nearest = f"const float near = (float){cast}({a});"
        # The next float in magnitude is also the next integer of its bits.
        step = f"(double)near < (double){cast}({a}) ? (near < 0 ? -1 : 1) : 0" if up else "0"
        return [nearest, *_set(to, f"lift_bits(near) + (uint32_t)({step})")]

    return emit


_entry(("I2F.RP", "I2F.S32.RP"), "PTX ISA, cvt.rp.f32.s32")(_float_of("(int32_t)", up=True))
_entry(("I2F.U32.RP", "UI2F.U32.RP"), "PTX ISA, cvt.rp.f32.u32")(_float_of("(uint32_t)", up=True))


_gives("I2F.U64.RP", "PTX ISA, cvt.rp.f32.u64", "lift_single_of_u64_upward({})", PAIR, grid=True)
_TO_U64 = "PTX ISA, cvt.rzi.u64.f32: toward zero, saturated, NaN is 2^63"
_gives("F2I.U64.TRUNC", _TO_U64, "lift_f2u_64({})", SINGLE, words=2)


@_entry("I2F.BF16", "PTX ISA, cvt.rn.bf16.s32: the low half; of the high one nothing is documented, so it is poison")
def _i2f_bf16(o: Operands) -> list[str]:
    to, a = o.to(), o.word()
    o.end()
    # Rounded to odd first, so that bfloat16 is rounded once.
    exact = f"const double exact = (int32_t){a}; uint64_t bits; memcpy(&bits, &exact, sizeof bits);"
    odd = "const uint32_t odd = lift_single_of_double(bits, 1); const int rest = (double)lift_single(odd) != exact;"
    return [exact, odd, *_set(to, "lift_pack(lift_to_bfloat16(odd | rest), LIFT_POISON >> 16)")]


_entry("I2FP.F32.U32", "PTX ISA, cvt.rn.f32.u32")(_float_of("(uint32_t)", up=False))
_entry("I2FP.F32.S32", "PTX ISA, cvt.rn.f32.s32")(_float_of("(int32_t)", up=False))


_LOW = "PTX ISA, cvt.rn.{}.f32: the low half; of the high one nothing is documented, so it is poison"
_gives("F2F.F16.F32", _LOW.format("f16"), "lift_pack(lift_to_half(lift_single({})), LIFT_POISON >> 16)", SINGLE)
_gives("F2F.BF16.F32", _LOW.format("bf16"), "lift_pack(lift_to_bfloat16({}), LIFT_POISON >> 16)", SINGLE)
_UPWARD = "PTX ISA, cvt.rp.bf16.f32, as F2F.BF16.F32: the float that is not below"
_gives("F2F.BF16.F32.RP", _UPWARD, "lift_pack(lift_to_bfloat16_upward({}), LIFT_POISON >> 16)", SINGLE, grid=True)
_F64 = "PTX ISA, cvt.f64.f32: exact; a NaN keeps its sign and payload: by experiment"
_gives("F2F.F64.F32", _F64, "lift_double_of_single({})", SINGLE, words=2)

_NARROW = "PTX ISA, cvt.{}.f32.f64; a NaN keeps its sign and payload, as on an H100, of which no golden digest is kept"
_gives("F2F.F32.F64", _NARROW.format("rn"), "lift_single_of_double({}, 0)", PAIR)
_gives("F2F.F32.F64.RZ", _NARROW.format("rz"), "lift_single_of_double({}, 1)", PAIR)
