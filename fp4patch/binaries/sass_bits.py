"""Finds the instructions that matter to FP4 in machine code by their bits, without a disassembler.

From Volta on an instruction is 16 bytes. The opcode is in bits 0 to 8, the kinds of its operands in bits 9 to 11, its
predicate in 12 to 15, a 32-bit immediate in 32 to 63; modifiers begin at bit 72. Which bits stand for what was found by
comparing with nvdisasm, for SM100 and SM120, CUDA 13.0.88; ``tests/binaries/test_sass_bits.py`` compares again, both
ways: every instruction of a class is found, and nothing else is.

The instructions of a cubin are read as arrays, all functions together: a table gives the properties of each opcode, and
only what has one is compared under a mask.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fp4patch.binaries.encoders import CONSTANTS, ENCODERS, ROUNDING, recognise
from fp4patch.binaries.report import Fp4Code, Idle, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from fp4patch.binaries.cubin import DeviceFunction

WORD = 16
"""Bytes in an instruction."""
_TOGETHER = 1 << 23
"""Bytes of code that are looked at together, where no function has more."""


@dataclass(frozen=True)
class BitPattern:
    """One kind of instruction: those with ``value`` under ``mask``, and what to call one."""

    name: str
    opcode: int
    """Bits 0 to 8."""
    mask: int
    """Applies to bytes 7 to 11, as one number; byte 1 is above them."""
    value: int
    kinds: int
    """The bits, of the same number, that ``kind`` tells apart."""
    kind: Callable[[int], str]


# Bytes 9 to 11 of F2FP select the types. Not compared: RELU (bit 3 of byte 9), stochastic rounding (bit 1 of byte
# 10), which byte or half is taken (bit 0 of bytes 9 and 11), and a uniform register as an operand (bit 3 of byte 11).
_CONVERSION = 0xF6FDF60000
_F2FP, _OMMA, _QMMA, _UTCMMA = 0x03E, 0x07F, 0x07A, 0x1EA

_QMMA_TYPES = {0: "E4M3", 1: "E5M2", 3: "E3M2", 4: "E2M3", 5: "E2M1"}
_OMMA_SCALES = {0: "E8.4X", 1: "UE4M3.4X", 2: "E8"}


def _byte(key: int, number: int) -> int:
    return key >> 8 * (number - 7 if number > 1 else 5) & 0xFF


def _omma(key: int) -> str:
    modifiers = _byte(key, 10)
    scale = _OMMA_SCALES.get(modifiers >> 2 & 3, "?")
    return f"OMMA.SF{'.SP' if modifiers & 1 else ''} E2M1.E2M1 {scale}"


def _qmma(key: int) -> str:
    low, high = _byte(key, 9), _byte(key, 10)
    a = low >> 6 & 1 | (high >> 2 & 1) << 1 | (high >> 3 & 1) << 2
    b = low >> 7 & 1 | (high >> 4 & 1) << 1 | (high >> 5 & 1) << 2
    scaled = _byte(key, 1) >> 1 & 7 == 2
    types = f"{_QMMA_TYPES.get(a, '?')}.{_QMMA_TYPES.get(b, '?')}"
    return f"QMMA{'.SF' if scaled else ''}{'.SP' if high & 1 else ''} {types}{' E8' if scaled else ''}"


def _from(source: str) -> Callable[[int], str]:
    return lambda key: f"{source}.RS" if _byte(key, 10) & 2 else source


_STOCHASTIC = 0x02000000
CLASSES = (
    BitPattern("encode", _F2FP, _CONVERSION, 0x0420700000, _STOCHASTIC, _from("F32")),
    BitPattern("encode", _F2FP, _CONVERSION, 0x0420320000, _STOCHASTIC, _from("F16")),
    BitPattern("encode", _F2FP, _CONVERSION, 0x0428320000, _STOCHASTIC, _from("BF16")),
    BitPattern("decode", _F2FP, _CONVERSION, 0x0204020000, 0, lambda _: "F16"),
    BitPattern("decode", _F2FP, _CONVERSION, 0x0204120000, 0, lambda _: "BF16"),
    BitPattern("mma", _OMMA, 0, 0, 0xFF000000, _omma),
    BitPattern("mma", _QMMA, 0, 0, 0xFF00FFFF0000, _qmma),
    # Tensor memory's (SM100): bit 7 of byte 7 tells UTCOMMA from UTCHMMA, bits 0 and 1 of byte 9 from UTCQMMA.
    BitPattern("mma", _UTCMMA, 0x0000030080, 0x0000000080, 0x40, lambda key: "UTCOMMA" if key & 0x40 else "UTCOMMA.4X"),
)

_NOP, _EXIT, _BRA, _CALLS = 0x118, 0x14D, 0x147, (0x143, 0x144)

# Properties of an opcode, as bits; of a function, those that any of its instructions has.
_CLASS, _READ, _WRITE, _CALL, _TENSOR_MEMORY = (1 << bit for bit in range(5))
_READS = (0x180, 0x181, 0x1AE, 0x1B4, 0x1BA, 0x18A, 0x18B, 0x1A8, 0x1A9, 0x199, 0x160, 0x161, 0x163, 0x166, 0x167)
"""LD, LDG, LDGSTS, TMA's loads, atomics that return a value, textures: they read memory that others write."""
_WRITES = (
    *(0x17F, 0x185, 0x186, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A8, 0x1A9),  # ST, STG, STS, ATOM, RED
    *(0x19C, 0x19D, 0x19E, 0x1B5, 0x1B6, 0x1BA, 0x1BB),  # SUST, SURED; TMA's UTMASTG, UTMAREDG, UBLKCP, UBLKRED
)
"""Instructions that another thread can see. STL only keeps a thread's own variables."""
_PROPERTIES = np.zeros(512, np.uint8)
for _opcodes, _has in (
    ([c.opcode for c in CLASSES], _CLASS),
    (_READS, _READ),
    (_WRITES, _WRITE),
    (_CALLS, _CALL),
    ((_UTCMMA,), _TENSOR_MEMORY),
):
    _PROPERTIES[list(_opcodes)] |= np.uint8(_has)

