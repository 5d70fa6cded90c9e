"""Effects of an instruction as expressions: printed as C to be executed, folded bit by bit to be compared.

A value has so many bits, without sign; an operand with fewer bits than its operation is extended by zeros. What is not
a plain operation on bits is a function of ``runtime.h`` or ``grid.c``, and ``FUNCTIONS`` has all of them by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PREFIX = "sass_"
"""Prefix of the functions' names in C."""


@dataclass(frozen=True)
class Op:
    """An operation with its arguments: operations, or what a leaf is."""

    name: str
    arguments: tuple[Op | int | str, ...]
    bits: int

    @property
    def operands(self) -> tuple[Op, ...]:
        """Arguments that are operations."""
        return tuple(one for one in self.arguments if isinstance(one, Op))

    def __add__(self, other: Op | int) -> Op:
        """Return the sum."""
        return self._with("add", other, 32)

    def __sub__(self, other: Op | int) -> Op:
        """Return the difference."""
        return self._with("subtract", other, 32)

    def __mul__(self, other: Op | int) -> Op:
        """Return the low bits of the product."""
        return self._with("multiply", other, 32)

    def __and__(self, other: Op | int) -> Op:
        """Return the bits that both have."""
        return self._with("and", other)

    def __or__(self, other: Op | int) -> Op:
        """Return the bits that one has."""
        return self._with("or", other)

    def __xor__(self, other: Op | int) -> Op:
        """Return the bits that exactly one has."""
        return self._with("xor", other)

    def __invert__(self) -> Op:
        """Return the complement."""
        return self ^ (1 << self.bits) - 1 if self.bits < 32 else Op("not", (self,), self.bits)  # of a word in C

    def __lshift__(self, count: int) -> Op:
        """Return the bits shifted left by a count that is known."""
        return Op("left", (self, count), max(32, self.bits)) if count else self

    def __rshift__(self, count: int) -> Op:
        """Return the bits shifted right by a count that is known."""
        return Op("right", (self, count), max(32, self.bits)) if count else self

    def _with(self, name: str, other: Op | int, least: int = 1) -> Op:
        bits = max(least, self.bits)
        other = number(other, bits) if isinstance(other, int) else other
        return Op(name, (self, other), max(bits, other.bits))


# --- leaves and plain operations -------------------------------------------------------------------------------------


def number(value: int, bits: int = 32) -> Op:
    """Return a constant."""
    return Op("number", (value & (1 << bits) - 1,), bits)


ZERO, TRUE, FALSE = number(0), number(1, 1), number(0, 1)
POISON = Op("poison", (), 32)
"""What nothing defines."""


def register(name: str) -> Op:
    """Return the value of a register, or of a predicate."""
    return Op("register", (name,), 1 if "p" in name else 32)


def index(name: str) -> Op:
    """Return an index of the thread or its block: a member of ``struct launch``."""
    return Op("index", (name,), 32)


def constant(offset: int) -> Op:
    """Return a word of constant bank 0."""
    return Op("constant", (offset,), 32)


def pair(low_word: Op, high_word: Op) -> Op:
    """Return 64 bits of two words."""
    return Op("pair", (low_word, high_word), 64)


def low(wide: Op) -> Op:
    """Return the lower word of 64 bits."""
    return wide.operands[0] if wide.name == "pair" else Op("low", (wide,), 32)


def high(wide: Op) -> Op:
    """Return the upper word of 64 bits."""
    return wide.operands[1] if wide.name == "pair" else Op("high", (wide,), 32)


def wide(value: Op) -> Op:
    """Return a value as 64 bits without sign."""
    return Op("wide", (value,), 64)


def wide_signed(value: Op) -> Op:
    """Return a word as 64 bits with its sign."""
    return Op("wide_signed", (value,), 64)


def sign_of(value: Op, count: int = 31) -> Op:
    """Return a word shifted right by a count that is known, filled with its sign."""
    return Op("right_signed", (value, count), 32) if count else value


def select(test: Op, one: Op, other: Op) -> Op:
    """Return one value if a bit is set, else the other."""
    return Op("select", (test, one, other), max(one.bits, other.bits))


def equal(one: Op, other: Op) -> Op:
    """Return whether two values are equal."""
    return Op("equal", (one, other), 1)


def less(one: Op, other: Op) -> Op:
    """Return whether one value is below the other, without signs."""
    return Op("less", (one, other), 1)


def less_signed(one: Op, other: Op) -> Op:
    """Return whether one value is below the other, with signs."""
    return Op("less_signed", (one, other), 1)


