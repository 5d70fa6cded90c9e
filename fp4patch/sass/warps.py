"""Instructions of whole warps and blocks: products of matrices, votes, barriers, copies, atomic operations.

A product's operands are A, B and C in the registers that PTX names, by experiment: the kernels of ``tests/sass/golden``
give on a GPU what they give here. Its arithmetic is in ``mma.h``, with its source.
"""

from collections.abc import Iterable, Sequence
from itertools import product

from fp4patch.sass.expressions import (
    FALSE,
    FUNCTIONS,
    POISON,
    TRUE,
    ZERO,
    Check,
    Effect,
    Op,
    Set,
    Wait,
    equal,
    high,
    low,
    number,
)
from fp4patch.sass.operands import Lacks, Operands
from fp4patch.sass.semantics import Emit, Semantics

TABLE: dict[str, Semantics] = {}
"""By opcode with modifiers."""
F = FUNCTIONS


def _enter(opcodes: str | Iterable[str], source: str, emit: Emit, *, joins: bool = False) -> None:
    def in_a_grid(o: Operands) -> list[Effect]:
        o.only_in_a_grid()
        return emit(o)

    for opcode in [opcodes] if isinstance(opcodes, str) else opcodes:
        assert opcode not in TABLE, opcode
        TABLE[opcode] = Semantics(in_a_grid, source, emit, joins=joins)


def _results(to: list[str], first: int = 0) -> tuple[tuple[str, int], ...]:
    return tuple((name, first + at) for at, name in enumerate(to) if name)


# --- products of matrices --------------------------------------------------------------------------------------------

_FORMATS = ("F16", "BF16", "TF32", "E4M3", "E5M2", "E2M3", "E3M2", "E2M1", "F32")
"""In the order of ``mma.h``."""
_MMA = (
    "PTX ISA, mma.sync; MMA-Sim (arXiv 2511.10909, microsoft/MMA-Sim c785138): {} bits of fraction, cut off; "
    "see mma.h, and README.md for what was run on a GPU"
)


def _bits_of(o: Operands, a: str, parts: int) -> tuple[int, int, int]:
    """Return the fraction bits of the alignment and of a result, and the number of sums, as MMA-Sim has them."""
    major, minor = o.arch
    if major == 7:
        return 24, 23, 1
    if major == 8:
        return (13, 13, parts) if a.startswith("E") and minor == 9 else (24, 23, parts)
    return 25, 23, 1