_RAREST = np.array(
    sorted({opcode | constant << 32 for (opcode, constant), *_ in (e.needs for e in ENCODERS)}), np.uint64
)
"""Each encoder's rarest constant, in the instruction that it belongs to."""

_EMPTY_AT_MOST = 4
"""Instructions of a kernel that does nothing."""
_FP4_NAME = re.compile(r"fp4|e2m1", re.IGNORECASE)


@dataclass(frozen=True)
class FunctionCode:
    """FP4 code of a function."""

    code: Fp4Code
    idle: Idle | None = None
    """In which way a kernel does nothing of use, if it does not."""
    tensor_memory: bool = False
    """True if it multiplies in SM100's tensor memory, on operands of any type."""


_NOTHING = FunctionCode(Fp4Code())


def _words(code: bytes) -> NDArray[np.uint64]:
    """Return the instructions, each as its lower and its upper half."""
    return np.frombuffer(code[: len(code) - len(code) % WORD], "<u8").reshape(-1, 2)


def _found(words: NDArray[np.uint64], opcodes: NDArray[Any]) -> Iterator[tuple[BitPattern, NDArray[Any], NDArray[Any]]]:
    """Yield each class that occurs, the positions of its instructions, and the bits that distinguish their kinds."""
    at = np.flatnonzero(_PROPERTIES[opcodes] & np.uint8(_CLASS))
    low, high, which = words[at, 0], words[at, 1], opcodes[at]
    keys = (low >> 8 & 0xFF) << 40 | low >> 56 | (high & 0xFFFFFFFF) << 8
    for candidate in CLASSES:
        here = np.flatnonzero((which == candidate.opcode) & (keys & candidate.mask == candidate.value))
        if here.size:
            yield candidate, at[here], keys[here] & candidate.kinds