def either(first: Op, second: Op, *, least: Op, signed: bool) -> Op:
    """Return the lesser of two words if a bit is set, else the greater."""
    below = (less_signed if signed else less)(first, second)
    return select(equal(below, least), first, second)


# --- functions of runtime.h and grid.c -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A function in C. Its result has so many bits that can be set."""

    name: str
    bits: int = 32
    halves: int = 0
    """It does the same to the low and to the high halves of its first so many arguments."""
    packs: bool = False
    """It converts its second argument to the low half, and in the same way its first to the high one."""
    commutes: bool = False
    moves: bool = False
    """It moves bits: ``folding`` knows where to."""
    grid: bool = False
    """It is in ``grid.c``, and not followed."""
    thread: bool = False
    """It takes the thread first."""

    def __call__(self, *arguments: Op) -> Op:
        """Return the function of arguments."""
        return Op(self.name, arguments, self.bits)


FUNCTIONS: dict[str, Function] = {}
"""By name."""


def _functions(names: str, **features: int) -> None:
    for name in names.split():
        FUNCTIONS[name] = Function(name, **features)  # type: ignore[arg-type]


_functions("single_less single_less_equal single_equal is_nan fchk", bits=1)
_functions("ffma ffma_rm ffma_rp ffma_rz flush fmnmx fmnmx_xorsign f2i f2u single_of_double")
_functions("fadd fmul", commutes=True)
_functions("f2u_64 double_of_single", bits=64)
_functions("single_of_half single_of_bfloat16 canonical_single_of_half")
_functions("single_of_s32 single_of_u32 single_of_s32_upward single_of_u32_upward")
_functions(
    "to_half to_bfloat16 bfloat16_of_s32 half_of_e2m1 half_of_e4m3 half_of_e5m2 half_of_e2m3 half_of_e3m2", bits=16
)
_functions("halves_of_singles halves_toward_zero bfloat16s_of_singles", packs=True)
_functions("hmul2 hadd2", halves=2, commutes=True)
_functions("hmnmx2 bmnmx2", halves=2)
_functions("hfma2 bfma2", halves=3)
_functions("hmnmx2_xorsign shift_word_left shift_word_right shift_word_signed count shift_left shift_right", moves=True)
_functions("permute pack", moves=True)
_functions("to_e2m1", bits=4)
_functions("to_e4m3 to_e5m2", bits=8)
_functions("to_e2m3 to_e3m2", bits=6)
_functions("stochastic")
_functions(
    "rcp rsq ex2 single_of_u64_upward bfloat16_of_ue8m0 to_bfloat16_upward popc leading leading_zeros reversed",
    grid=True,
)
_functions("load_8", bits=8, thread=True)
_functions("load_16", bits=16, thread=True)
_functions("load_32", thread=True)
_functions("aligned", bits=64, thread=True)
for _memory in ("shared", "local"):
    _functions(f"{_memory}_load_8", bits=8, grid=True, thread=True)
    _functions(f"{_memory}_load_16", bits=16, grid=True, thread=True)
    _functions(f"{_memory}_load_32 {_memory}_aligned", grid=True, thread=True)
_functions("bank", grid=True)
_functions("own_constant to_ue8m0 global_atomic shared_atomic copy_async named_arrive", grid=True, thread=True)
_functions("mbarrier_exchange mbarrier_changed", bits=64, grid=True, thread=True)
_functions("mbarrier_done", bits=1, grid=True, thread=True)


def function(name: str) -> Function:
    """Return a function by its name; KeyError if there is none."""
    return FUNCTIONS[name]


# --- effects ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """A register, or a predicate, gets a value."""

    register: str
    value: Op


@dataclass(frozen=True)
class Store:
    """Memory gets a value of so many bits."""

    memory: str
    """``global``, ``shared`` or ``local``."""
    address: Op
    value: Op
    bits: int


@dataclass(frozen=True)
class Wait:
    """The thread waits for others, which do something together; registers get what comes of it."""

    kind: str
    sources: tuple[Op, ...]
    results: tuple[tuple[str, int], ...] = ()
    """A register, and the number of its value among what comes of it."""


@dataclass(frozen=True)
class Check:
    """The program ends with an error if a condition does not hold."""

    holds: Op
    problem: str


Effect = Set | Store | Wait | Check
"""Of one instruction: all values are those before it."""


def values(effects: Iterable[Effect]) -> Iterator[Op]:
    """Return what effects are made of."""
    for effect in effects:
        if isinstance(effect, Set):
            yield effect.value
        elif isinstance(effect, Store):
            yield from (effect.address, effect.value)
        elif isinstance(effect, Wait):
            yield from effect.sources
        else:
            yield effect.holds