def _mma(k: int, bits: int, a: str, b: str, c: str) -> Emit:
    """D = A * B + C, by a warp."""

    def emit(o: Operands) -> list[Effect]:
        halves = max(1, k * bits // 128)
        words = 2 if c == "F16" else 4
        to, sources = o.to_group(words), [*o.group(2 * halves), *o.group(halves), *o.group(words)]
        o.end()
        aligned, kept, parts = _bits_of(o, a, 2 if halves == 2 else 1)
        formats = [_FORMATS.index(name) for name in (a, b, c)]
        how = [k | bits << 8 | parts << 16, formats[0] | formats[1] << 8 | formats[2] << 16, aligned | kept << 8, 0]
        return [Wait("MMA", _padded(sources, how), _results(to))]

    return emit


def _padded(sources: list[Op], how: Sequence[int | Op]) -> tuple[Op, ...]:
    rest = [one if isinstance(one, Op) else number(one) for one in how]
    return (*sources, *[ZERO] * (12 - len(sources)), *rest)


for _k, _name in ((16, "16816"), (8, "1688")):
    _enter(f"HMMA.{_name}.F32", _MMA.format(25), _mma(_k, 16, "F16", "F16", "F32"))
    _enter(f"HMMA.{_name}.F32.BF16", _MMA.format(25), _mma(_k, 16, "BF16", "BF16", "F32"))
    _enter(f"HMMA.{_name}.F16", _MMA.format("25, then rounded to nearest;"), _mma(_k, 16, "F16", "F16", "F16"))
for _k, _name in ((8, "1688"), (4, "1684")):
    _enter(f"HMMA.{_name}.F32.TF32", _MMA.format(25), _mma(_k, 32, "TF32", "TF32", "F32"))
for _a, _b in product(_FORMATS[3:8], repeat=2):
    for _k, _name in ((32, "16832"), (16, "16816")):
        _enter(f"QMMA.{_name}.F32.{_a}.{_b}", _MMA.format(25), _mma(_k, 8, _a, _b, "F32"))
        _enter(f"QMMA.{_name}.F16.{_a}.{_b}", _MMA.format(25), _mma(_k, 8, _a, _b, "F16"))


def _scaled(k: int, bits: int, a: str, b: str, *, count: int, e8m0: bool) -> Emit:
    """The same with block scales, whose places a word selects: bits 0 and 1 the byte and 2 the threads of those of A, 3
    and 4 the byte and 5 and 6 the threads of those of B."""

    def emit(o: Operands) -> list[Effect]:
        to, sources = o.to_group(4), [*o.group(4), *o.group(2), *o.group(4), o.word(), o.word()]
        selected = o.word()
        o.end()
        formats = _FORMATS.index(a) | _FORMATS.index(b) << 8 | _FORMATS.index("F32") << 16
        aligned = 35 if bits == 4 else 25
        how: list[int | Op] = [k | bits << 8 | 1 << 16, formats, aligned | 23 << 8 | count << 16 | e8m0 << 24, selected]
        return [Wait("MMA", _padded(sources, how), _results(to))]

    return emit


_SELECTED = "; the word that selects the scales by experiment: ptxas with each selector"
for _scale, _count, _e8m0 in (("UE4M3.4X", 4, False), ("E8.4X", 4, True), ("E8", 2, True)):
    _enter(
        f"OMMA.SF.16864.F32.E2M1.E2M1.{_scale}",
        _MMA.format("the products of 16 values exact, times both scales; 35") + _SELECTED,
        _scaled(64, 4, "E2M1", "E2M1", count=_count, e8m0=_e8m0),
    )
for _a, _b in product(_FORMATS[3:8], repeat=2):
    _enter(
        f"QMMA.SF.16832.F32.{_a}.{_b}.E8",
        _MMA.format(25) + _SELECTED,
        _scaled(32, 8, _a, _b, count=1, e8m0=True),
    )


def _imma(k: int, a: str, b: str, *, saturated: bool) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        halves = k // 16
        to, sources = o.to_group(4), [*o.group(2 * halves, "ROW"), *o.group(halves, "COL"), *o.group(4)]
        o.end()
        how: list[int | Op] = [k, (a == "S8") | (b == "S8") << 1 | saturated << 2, 0, 0]
        return [Wait("IMMA", _padded(sources, how), _results(to))]

    return emit


for _k, _name in ((32, "16832"), (16, "16816")):
    for _a, _b in product(("S8", "U8"), repeat=2):
        _exact = "PTX ISA, mma.sync of integers: exact, modulo 2^32{}"
        _enter(f"IMMA.{_name}.{_a}.{_b}", _exact.format(""), _imma(_k, _a, _b, saturated=False))
        _sat = _exact.format("; .SAT: limited to 32 bits")
        _enter(f"IMMA.{_name}.{_a}.{_b}.SAT", _sat, _imma(_k, _a, _b, saturated=True))

_COUNTS = {1: "", 2: ".2", 4: ".4"}


def _ldsm(count: int, kind: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, place = o.to_group(count), o.shared_address()
        o.end()
        return [Wait(kind, (place, number(count)), _results(to))]

    return emit


def _stsm(count: int, kind: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        place, values = o.shared_address(), o.values(count)
        o.end()
        return [Wait(kind, (place, number(count), *values))]

    return emit


def _movm(o: Operands) -> list[Effect]:
    to, value = o.to(), o.word()
    o.end()
    return [Wait("MOVM", (value,), _results(to))]


for _count, _suffix in _COUNTS.items():
    for _form, _t in (("M88", ""), ("MT88", "_T")):
        _enter(f"LDSM.16.{_form}{_suffix}", "PTX ISA, ldmatrix.m8n8.b16", _ldsm(_count, f"LDSM{_t}"))
        _enter(f"STSM.16.{_form}{_suffix}", "PTX ISA, stmatrix.m8n8.b16", _stsm(_count, f"STSM{_t}"))
_enter("MOVM.16.MT88", "PTX ISA, movmatrix.m8n8.trans.b16", _movm)

# --- votes and reductions --------------------------------------------------------------------------------------------


def _vote(result: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to = [] if o.peek_predicate() else o.to()
        predicate, value = o.to_predicate(), o.truth()
        o.end()
        return [Wait("VOTE", (value,), (*_results(to), *_results([predicate], result)))]

    return emit


for _name, _result in (("ANY", 1), ("ALL", 2), ("EQ", 3)):
    _enter((f"VOTE.{_name}", f"VOTEU.{_name}"), "PTX ISA, vote.sync, among the threads that come there", _vote(_result))


def _match_any(o: Operands) -> list[Effect]:
    to, value = o.to(), o.word()
    o.end()
    return [Wait("MATCH", (value,), _results(to))]


def _match_all(o: Operands) -> list[Effect]:
    predicate, to, value = o.to_predicate(), o.to(), o.word()
    o.end()
    return [Wait("MATCH", (value,), (*_results([predicate], 1), *_results(to, 2)))]


_enter("MATCH.ANY", "PTX ISA, match.any.sync.b32", _match_any)
_enter("MATCH.ALL", "PTX ISA, match.all.sync.b32; the mask is zero if one differs", _match_all)


def _redux(kind: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, value = o.to(), o.word()
        o.end()
        return [Wait(f"REDUX_{kind}", (value,), _results(to))]

    return emit


for _name, _kind in (
    ("SUM", "ADD"),
    ("SUM.S32", "ADD"),
    ("MIN", "MIN"),
    ("MAX", "MAX"),
    ("MIN.S32", "MIN_S32"),
    ("MAX.S32", "MAX_S32"),
    ("", "AND"),
    ("OR", "OR"),
    ("XOR", "XOR"),
):
    _enter(
        f"REDUX.{_name}" if _name else "REDUX", "PTX ISA, redux.sync, among the threads that come there", _redux(_kind)
    )


def _elect(o: Operands) -> list[Effect]:
    to, lane, among = o.to_predicate(), o.to(), o.truth()
    o.end()
    if among.name != "number":
        raise Lacks("the threads to choose from")
    return [Wait("ELECT", (), (*_results([to]), *_results(lane, 1)))]


_enter("ELECT", "PTX ISA, elect.sync: one of the threads that come there, here the first", _elect)


def _r2ur(o: Operands) -> list[Effect]:
    if o.peek_predicate():
        o.to_predicate()
    to, value = o.to(), o.word()
    o.end()
    if o.guard is None:
        return [Set(one, value) for one in to]
    return [Wait("PICK", (o.guard, value), _results(to))]


_R2UR = "CUDA Binary Utilities: a register to a uniform one: the value of the threads for which the predicate holds"
_enter(("R2UR", "R2UR.BROADCAST"), _R2UR, _r2ur, joins=True)


def _warpsync(o: Operands) -> list[Effect]:
    if len(o):
        o.word()
    o.end()
    return [Wait("WARPSYNC", ())]


_enter(("WARPSYNC", "WARPSYNC.ALL"), "PTX ISA, bar.warp.sync", _warpsync)
_enter(
    "NOP", "by experiment: ptxas leaves it of a bar.warp.sync where it knows that the threads are together", _warpsync
)


def _one(name: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, value = o.to(), o.word(inversion=True)
        o.end()
        return [Set(one, F[name](value)) for one in to]

    return emit


_enter(("POPC", "UPOPC"), "PTX ISA, popc", _one("popc"))
_enter(("FLO.U32", "UFLO.U32"), "PTX ISA, bfind.u32: the place of the highest one, or -1", _one("leading"))
_enter(("FLO.U32.SH", "UFLO.U32.SH"), "PTX ISA, bfind.shiftamt.u32", _one("leading_zeros"))
_enter(("BREV", "UBREV"), "PTX ISA, brev", _one("reversed"))

# --- barriers of a block ---------------------------------------------------------------------------------------------


def _bar(o: Operands) -> tuple[Op, Op]:
    which, threads = o.word(), o.word() if len(o) else ZERO
    o.end()
    return which, threads


def _bar_sync(o: Operands) -> list[Effect]:
    return [Wait("BARRIER", _bar(o))]


def _bar_arrive(o: Operands) -> list[Effect]:
    return [Set("", F["named_arrive"](*_bar(o)))]


_enter(("BAR.SYNC", "BAR.SYNC.DEFER_BLOCKING"), "PTX ISA, barrier.sync; without a number of threads of all", _bar_sync)
_enter("BAR.ARV", "PTX ISA, barrier.arrive", _bar_arrive)


def _nothing(o: Operands) -> list[Effect]:
    o.drop()
    return []


_enter(
    [
        *("UTMACMDFLUSH", "UCGABAR_ARV", "UCGABAR_WAIT", "ERRBAR", "CGAERRBAR"),
        *("LDGDEPBAR", "DEPBAR.LE", "DEPBAR", "SYNCS.CCTL.IV", "UTMACCTL.PF", "CCTL.IVALL", "CCTL.IVALLP"),
        *(f"MEMBAR.{order}.{scope}" for order in ("ALL", "SC") for scope in ("CTA", "GPU", "SYS", "VC")),
        *("CCTL.E.C.LDCU.IV.DEEP", "UTMACCTL.IV"),
        *("FENCE.VIEW.ASYNC.S", "FENCE.VIEW.ASYNC", "FENCE.VIEW.ASYNC.T", "YIELD", "USETMAXREG.DEALLOC.CTAPOOL"),
    ],
    "PTX ISA: fences, those of tensor maps among them, prefetches and waits for copies do nothing where each access is "
    "done at once; "
    "barrier.cluster, in clusters of one block; setmaxnreg.dec",
    _nothing,
)


def _take_registers(o: Operands) -> list[Effect]:
    to = o.to_predicate()
    o.drop()
    return [Set(to, number(1, 1))] if to else []


_enter("USETMAXREG.TRY_ALLOC.CTAPOOL", "PTX ISA, setmaxnreg.inc: it succeeds", _take_registers)


def _nanosleep(o: Operands) -> list[Effect]:
    o.drop()
    return [Wait("YIELD", ())]


_enter(("NANOSLEEP", "NANOSLEEP.SYNCS"), "PTX ISA, nanosleep: other warps go on", _nanosleep)

# --- mbarriers -------------------------------------------------------------------------------------------------------


def _syncs_exchange(o: Operands) -> list[Effect]:
    to, place, value = o.to(2), o.shared_address(), o.pair()
    o.end()
    return _pair_set(to, F["mbarrier_exchange"](place, value))


def _pair_set(to: list[str], value: Op) -> list[Effect]:
    if not to:
        return [Set("", value)]
    return [Set(to[0], low(value)), Set(to[1], high(value))]


def _syncs_arrive(arrivals: int | None, sign: int | None) -> Emit:
    """Arrivals, or None for those of the register; and the sign with which its bytes count, or None for none."""

    def emit(o: Operands) -> list[Effect]:
        to, place, value = o.to(2), o.shared_address(), o.word()
        o.end()
        count = value if arrivals is None else number(arrivals)
        tx = ZERO if sign is None else value if sign > 0 else ZERO - value
        return _pair_set(to, F["mbarrier_changed"](place, count, tx))

    return emit


_SYNCS = "PTX ISA, mbarrier.{}; the letters and the word's fields by experiment: how ptxas writes each PTX form"
_enter("SYNCS.EXCH.64", _SYNCS.format("init"), _syncs_exchange)
for _red in ("", ".RED"):
    _head = f"SYNCS.ARRIVE.TRANS64{_red}"
    _enter((_head, f"{_head}.A1TR"), _SYNCS.format("arrive.expect_tx"), _syncs_arrive(1, 1))
    _enter(f"{_head}.A1T0", _SYNCS.format("arrive"), _syncs_arrive(1, None))
    _enter(f"{_head}.ART0", _SYNCS.format("arrive, with a count"), _syncs_arrive(None, None))
    _enter(f"{_head}.A0TR", _SYNCS.format("expect_tx"), _syncs_arrive(0, 1))
    _enter(f"{_head}.A0TX", _SYNCS.format("complete_tx"), _syncs_arrive(0, -1))


def _syncs_wait(o: Operands) -> list[Effect]:
    to, place, state = o.to_predicate(), o.shared_address(), o.word()
    o.end()
    return [Wait("MBARRIER", (place, state), _results([to]))]


def _syncs_test(o: Operands) -> list[Effect]:
    to, place, state = o.to_predicate(), o.shared_address(), o.word()
    o.end()
    return [Set(to, F["mbarrier_done"](place, state))]


_enter("SYNCS.PHASECHK.TRANS64.TRYWAIT", _SYNCS.format("try_wait: false only if nothing else can be done"), _syncs_wait)
_enter("SYNCS.PHASECHK.TRANS64", _SYNCS.format("test_wait"), _syncs_test)


def _copies_arrive(arrivals: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        place = o.shared_address()
        o.end()
        return [Set("", F["mbarrier_changed"](place, number(arrivals), ZERO))] if arrivals else []

    return emit


_enter("ARRIVES.LDGSTSBAR.64.ARVCNT", _SYNCS.format("arrive.noinc of cp.async"), _copies_arrive(1))
_enter("ARRIVES.LDGSTSBAR.64", _SYNCS.format("arrive of cp.async: one more, and it arrives"), _copies_arrive(0))

# --- copies between global and shared memory -------------------------------------------------------------------------


def _ldgsts(size: int) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, place = o.shared_address(), o.address()
        copied = o.truth() if len(o) else number(1, 1)
        o.end()
        return [Set("", F["copy_async"](to, place, number(size), copied))]

    return emit


for _part, _size in (("", 4), (".64", 8), (".128", 16)):
    for _bypass, _fills in product(("", ".BYPASS"), ("", ".ZFILL")):
        for _l2 in ("", ".LTC128B", ".LTC64B", ".LTC256B"):
            _enter(
                f"LDGSTS.E{_bypass}{_l2}{_part}{_fills}",
                "PTX ISA, cp.async; copied at once; zeros where its predicate does not hold",
                _ldgsts(_size),
            )


def _tensor(kind: str, rank: int) -> Emit:
    """A box between shared memory and a tensor: registers that follow one another have the address in shared memory,
    the mbarrier of a load, and the place in the tensor."""

    def emit(o: Operands) -> list[Effect]:
        load = kind == "TENSOR_LOAD"
        words, place = o.registers_from(1 + load + rank), o.registers_from(2)
        o.drop()
        sources = [words[0], words[1] if load else ZERO, *place, number(rank), *words[1 + load :]]
        return [Wait(kind, tuple(sources))]

    return emit


for _rank in range(1, 6):
    _tma = "PTX ISA, cp.async.bulk.tensor, tiled; done at once, by one thread of a warp; registers by experiment"
    _enter(f"UTMALDG.{_rank}D", _tma, _tensor("TENSOR_LOAD", _rank))
    _enter(f"UTMASTG.{_rank}D", _tma, _tensor("TENSOR_STORE", _rank))


def _bulk(o: Operands, *, load: bool) -> list[Effect]:
    if load:
        (inner, barrier), outer = o.registers_from(2), o.registers_from(2)
    else:
        outer, (inner,), barrier = o.registers_from(2), o.registers_from(1), ZERO
    size = o.word()
    o.drop()
    return [Wait("BULK_LOAD" if load else "BULK_STORE", (inner, barrier, *outer, size * 16))]


_enter(
    "UBLKCP.S.G", "PTX ISA, cp.async.bulk; its size in units of 16 bytes: by experiment", lambda o: _bulk(o, load=True)
)
_enter("UBLKCP.G.S", "PTX ISA, cp.async.bulk, to global memory; as UBLKCP.S.G", lambda o: _bulk(o, load=False))


def _next_work(o: Operands) -> list[Effect]:
    (place,), (barrier,) = o.registers_from(1), o.registers_from(1)
    o.end()
    return [Wait("NEXT_WORK", (place, barrier))]


_NEXT_WORK = "PTX ISA, clusterlaunchcontrol.try_cancel: it never gets another block's work; operands by experiment"
_enter("UGETNEXTWORKID.BROADCAST", _NEXT_WORK, _next_work)


def _return_register(o: Operands) -> list[Effect]:
    to, value = o.to(), o.word()
    o.end()
    return [Set(one, value) for one in to]


_enter(
    "RPCMOV.32",
    "by experiment: ptxas keeps a register in that of the return address, and takes it back",
    _return_register,
)

# --- atomic operations -----------------------------------------------------------------------------------------------

_KINDS = (
    "ADD",
    "MIN",
    "MAX",
    "MIN_S32",
    "MAX_S32",
    "AND",
    "OR",
    "XOR",
    "EXCH",
    "CAS",
    "ADD_F32",
    "ADD_F16",
    "ADD_BF16",
)
_ATOMIC = {
    **{name: name for name in ("ADD", "MIN", "MAX", "AND", "OR", "XOR", "EXCH", "CAS")},
    "ADD.S32": "ADD",
    "MIN.S32": "MIN_S32",
    "MAX.S32": "MAX_S32",
    "ADD.F32.FTZ.RN": "ADD_F32",
    "ADD.F16x2.RN": "ADD_F16",
    "ADD.BF16x2.RN": "ADD_BF16",
}


def _global_atomic(kind: str, *, result: bool) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        done = o.to_predicate() if result else ""
        to = o.to() if result else []
        place, value = o.address(anywhere=True), o.word()
        other = o.word() if kind == "CAS" else ZERO
        o.end()
        old = F["global_atomic"](place, number(_KINDS.index(kind)), value, other)
        return [Set(to[0] if to else "", old), *([Set(done, TRUE)] if done else [])]

    return emit


for (_name, _kind), _scope in product(_ATOMIC.items(), ("GPU", "SYS", "CTA")):
    _atom = "PTX ISA, atom.global and red.global"
    _enter(f"ATOMG.E.{_name}.STRONG.{_scope}", _atom, _global_atomic(_kind, result=True))
    _enter(f"REDG.E.{_name}.STRONG.{_scope}", _atom, _global_atomic(_kind, result=False))
    _generic = "PTX ISA, atom to a generic address: of an array, where it is always done (the predicate: by experiment)"
    _enter(f"ATOM.E.{_name}.STRONG.{_scope}", _generic, _global_atomic(_kind, result=True))


def _is_shared(o: Operands) -> list[Effect]:
    to = o.to_predicate()
    o.to()
    o.address(anywhere=True)
    o.end()
    return [Set(to, FALSE)] if to else []


_enter(
    "QSPC.E.S",
    "PTX ISA, isspacep.shared: a generic address is one of an array here, and any other an error",
    _is_shared,
)


def _shared_atomic(kind: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        to, place, value = o.to(), o.shared_address(), o.word()
        other = o.word() if kind == "CAS" else ZERO
        o.end()
        return [Set(to[0] if to else "", F["shared_atomic"](place, number(_KINDS.index(kind)), value, other))]

    return emit


for _name, _kind in _ATOMIC.items():
    if "." not in _name or _name.endswith("S32"):
        _enter(f"ATOMS.{_name}", "PTX ISA, atom.shared", _shared_atomic(_kind))


def _count_up(o: Operands) -> list[Effect]:
    to, place = o.to(), o.shared_address()
    o.end()
    return [Set(to[0] if to else "", F["shared_atomic"](place, number(0), number(1), ZERO))]


_enter("ATOMS.POPC.INC.32", "PTX ISA, atom.shared.add; .INC adds one for each thread", _count_up)

# --- what a kernel does not reach ------------------------------------------------------------------------------------


def _place_of_code(o: Operands) -> list[Effect]:
    to = o.to(2)
    o.drop()
    return [Set(one, POISON) for one in to]


_enter(
    "LEPC",
    "CUDA Binary Utilities: load effective program counter; here poison: a call by it is an error",
    _place_of_code,
)


def _never(what: str) -> Emit:
    def emit(o: Operands) -> list[Effect]:
        o.drop()
        return [Check(equal(ZERO, number(1)), what)]

    return emit


_enter(("BPT.TRAP", "BPT.DRAIN"), "CUDA Binary Utilities: breakpoint or trap: an error", _never("trap"))
_SPIN = (
    "by experiment: ptxas exchanges a word of shared memory so behind QSPC, where addresses are generic; an error here"
)
_enter(("ATOMS.CAST.SPIN", "ATOMS.CAST.SPIN.64"), _SPIN, _never("exchange in shared memory at a generic address"))