def find(code: bytes) -> list[tuple[int, BitPattern, str]]:
    """Return every instruction of a class in a function's code: its place, its class, and what it is called."""
    words = _words(code)
    found = _found(words, (words[:, 0] & 0x1FF).astype(np.uint16))
    return sorted(
        (
            (int(at) * WORD, candidate, candidate.kind(int(key)))
            for candidate, places, keys in found
            for at, key in zip(places, keys, strict=True)
        ),
        key=lambda one: one[0],
    )


def by_function(data: bytes, functions: Sequence[DeviceFunction]) -> list[FunctionCode]:
    """Return what each of a cubin's functions holds; ``data`` is the cubin."""
    found: list[FunctionCode] = []
    pending: list[DeviceFunction] = []
    for function in functions:
        if pending and function.end - pending[0].begin > _TOGETHER:
            found += _together(data, pending)
            pending = []
        pending.append(function)
    return found + (_together(data, pending) if pending else [])


def scan(data: bytes, functions: Sequence[DeviceFunction]) -> Fp4Code:
    """Return what a cubin's functions hold together."""
    return total(found.code for found in by_function(data, functions))


def _together(data: bytes, functions: Sequence[DeviceFunction]) -> list[FunctionCode]:
    codes = [data[f.begin : f.end - (f.end - f.begin) % WORD] for f in functions]
    borders = np.cumsum([0, *(len(code) // WORD for code in codes)])
    words = _words(b"".join(codes))
    opcodes = (words[:, 0] & 0x1FF).astype(np.uint16)
    properties = _PROPERTIES[opcodes]
    has = [int(np.bitwise_or.reduce(properties[a:b])) if b > a else 0 for a, b in pairwise(borders)]

    def owners(places: NDArray[Any]) -> NDArray[Any]:
        return np.searchsorted(borders, places, side="right") - 1

    counts: dict[int, dict[str, Counter[str]]] = {}
    for candidate, places, keys in _found(words, opcodes):
        kinds, kind = np.unique(keys, return_inverse=True)
        pairs, numbers = np.unique(owners(places) * kinds.size + kind, return_counts=True)
        for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
            counted = counts.setdefault(pair // kinds.size, {}).setdefault(candidate.name, Counter())
            counted[candidate.kind(int(kinds[pair % kinds.size]))] += number
    may_encode = set(owners(np.flatnonzero(np.isin(words[:, 0] & CONSTANTS, _RAREST))).tolist())
    return [
        _function(function, code, has[i], counts.get(i, {}), encodes=i in may_encode)
        for i, (function, code) in enumerate(zip(functions, codes, strict=True))
    ]


def _function(
    function: DeviceFunction, code: bytes, has: int, counts: dict[str, Counter[str]], *, encodes: bool
) -> FunctionCode:
    encoders = recognise(code) if encodes else {}
    roundings = encoders.pop(ROUNDING, 0)
    fp4 = bool(encoders or counts.keys() & {"encode", "decode", "mma"})
    idle = _idle(code, has) if function.kernel and not fp4 else None
    named = function.kernel and _FP4_NAME.search(function.name)
    tensor_memory = bool(has & _TENSOR_MEMORY)
    if not (fp4 or roundings or idle or named or tensor_memory):
        return _NOTHING
    code_found = Fp4Code(
        encodes=counts.get("encode", {}),
        encoders=encoders,
        roundings=roundings,
        decodes=sum(counts.get("decode", {}).values()),
        mma=counts.get("mma", {}),
        named=(function.name,) if named else (),
    )
    return FunctionCode(code_found, idle, tensor_memory)


def _idle(code: bytes, has: int) -> Idle | None:
    """Return in which way a kernel does nothing of use, if it does not."""
    if has & _CALL:
        return None
    if not has & _WRITE and len(code) <= 32 * WORD:
        opcodes = (_words(code)[:, 0] & 0x1FF).tolist()
        left = [opcode for opcode in opcodes if opcode not in (_NOP, _BRA)]  # the branch to itself at the end
        return Idle.EMPTY if len(left) <= _EMPTY_AT_MOST and _EXIT in left else None
    return Idle.UNREAD if has & _WRITE and not has & _READ else None
