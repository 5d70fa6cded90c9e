"""Operations of the IR mean the same printed as C, folded bit by bit, and to an SMT solver.

The solver proves for all values that what is folded is right. The C is compiled and runs, for values at the edges of
each width and for random ones.
"""

import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import z3

from fp4patch.sass import expressions as ir
from fp4patch.sass.bit_functions import Symbols
from fp4patch.sass.expressions import FUNCTIONS, Op, c, number
from fp4patch.sass.folding import Folder, extended
from fp4patch.sass.translate import RUNTIME, runtime

WIDTHS = (1, 16, 32, 64)
"""Bits of operands: of predicates, of halves, which are in words, of words and of pairs."""
F = FUNCTIONS
Bits = Any
"""A term of the solver, which has no types for mypy."""


def leaf(at: int, bits: int) -> Op:
    """Return the value number ``at`` that an operation is made of."""
    return Op("register", (f"v{at}_{bits}",), bits)


def leaves(op: Op) -> dict[str, int]:
    """Return the values that an operation is made of, with their widths."""
    if op.name == "register":
        return {str(op.arguments[0]): op.bits}
    return {name: bits for one in op.operands for name, bits in leaves(one).items()}


# --- the meaning for the solver --------------------------------------------------------------------------------------


@cache
def smt(op: Op) -> Bits:
    """Return an operation as a term of so many bits."""
    if op.name == "number":
        return z3.BitVecVal(op.arguments[0], op.bits)
    if op.name == "register":
        return z3.BitVec(op.arguments[0], op.bits)
    operands = [smt(one) for one in op.operands]
    if op.name in PLAIN:
        return PLAIN[op.name](operands, op)
    return resized(CALLED[op.name](*operands), op.bits)


def resized(term: Bits, bits: int) -> Bits:
    """Return a term with zeros above, or its low bits."""
    size = term.size()
    return z3.ZeroExt(bits - size, term) if size < bits else z3.Extract(bits - 1, 0, term) if size > bits else term


