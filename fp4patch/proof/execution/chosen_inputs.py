"""Selected inputs for kernels with too many inputs, and what conversions must make of them.

Blocks: every 16-bit value as the largest of a block, and seeded random ones. Conversions of codes: all codes in every
pair of lanes, with the results of ``fp4patch.reference``. Launches differ in their sizes, in what MUFU.RCP gives within
its bound, and in the poison in memory that the launch does not define.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fp4patch.catalog.probe import (
    BITS,
    Argument,
    Executes,
    Extent,
    Format,
    Launches,
    LaunchSeries,
    PageCache,
    Quantizes,
    stored_bits,
)
from fp4patch.core.errors import ProofError
from fp4patch.proof.execution.result import Ran
from fp4patch.proof.execution.stochastic import SCALE
from fp4patch.reference.formats import (
    E2M1_VALUES,
    e2m1_decode,
    e2m1_encode,
    e2m1_encode_stochastic,
    e2m3_encode,
    e3m2_encode,
    fp6_decode,
    pack,
    random_bytes,
)
from fp4patch.sass.grid import Array, Launch, Reciprocal, pointers
from fp4patch.sass.immediates import corners
from fp4patch.sass.listing import Listing

T = TypeVar("T")
Bytes = NDArray[np.uint8]
_KINDS: dict[int, Any] = {64: np.uint64, 32: np.uint32, 16: np.uint16}
"""NumPy's integers of so many bits; codes of fewer take a byte."""
_FILL = 0xA5
_AT = 0x7F00_0000_0000
_APART = 0x1_0000_0000
_SCALES: tuple[tuple[float, Reciprocal], ...] = ((1.0, "exact"), (0.37, "up"), (2688.0, "down"), (81.3, "any"))
_POISON = (0x2545F491, 0xDA3E39CB)


# --- whole kernels ---------------------------------------------------------------------------------------------------


def launches(does: Quantizes | Launches) -> tuple[Launch, ...]:
    """Return the launches of a kernel."""
    if isinstance(does, Launches):
        all_of_them = _series(does)
    elif does.launch:
        all_of_them = _series(does.launch, does.input)
    else:
        all_of_them = _pages(does) if does.caches else _rows(does)
    return tuple(replace(launch, poison=_POISON[number % 2]) for number, launch in enumerate(all_of_them))


def beside(
    does: Quantizes | Launches, expected: list[list[bytes]], stored: list[list[bytes]], *, in_order: bool
) -> Ran:
    """Compare the output of the launches with what upstream's kernel stored. ProofError if that is nothing.

    Of a KV cache it is what attention kernels read: upstream's are those of SM100, the others find the block scales
    of V ``in_order``, or as those do.
    """
    of, what = launches(does), "bytes"
    if isinstance(does, Quantizes) and does.caches:
        what = "bytes that attention kernels read in pages,"
        expected = _as_read(does.caches, expected)
        stored = stored if in_order else _as_read(does.caches, stored)
    inputs, wrong, first = 0, 0, ""
    for launch, right, got in zip(of, expected, stored, strict=True):
        before, shall, found = (
            np.frombuffer(b"".join(arrays), dtype=np.uint8)
            for arrays in ([array.content for array in launch.arrays if array.writable], right, got)
        )
        inputs += (changed := int(np.sum(shall != before)))
        if not changed:
            raise ProofError("upstream's code stores nothing with these arguments")
        places = np.flatnonzero(found != shall)
        wrong += len(places)
        if len(places) and not first:
            at = places[0]
            first = f"byte {at} of the output is {found[at]:#04x}, not {shall[at]:#04x}"
    return Ran(f"{what} beside upstream's kernel for sm_120a", inputs, wrong, first=first)