# --- C ---------------------------------------------------------------------------------------------------------------

_C = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})",
    "and": "({} & {})", "or": "({} | {})", "xor": "({} ^ {})",
    "equal": "({} == {})", "less": "({} < {})", "select": "({} ? {} : {})",
    "pair": PREFIX + "pair({}, {})", "low": "(uint32_t){}", "high": PREFIX + "high({})", "wide": "(uint64_t){}",
    "wide_signed": "(uint64_t)(int64_t)(int32_t){}", "right_signed": "(uint32_t)((int32_t){} >> {})",
}  # fmt: skip
_LEAVES = {"number", "register", "index", "poison", "constant"}


def c(op: Op, named: dict[Op, str] | None = None) -> str:  # noqa: PLR0911 - one return a form
    """Return an operation as C; those that have names as these."""
    if named and op in named:
        return named[op]
    if op.name == "number":
        return f"UINT64_C({op.arguments[0]:#x})" if op.bits > 32 else f"{op.arguments[0]:#x}u"
    if op.name == "register":
        return str(op.arguments[0])
    if op.name == "index":
        return f"launch->{op.arguments[0]}"
    if op.name == "poison":
        return "SASS_POISON"
    if op.name == "constant":
        return f"{PREFIX}constant(launch, {op.arguments[0]:#x}u)"
    arguments = [c(one, named) if isinstance(one, Op) else str(one) for one in op.arguments]
    if op.name in ("left", "right", "not"):
        first = f"(uint64_t){arguments[0]}" if op.bits > op.operands[0].bits >= 32 else arguments[0]
        return f"(~{first})" if op.name == "not" else f"({first} {'<<' if op.name == 'left' else '>>'} {arguments[1]})"
    if op.name == "less_signed":
        kind = f"(int{max(32, *(one.bits for one in op.operands))}_t)"
        return f"({kind}{arguments[0]} < {kind}{arguments[1]})"
    if op.name in _C:
        return _C[op.name].format(*arguments)
    of_thread = ["launch"] if function(op.name).thread else []
    return f"{PREFIX}{op.name}({', '.join([*of_thread, *arguments])})"


def statements(effects: Iterable[Effect], at: int) -> str:
    """Return the effects of the instruction at an address as C: values have names that are used more than once, or
    if more than one register is written."""
    effects = list(effects)
    used = Counter[Op]()
    for value in values(effects):
        _count(value, used)
    sets = sum(isinstance(effect, Set) for effect in effects)
    result = {effect.value for effect in effects if isinstance(effect, Set)} if sets > 1 else set()
    named: dict[Op, str] = {}
    lines = list[str]()
    for value in values(effects):
        for one in _inner_first(value):
            if one not in named and one.name not in {"number", "poison"} and (one in result or used[one] > 1):
                if one.name in _LEAVES and one not in result:
                    continue
                text = c(one, named)
                named[one] = f"v{len(named)}"
                lines.append(f"const uint{64 if one.bits > 32 else 32}_t {named[one]} = {text};")
    for effect in effects:
        lines += _effect(effect, named, at)
    return " ".join(lines)


def _effect(effect: Effect, named: dict[Op, str], at: int) -> list[str]:
    if isinstance(effect, Set):
        return [f"{effect.register or '(void)'}{' = ' * bool(effect.register)}{c(effect.value, named)};"]
    if isinstance(effect, Store):
        memory = "" if effect.memory == "global" else f"{effect.memory}_"
        value = c(effect.value, named)
        cast = f"(uint{effect.bits}_t)" if effect.bits < 32 else ""
        return [f"{PREFIX}{memory}store_{effect.bits}(launch, {c(effect.address, named)}, {cast}{value});"]
    if isinstance(effect, Check):
        return [f'if (!{c(effect.holds, named)}) sass_problem(launch, "{effect.problem}");']
    given = [f"lane->source[{n}] = {c(one, named)};" for n, one in enumerate(effect.sources)]
    taken = [f"{to} = lane->result[{n}];" for to, n in effect.results]
    return [*given, f"SASS_WAIT({at:x}, SASS_{effect.kind});", *taken]


def _inner_first(op: Op) -> Iterator[Op]:
    for one in op.operands:
        yield from _inner_first(one)
    yield op


def _count(op: Op, used: Counter[Op]) -> None:
    """Count the uses of each operation, those within one that has a name once."""
    used[op] += 1
    if used[op] == 1:
        for one in op.operands:
            _count(one, used)