def one_bit(holds: Any) -> Bits:
    return z3.If(holds, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


Plain = Callable[[list[Bits], Op], Bits]


def of_two(how: Callable[[Bits, Bits], Bits]) -> Plain:
    return lambda operands, op: how(*(resized(one, op.bits) for one in operands))


def compared(how: Callable[[Bits, Bits], Any], least: int = 1) -> Plain:
    def means(operands: list[Bits], _: Op) -> Bits:
        bits = max(least, *(one.size() for one in operands))
        return one_bit(how(*(resized(one, bits) for one in operands)))

    return means


def by(op: Op) -> int:
    return next(one for one in op.arguments if isinstance(one, int))


PLAIN: dict[str, Plain] = {
    "add": of_two(lambda a, b: a + b),
    "subtract": of_two(lambda a, b: a - b),
    "multiply": of_two(lambda a, b: a * b),
    "and": of_two(lambda a, b: a & b),
    "or": of_two(lambda a, b: a | b),
    "xor": of_two(lambda a, b: a ^ b),
    "not": lambda of, op: ~resized(of[0], op.bits),
    "left": lambda of, op: resized(of[0], op.bits) << by(op),
    "right": lambda of, op: z3.LShR(resized(of[0], op.bits), by(op)),
    "right_signed": lambda of, op: of[0] >> by(op),
    "equal": compared(lambda a, b: a == b),
    "less": compared(z3.ULT),
    "less_signed": compared(lambda a, b: a < b, least=32),
    "select": lambda of, op: z3.If(of[0] != 0, resized(of[1], op.bits), resized(of[2], op.bits)),
    "pair": lambda of, _: z3.Concat(of[1], of[0]),
    "low": lambda of, _: z3.Extract(31, 0, of[0]),
    "high": lambda of, _: z3.Extract(63, 32, of[0]),
    "wide": lambda of, _: resized(of[0], 64),
    "wide_signed": lambda of, _: z3.SignExt(32, of[0]),
}
"""Of each plain operation."""

SINGLE, HALF, BRAIN = z3.FPSort(8, 24), z3.FPSort(5, 11), z3.FPSort(8, 8)
NEAREST, DOWN, UP, TO_ZERO = z3.RNE(), z3.RTN(), z3.RTP(), z3.RTZ()
Called = Callable[..., Bits]


def real(bits: Bits, sort: Any = SINGLE) -> Any:
    return z3.fpBVToFP(resized(bits, sort.ebits() + sort.sbits()), sort)


def stored(value: Any, nan: int) -> Bits:
    """Return the bits of a value: NaN has those of NVIDIA's."""
    bits = z3.fpToIEEEBV(value)
    return z3.If(z3.fpIsNaN(value), z3.BitVecVal(nan, bits.size()), bits)


def singles(how: Callable[..., Any]) -> Called:
    return lambda *of: stored(how(*map(real, of)), 0x7FFFFFFF)


def halves(how: Callable[..., Any], sort: Any) -> Called:
    """Return what does the same to both halves of words."""

    def means(*of: Bits) -> Bits:
        parts = [[real(z3.Extract(at + 15, at, one), sort) for one in of] for at in (16, 0)]
        return z3.Concat(*(stored(how(*one), 0x7FFF) for one in parts))

    return means


def converted(to: Any, mode: Any = NEAREST) -> Called:
    return lambda one: stored(z3.fpToFP(mode, real(one), to), 0x7FFF)


def packed(to: Any, mode: Any = NEAREST) -> Called:
    one = converted(to, mode)
    return lambda upper, lower: z3.Concat(one(upper), one(lower))


def of_integer(how: Callable[..., Any], mode: Any = NEAREST) -> Called:
    return lambda one: z3.fpToIEEEBV(how(mode, one, SINGLE))


def fused(mode: Any) -> Callable[..., Any]:
    return lambda a, b, added: z3.fpFMA(mode, a, b, added)


REAL: dict[str, tuple[int, Called]] = {
    "fadd": (2, singles(lambda a, b: z3.fpAdd(NEAREST, a, b))),
    "fmul": (2, singles(lambda a, b: z3.fpMul(NEAREST, a, b))),
    "ffma": (3, singles(fused(NEAREST))),
    "ffma_rm": (3, singles(fused(DOWN))),
    "ffma_rp": (3, singles(fused(UP))),
    "ffma_rz": (3, singles(fused(TO_ZERO))),
    "single_less": (2, lambda a, b: one_bit(real(a) < real(b))),
    "single_less_equal": (2, lambda a, b: one_bit(real(a) <= real(b))),
    "single_equal": (2, lambda a, b: one_bit(z3.fpEQ(real(a), real(b)))),
    "is_nan": (1, lambda one: one_bit(z3.fpIsNaN(real(one)))),
    "flush": (1, lambda one: z3.If(z3.fpIsSubnormal(real(one)), one & 0x80000000, one)),
    "hadd2": (2, halves(lambda a, b: z3.fpAdd(NEAREST, a, b), HALF)),
    "hmul2": (2, halves(lambda a, b: z3.fpMul(NEAREST, a, b), HALF)),
    "hfma2": (3, halves(fused(NEAREST), HALF)),
    "bfma2": (3, halves(fused(NEAREST), BRAIN)),
    "to_half": (1, converted(HALF)),
    "to_bfloat16": (1, converted(BRAIN)),
    "halves_of_singles": (2, packed(HALF)),
    "halves_toward_zero": (2, packed(HALF, TO_ZERO)),
    "bfloat16s_of_singles": (2, packed(BRAIN)),
    "canonical_single_of_half": (1, lambda one: stored(z3.fpToFP(NEAREST, real(one, HALF), SINGLE), 0x7FFFFFFF)),
    "single_of_s32": (1, of_integer(z3.fpSignedToFP)),
    "single_of_u32": (1, of_integer(z3.fpUnsignedToFP)),
    "single_of_s32_upward": (1, of_integer(z3.fpSignedToFP, UP)),
    "single_of_u32_upward": (1, of_integer(z3.fpUnsignedToFP, UP)),
}
"""Functions of floats, which IEEE 754 states: how many arguments they take, and what they mean."""


def shifted(low: Bits, count: Bits, high: Bits, upper: Bits, how: Callable[[Bits, Bits], Bits]) -> Bits:
    found = how(z3.Concat(high, low), z3.ZeroExt(32, count))
    return z3.If(upper != 0, z3.Extract(63, 32, found), z3.Extract(31, 0, found))


def shifted_right(low: Bits, count: Bits, high: Bits, upper: Bits, signed: Bits) -> Bits:
    kinds = (shifted(low, count, high, upper, how) for how in (lambda x, n: x >> n, z3.LShR))
    return z3.If(signed != 0, *kinds)


def permuted(one: Bits, selector: Bits, other: Bits) -> Bits:
    nibbles, found = resized(selector, 32), []
    for at in (12, 8, 4, 0):
        which = z3.ZeroExt(61, z3.Extract(at + 2, at, nibbles))
        byte = z3.Extract(7, 0, z3.LShR(z3.Concat(other, one), 8 * which))
        sign = z3.If(z3.Extract(7, 7, byte) == 1, z3.BitVecVal(255, 8), z3.BitVecVal(0, 8))
        found.append(z3.If(z3.Extract(at + 3, at + 3, nibbles) == 1, sign, byte))
    return z3.Concat(*found)


# The solver's shifts move all bits out where the count is 32 or more, too.
SHIFTS: dict[str, Called] = {
    "shift_word_left": lambda x, n: x << n,
    "shift_word_right": z3.LShR,
    "shift_word_signed": lambda x, n: x >> n,
}
MOVES: dict[str, Called] = {
    **SHIFTS,
    "shift_left": lambda low, count, high, upper: shifted(low, count, high, upper, lambda x, n: x << n),
    "shift_right": shifted_right,
    "permute": permuted,
    "pack": lambda low, high: z3.Concat(z3.Extract(15, 0, high), z3.Extract(15, 0, low)),
    "count": lambda count, most: z3.If(z3.ULT(count, most), count, most),
}
CALLED: dict[str, Called] = MOVES | {name: means for name, (_, means) in REAL.items()}

ELSEWHERE = {
    *("fchk", "single_of_double", "double_of_single", "single_of_half", "single_of_bfloat16", "stochastic"),
    *("fmnmx", "fmnmx_xorsign", "hmnmx2", "bmnmx2", "hmnmx2_xorsign", "f2i", "f2u", "f2u_64", "bfloat16_of_s32"),
    *("half_of_e2m1", "half_of_e4m3", "half_of_e5m2", "half_of_e2m3", "half_of_e3m2"),
    *("to_e2m1", "to_e4m3", "to_e5m2", "to_e2m3", "to_e3m2"),
}
"""Functions whose rules are NVIDIA's own, of NaN, saturation and formats of few bits: ``test_semantics.py`` has cases,
and a GPU's digests decide."""


# --- what is compared ------------------------------------------------------------------------------------------------


def plain() -> Iterator[Op]:
    """Yield each plain operation, of operands of each width."""
    for one, other in product(WIDTHS, repeat=2):
        a, b = leaf(0, one), leaf(1, other)
        yield from (a + b, a - b, a * b, a & b, a | b, a ^ b, ir.equal(a, b), ir.less(a, b), ir.less_signed(a, b))
        yield from (ir.select(leaf(2, 1), a, b), ir.select(a, b, leaf(2, 32)))
    for bits in WIDTHS:
        a = leaf(0, bits)
        yield from (~a, ir.wide(~a), ir.wide(a), a * 1, a * 5, a * (1 << 31), number(7) - a)
        yield from (one for count in (1, 7, 16, 31) for one in (a << count, a >> count))
    a, b, whole = leaf(0, 32), leaf(1, 32), leaf(0, 64)
    yield from (ir.pair(a, b), ir.low(whole), ir.high(whole), ir.wide_signed(a), whole << 33, whole >> 63)
    yield from (ir.sign_of(a, count) for count in (1, 24, 31))
    yield ir.wide_signed(a) * ir.wide_signed(b) + whole


def moved() -> Iterator[Op]:
    """Yield functions that move bits by a number."""
    a, b = leaf(0, 32), leaf(1, 32)
    for count in (0, 1, 13, 31, 32, 33, 63, 64, 200):
        yield from (F[name](a, number(count)) for name in SHIFTS)
        yield F["count"](number(count), number(32))
        for upper, signed in product((0, 1), repeat=2):
            yield F["shift_left"](a, number(count), b, number(upper))
            yield F["shift_right"](a, number(count), b, number(upper), number(signed))
    for selector in (0x3210, 0x7654, 0x0123, 0xFEDC, 0x8888, 0x4140, 0x13579BDF):
        yield F["permute"](a, number(selector), b)
    yield F["permute"](a, leaf(2, 1), b)
    yield F["pack"](a, b)


def test_each_operation_has_a_meaning_for_the_solver() -> None:
    assert set(PLAIN) == {*ir._C, "left", "right", "not", "less_signed"}
    ours = {name for name, one in FUNCTIONS.items() if not one.grid and not one.thread}
    assert ours == CALLED.keys() | ELSEWHERE
    assert not CALLED.keys() & ELSEWHERE
    assert {op.name for op in (*plain(), *moved())} == PLAIN.keys() | MOVES.keys()


def folded(op: Op) -> list[Any | None]:
    """Return the folded bits of an operation as terms, and None for those that are not followed.

    Its values are parts of one value, since a diagram is of one alone.
    """
    symbols, widths = Symbols(), leaves(op)
    whole = symbols.of_value(0, max(widths.values(), default=1) * max(1, len(widths)))
    words = {name: whole[at :: len(widths)][:bits] for at, (name, bits) in enumerate(widths.items())}
    terms: dict[int, Any | None] = {0: z3.BoolVal(False), 1: z3.BoolVal(True), 2: None}
    tests = dict[int, Any]()
    for name, word in words.items():
        for at, bit in enumerate(word):
            test = z3.Extract(at, at, z3.BitVec(name, widths[name])) == 1
            terms[bit.diagram] = tests[symbols._parts[bit.diagram][0]] = test

    def term(diagram: int) -> Any | None:
        if diagram not in terms:
            atom, *sides = symbols._parts[diagram]
            without, having = map(term, sides)
            followed = atom in tests and without is not None and having is not None
            terms[diagram] = z3.If(tests[atom], having, without) if followed else None
        return terms[diagram]

    folder = Folder(symbols, words.__getitem__, constants=lambda _: (), load=lambda *_: ())
    return [term(bit.diagram) for bit in extended(folder.word(op), op.bits)]


def proven(op: Op) -> int:
    """Prove that what is folded is what the solver says, and return how many bits are followed."""
    meant, bits = smt(op), folded(op)
    assert meant.size() == op.bits == len(bits), op
    differs = [bit != (z3.Extract(at, at, meant) == 1) for at, bit in enumerate(bits) if bit is not None]
    solver = z3.Solver()
    solver.set(timeout=60_000)
    solver.add(z3.Or(differs))
    assert solver.check() == z3.unsat, (op, solver.reason_unknown() or solver.model())
    return len(differs)


def test_what_is_folded_is_right_for_all_values() -> None:
    operations = [*plain(), *moved()]
    followed = [proven(op) for op in operations]
    rest = {op.name for op, bits in zip(operations, followed, strict=True) if bits < op.bits}
    assert rest == {"multiply", "add"}, "a product of two values, and a sum with it, are not followed"


# --- C ---------------------------------------------------------------------------------------------------------------

EDGES: tuple[int, ...] = (
    0,
    1,
    2,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    1 << 63,
    (1 << 64) - 1,
)
FLOATS: tuple[int, ...] = (
    *(0, 0x0000_0001, 0x007F_FFFF, 0x0080_0000, 0x3300_0000, 0x3300_0001, 0x387F_E000, 0x387F_F000, 0x3F80_0000),
    *(0x3F80_1000, 0x3F80_3000, 0x3F80_8000, 0x3F81_8000, 0x477F_EFFF, 0x477F_F000, 0x7F7F_FFFF, 0x7F80_0000),
    *(0x7F80_0001, 0x7FC0_0000, 0x7C00_7BFF, 0x0400_03FF, 0x7E00_0001),
)
"""Floats and pairs of halves: subnormals, ties, the largest ones, infinities and NaN."""


def chosen(rng: random.Random, bits: int, edges: Sequence[int]) -> int:
    """Return a value at an edge, of either sign, or a random one."""
    edge = rng.choice(edges) ^ rng.getrandbits(1) << 31
    return (edge if rng.random() < 0.5 else rng.getrandbits(64)) & (1 << bits) - 1


def block(op: Op, values: dict[str, int]) -> str:
    """Return C that prints what an operation is for some values."""
    declared = "".join(f"uint{max(32, bits)}_t {name} = {values[name]:#x}ull; " for name, bits in leaves(op).items())
    return f'{{ {declared} uint64_t found = {c(op)}; printf("%llx\\n", (unsigned long long)found); }}'


def test_c_computes_what_the_solver_says(tmp_path: Path) -> None:
    rng = random.Random(5)
    cases = [(op, EDGES) for op in (*plain(), *moved()) for _ in range(3)]
    words = [leaf(at, 32) for at in range(3)]
    cases += [(F[name](*words[:takes]), FLOATS) for name, (takes, _) in REAL.items() for _ in range(25)]
    blocks, expected = list[str](), list[int]()
    for op, edges in cases:
        values = {name: chosen(rng, bits, edges) for name, bits in leaves(op).items()}
        given = [(z3.BitVec(name, bits), z3.BitVecVal(values[name], bits)) for name, bits in leaves(op).items()]
        expected.append(z3.simplify(z3.substitute(smt(op), *given)).as_long())
        blocks.append(block(op, values))
    (tmp_path / RUNTIME).write_text(runtime())
    program = ["#include <stdio.h>", f'#include "{RUNTIME}"', "int main(void) {", *blocks, "return 0; }"]
    (tmp_path / "main.c").write_text("\n".join(program))
    command = ["gcc", "-std=gnu11", "-w", "-ffp-contract=off", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout.split()
    wrong = [
        (text, f"{meant:#x}", got)
        for text, meant, got in zip(blocks, expected, out, strict=True)
        if int(got, 16) != meant
    ]
    assert not wrong