def _rows(quantizes: Quantizes) -> Iterator[Launch]:
    """Yield launches in which each block of threads has a row of blocks of values."""
    each, bits, swizzled = 2, blocks(quantizes.input), quantizes.layout == "swizzled"  # threads of a block of values
    for number, size in enumerate((13 * each, 20 * each) if swizzled else (256, 64, 1024, 96)):
        scale, kind = _SCALES[number + swizzled]
        columns, some = size // each, bits[::13] if swizzled else bits
        rows = len(some) // columns
        scales = -(-rows // 128) * -(-columns // 4) * 512 if swizzled else rows * columns
        taken = some[: rows * columns].tobytes()
        arrays = _placed([taken, struct.pack("<f", scale)], rows * columns * 8, scales)
        parameters = pointers(arrays) + (struct.pack("<ii", rows, columns * 16) if swizzled else b"")
        yield Launch((rows, 1, 1), (size, 1, 1), parameters, arrays, kind)


def _pages(quantizes: Quantizes) -> Iterator[Launch]:
    """Yield launches that fill pages in no order of their slots: a few slots stay empty, and tokens without a slot are
    among them."""
    random, bits = np.random.default_rng(22), blocks(quantizes.input)
    for filled in quantizes.caches:
        slots = random.permutation(filled.pages * filled.tokens).astype(np.int64)
        slots[::29] = -1
        row = filled.heads * filled.head
        taken = bits[random.integers(0, len(bits), (2, len(slots) * row // 16))]
        inputs = [*(part.tobytes() for part in taken), struct.pack("<ff", *filled.scales), slots.tobytes()]
        arrays = _placed(inputs, filled.pages * 2 * filled.data // 8 * 9)
        parameters = pointers(arrays) + struct.pack("<iiii", filled.heads, filled.head, filled.tokens, filled.by_heads)
        threads = -(-row // 16 // 32) * 32  # one for each block of values, as vLLM's dispatcher has them
        yield Launch((len(slots), 1, 1), (threads, 1, 1), parameters, arrays, filled.reciprocal)


def _as_read(caches: Sequence[PageCache], stored: list[list[bytes]]) -> list[list[bytes]]:
    """Return the caches with the block scales of V in the order in which the kernels of SM100 read them.

    A page has the codes of K, its block scales by tokens and heads, and the same of V. Those kernels find V's scales
    elsewhere: four tokens have a matrix, of a row for each scale.
    """
    read = list[list[bytes]]()
    for filled, (content,) in zip(caches, stored, strict=True):
        pages = np.frombuffer(content, dtype=np.uint8).reshape(filled.pages, 2, -1).copy()
        shape = (filled.heads, filled.tokens) if filled.by_heads else (filled.tokens, filled.heads)
        scales = pages[:, 1, filled.data :].reshape(filled.pages, *shape, -1)
        by_heads = scales if filled.by_heads else scales.swapaxes(1, 2)
        token, scale = np.indices(by_heads.shape[2:])
        at = token // 4 * 4 * by_heads.shape[3] + scale * 4 + token % 4
        by_heads[...] = by_heads.reshape(filled.pages, filled.heads, -1)[..., at]
        read.append([pages.tobytes()])
    return read


@cache
def blocks(form: str) -> NDArray[Any]:
    """Return the bits of blocks of 16 values: of 16-bit formats every value is the largest of a block once, in every
    place.

    Then come blocks of one kind of value, and random ones within a few binades of one another.
    """
    random = np.random.default_rng(16)
    wide = form == "float32"
    kind: Any = np.uint32 if wide else np.uint16
    sign, fraction = (31, 23) if wide else (15, 10 if form == "float16" else 7)
    tops = np.arange(1 << 16).astype(kind)
    if wide:
        tops = tops << np.uint32(16) | random.integers(0, 1 << 16, len(tops), dtype=np.uint32)
    limit = np.maximum(tops & kind((1 << sign) - 1), kind(1))[:, None]
    below = random.integers(0, 1 << sign, (len(tops), 16), dtype=kind) % limit
    below |= random.integers(0, 2, below.shape, dtype=kind) << kind(sign)
    below[np.arange(len(tops)), np.arange(len(tops)) % 16] = tops
    specials = np.array([0, 1 << sign, ((1 << sign - fraction) - 1) << fraction, (1 << sign) - 1, 1], dtype=kind)
    alike = np.repeat(specials, 16).reshape(-1, 16)
    base = random.integers(0, (1 << sign - fraction) - 5, (1 << 14, 1))
    near = (base + random.integers(0, 5, (1 << 14, 16))).astype(kind) << kind(fraction)
    near |= random.integers(0, 1 << fraction, near.shape, dtype=kind) | random.integers(
        0, 2, near.shape, dtype=kind
    ) << kind(sign)
    return np.concatenate([below, alike, near])


def values_of(form: str, bits: NDArray[Any]) -> NDArray[Any]:
    """Return the values of codes or of floats' bits: float64 of doubles, else float32."""
    if form == "float16":
        return bits.view(np.float16).astype(np.float32)
    if form == "bfloat16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if form in ("float32", "float64"):
        return bits.view(form)
    return e2m1_decode(bits) if form == "e2m1" else fp6_decode(bits, form)


def _placed(inputs: Sequence[bytes], *outputs: int) -> tuple[Array, ...]:
    """Return arrays with these contents, and behind them writable ones of so many bytes."""
    contents = (*inputs, *(bytes([_FILL]) * size for size in outputs))
    return tuple(Array(_AT + _APART * at, content, at >= len(inputs)) for at, content in enumerate(contents))


def _series(of: LaunchSeries, form: str = "") -> Iterator[Launch]:
    """Yield launches with the arguments that a probe states; ``form`` is the format of its blocks."""
    for number in range(of.alternatives):
        arrays, parameters = list[Array](), b""
        random = np.random.default_rng(18 + number)
        for argument in of.arguments:
            if argument.blocks or argument.count:
                content = (
                    _chosen(form, argument.blocks, number) if argument.blocks else _content(argument, number, random)
                )
                array = Array(_AT + _APART * len(arrays), content, argument.out)
                arrays.append(array)
                parameter = pointers([array])
            else:
                parameter = _bits_of(np.array([_next(argument.values, number)]), str(argument.type)).tobytes()
            parameters += bytes(-len(parameters) % len(parameter)) + parameter
        grid, block = (_extent(extent, number) for extent in (of.grid, of.block))
        yield Launch(grid, block, parameters, tuple(arrays), _next(of.reciprocals, number))


def _next(alternatives: Sequence[T], number: int) -> T:
    """Return what a launch takes of the alternatives."""
    return alternatives[number % len(alternatives)]


def _extent(stated: int | Sequence[Extent], number: int) -> tuple[int, int, int]:
    """Return the size of a launch's grid or block in each dimension."""
    extent = stated if isinstance(stated, int) else _next(stated, number)
    x, y, z, *_ = (*((extent,) if isinstance(extent, int) else extent), 1, 1)
    return x, y, z


def _chosen(form: str, count: int, number: int) -> bytes:
    """Return so many blocks of all, evenly spread, and each launch others if that leaves any."""
    every = blocks(form)
    step = len(every) // count
    return every[number % step :: step][:count].tobytes()


def _content(argument: Argument, number: int, random: np.random.Generator) -> bytes:
    """Return the given values over and over, or seeded ones: finite floats, some of them ties of E2M1."""
    kind, count = str(argument.type), argument.count or 0
    if argument.values:
        given = np.resize(_next(argument.lists, number) if argument.lists else argument.values, count)
        return _bits_of(given, kind).tobytes()
    if argument.out:
        return bytes([_FILL]) * (count * (BITS.get(kind) or 8 * np.dtype(kind).itemsize) // 8)
    if "float" not in kind:
        return random.integers(0, 256, count * np.dtype(kind).itemsize, dtype=np.uint8).tobytes()
    ties = random.integers(-28, 29, count) / 4
    others = random.standard_normal(count) * 2.0 ** random.integers(-4, 3, count)
    values = np.where(random.random(count) < 0.5, ties, others)
    return _bits_of(values, kind).tobytes()


def _bits_of(values: NDArray[Any], form: str) -> NDArray[Any]:
    """Return numbers in a type, bfloat16 truncated."""
    if form == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(form)


# --- conversions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One launch of a conversion, with a row for each record of inputs and of bytes that it must store."""

    launch: Launch
    inputs: NDArray[Any]
    expected: Bytes
    signs: Bytes
    """Bits of ``expected`` that may be set: the signs of NaNs."""


def compare(what: str, cases: Sequence[Case], stored: Sequence[bytes]) -> Ran:
    """Compare the output of the launches with the expected one."""
    wrong, signs, first = 0, 0, ""
    for case, content in zip(cases, stored, strict=True):
        got = np.frombuffer(content, dtype=np.uint8).reshape(case.expected.shape)
        other = np.any(got != case.expected, axis=1)
        bad = np.any(got & ~case.signs != case.expected, axis=1)
        wrong, signs = wrong + int(bad.sum()), signs + int((other & ~bad).sum())
        if np.any(bad) and not first:
            at = int(np.argmax(bad))
            values = ", ".join(f"{int(bits):#x}" for bits in case.inputs[at])
            first = f"{values} gives {got[at].tobytes().hex()}, not {case.expected[at].tobytes().hex()}"
    return Ran(what, sum(len(case.inputs) for case in cases), wrong, signs, first or "a NaN has a sign" * bool(signs))


def conversion(executes: Executes, listing: Listing | None = None) -> Iterator[Case]:
    """Yield the launches of a kernel that converts codes: all of them in every lane, and all pairs in every pair of
    lanes.

    Of 16-bit floats each goes through every lane; of wider ones it is a sample, with each exponent in every lane.
    Stochastic rounding has all its thresholds in every lane. Where the kernel multiplies first, products at boundaries
    and beside them come with these, for each factor in every lane. The immediates of its machine code take every place
    of a record.
    """
    chosen = _thresholds(executes) if executes.rounding == "stochastic" else (_records(executes), None)
    for codes, words in (chosen, *([_suggested(executes, listing)] if listing else [])):
        content, signs = _stored(executes.input, codes), np.zeros(1, dtype=np.uint8)
        if words is not None:
            converted = e2m1_encode_stochastic(_multiplied(executes, codes), random_bytes(words)[:, : executes.lanes])
            content = np.concatenate([content, words.view(np.uint8).reshape(len(words), -1)], axis=1)
        else:
            converted = _converted(executes, codes)
        expected = _stored(executes.output, converted)
        if executes.output in ("e2m1", "e2m3", "e3m2"):
            values = values_of(executes.input, codes)
            signed = np.isnan(values) & np.signbit(values)
            signs = _stored(executes.output, np.where(signed, 1 << BITS[executes.output] - 1, 0).astype(np.uint8))
        for size, poison in ((256, _POISON[0]), (96, _POISON[1])):
            count = len(codes) // size * size
            arrays = _placed([content[:count].tobytes()], expected[:count].size)
            launch = Launch((count // size, 1, 1), (size, 1, 1), pointers(arrays), arrays, poison=poison)
            yield Case(launch, codes[:count], expected[:count], signs[:count] if len(signs) > 1 else signs)


def _suggested(executes: Executes, listing: Listing) -> tuple[NDArray[Any], NDArray[np.uint32] | None]:
    """Codes with the immediates of the machine code in every place of the record, and random words likewise.

    What stands beside them is random: bits, and numbers of the grid's size.
    """
    size = values = -(-executes.lanes * stored_bits(executes.input) // 8)
    if executes.rounding == "stochastic":
        size += (executes.lanes + 3) // 4 * 4
    random, found = np.random.default_rng(21), [np.zeros((0, size), dtype=np.uint8)]
    for width in sorted({4, max(1, executes.bits // 8)}):
        single = np.array(corners(listing, 8 * width), dtype=np.uint64).astype(f"<u{width}").view(np.uint8)
        for place in range(0, size // width * width, width):
            rows = random.integers(0, 256, (len(single) // width, size), dtype=np.uint8)
            if executes.bits >= 16 and place // width % 2:
                numbers = random.uniform(-6.5, 6.5, (len(rows), values * 8 // executes.bits))
                rows[:, :values] = _bits_of(numbers, executes.input).view(np.uint8)
            rows[:, place : place + width] = single.reshape(-1, width)
            found.append(rows)
    whole = np.concatenate(found)
    content = np.resize(whole, (-(-max(len(whole), 1) // 768) * 768, size))  # whole blocks of threads, of each size
    codes = np.ascontiguousarray(content[:, :values]).view(_KINDS.get(executes.bits, np.uint8))
    if executes.input == "e2m1":
        codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)[:, : executes.lanes]
    elif executes.bits == 6:
        codes &= 63
    return codes, np.ascontiguousarray(content[:, values:]).view("<u4") if size > values else None


@cache
def _thresholds(executes: Executes) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Codes, a row for each thread, and its random words.

    Every lane sees the least and the greatest float32 of each half that the encoder makes, of either sign, and every
    16-bit float: with the bytes around its threshold, the least and the greatest byte. Random pairs, and what is no
    number, come with them.
    """
    random = np.random.default_rng(40)
    factors = executes.factors or (1.0,)
    pairs = np.concatenate([_around_thresholds(executes, factor) for factor in factors])
    if executes.bits == 32:
        special = [0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF]
        ends = np.array([(bits | sign, byte) for bits in special for sign in (0, 1 << 31) for byte in (0, 1, 254, 255)])
        pairs = np.concatenate([pairs, ends, random.integers(0, 1 << 32, (1 << 16, 2))]).astype(np.uint32)
    pairs = np.resize(pairs, (-(-len(pairs) // 768) * 768, 2))  # whole blocks of threads, of each size
    rows = np.stack([np.roll(pairs, 40503 * lane + lane, axis=0) for lane in range(executes.lanes)], axis=1)
    each = np.zeros((len(rows), -(-executes.lanes // 4), 4), dtype=np.uint32)
    for lane in range(executes.lanes):
        each[:, lane // 4, lane % 4] = rows[:, lane, 1] & 255
    words = each[..., 0] | each[..., 1] << 16 | each[..., 2] << 8 | each[..., 3] << 24
    return rows[..., 0].astype(_KINDS[executes.bits]), words.astype("<u4")


def _around_thresholds(executes: Executes, factor: float) -> NDArray[np.uint32]:
    """Return pairs of a value's bits and a byte."""
    if executes.bits == 32:
        ends = _ends_of_halves(factor * np.float32(1))
        bits = np.concatenate([ends, ends | np.uint32(1 << 31)])
    else:
        bits = np.arange(1 << 16, dtype=np.uint32)
    kind = _KINDS[executes.bits]
    with np.errstate(all="ignore"):
        magnitude = np.abs(values_of(executes.input, bits.astype(kind)) * np.float32(factor)).astype(np.float64)
        code = np.minimum(np.searchsorted(E2M1_VALUES, magnitude, side="right"), 7)
        below, above = E2M1_VALUES[code - 1].astype(np.float64), E2M1_VALUES[code].astype(np.float64)
        first = np.nan_to_num(np.ceil((above - magnitude) / (above - below) * 256), nan=0, neginf=0)
    around = np.clip(np.add.outer([-1, 0, 1, -256, 256], first), 0, 255).astype(np.uint32)
    pairs = np.stack([np.broadcast_to(bits, around.shape), around], axis=-1).reshape(-1, 2)
    return np.unique(pairs, axis=0)


def _ends_of_halves(factor: np.float32) -> NDArray[np.uint32]:
    """Return the bits of the least and of the greatest float of each half: of their product with the factor and the
    encoder's scale, rounded toward zero."""
    halves = np.arange(0x7C02)
    low, high = np.zeros(len(halves), dtype=np.int64), np.full(len(halves), 0x7F80_0000)
    while np.any(low < high):
        middle = (low + high) // 2
        with np.errstate(all="ignore"):
            product = middle.astype(np.uint32).view(np.float32) * factor * np.float32(SCALE)
            nearest = product.astype(np.float16)
        half = nearest.view(np.uint16) - (nearest.astype(np.float32) > product)
        low, high = np.where(half < halves, middle + 1, low), np.where(half < halves, high, middle)
    ends = np.concatenate([low, low - 1])
    return np.unique(ends[(ends >= 0) & (ends <= 0x7F80_0000)]).astype(np.uint32)


@cache
def _records(executes: Executes) -> NDArray[Any]:
    """Codes, a row for each thread."""
    random, lanes, bits = np.random.default_rng(8), executes.lanes, executes.bits
    kind = _KINDS.get(bits, np.uint8)
    if bits == 16:
        each = np.arange(1 << 16, dtype=np.uint32)[:, None]
        return (each + np.arange(lanes, dtype=np.uint32) * np.uint32(40503)).astype(kind)
    if bits >= 32:
        # Every upper 16 bits with several rests, in every lane: each boundary between two codes, and what is beside it.
        # Of a double also what rounds to such a boundary as a float, and what a float ends with.
        rest = bits - 16
        tops = (np.add.outer(np.arange(1 << 16), np.arange(lanes) * 40503) & 0xFFFF).astype(kind) << kind(rest)
        whole = 1 << rest
        ends = [0, 1, whole - 1]
        ends += [1 << 28, (1 << 29) - 1, 1 << 29, whole - (1 << 29), whole - (1 << 28)] if bits == 64 else []
        chosen = (tops | np.array(ends, dtype=kind)[:, None, None]).reshape(-1, lanes)
        if executes.factors:
            borders = (E2M1_VALUES[1:] + E2M1_VALUES[:-1]) / np.float32(2)
            at = np.divide.outer(borders, np.array(executes.factors, dtype=np.float32)).view(np.uint32)
            beside = np.add.outer(np.arange(-64, 64), at.reshape(-1)).astype(kind).reshape(-1, 1)
            chosen = np.concatenate([chosen, np.repeat(beside, lanes, axis=1)])
        return np.concatenate([chosen, random.integers(0, 1 << bits, (1 << 14, lanes), dtype=kind)])
    codes = np.arange(1 << bits, dtype=kind)
    records = random.integers(0, 1 << bits, (1 << 14, lanes), dtype=kind)
    found = [records]
    for one, other in combinations(range(lanes), 2):
        pairs = random.integers(0, 1 << bits, (len(codes) ** 2, lanes), dtype=kind)
        pairs[:, one], pairs[:, other] = np.repeat(codes, len(codes)), np.tile(codes, len(codes))
        found.append(pairs)
    found.append(np.repeat(codes, lanes).reshape(-1, lanes).repeat(96, axis=0))
    return np.concatenate(found)


def _stored(form: Format, codes: NDArray[Any]) -> Bytes:
    """Codes as in memory: bytes of each record."""
    if form != "e2m1":
        return np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), -1)
    whole = np.zeros((len(codes), codes.shape[1] + codes.shape[1] % 2), dtype=np.uint8)
    whole[:, : codes.shape[1]] = codes
    return pack(whole)


def _multiplied(executes: Executes, codes: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a record's codes, multiplied in float by the factors."""
    values = values_of(executes.input, codes)
    if not executes.factors:
        return values
    with np.errstate(all="ignore"):
        return values * np.resize(np.array(executes.factors, dtype=np.float32), values.shape[-1])


def _converted(executes: Executes, codes: NDArray[Any]) -> NDArray[Any]:
    values = _multiplied(executes, codes)
    encoders: dict[str, Callable[[Any], Bytes]] = {"e2m1": e2m1_encode, "e2m3": e2m3_encode, "e3m2": e3m2_encode}
    if executes.output in encoders:
        return encoders[executes.output](values)
    return _bits_of(values, executes.output).view(_KINDS[BITS[executes.output]])  # exact for the narrow formats
