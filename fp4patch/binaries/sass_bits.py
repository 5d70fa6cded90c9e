"""Counts the instructions that matter to FP4 in machine code by their bits, without a disassembler.

From Volta on an instruction is 16 bytes. The opcode is in bits 0 to 8, the kinds of its operands in bits 9 to 11, its
predicate in 12 to 15, a 32-bit immediate in 32 to 63; modifiers begin at bit 72. Which bits stand for what was found by
comparing with nvdisasm, for SM100 and SM120, CUDA 13.0.88; ``tests/binaries/test_sass_bits.py`` compares again: every
instruction of a class is counted, and nothing else is.

The instructions of a cubin are read as arrays, all functions together: a table gives the properties of each opcode, and
only what has one is compared under a mask.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fp4patch.binaries.encoders import CONSTANTS, ENCODERS, recognise
from fp4patch.binaries.report import FP4_CLASSES, Fp4Code, Idle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fp4patch.binaries.cubin import DeviceFunction

WORD = 16
"""Bytes in an instruction."""


@dataclass(frozen=True)
class BitPattern:
    """Instructions of a class: those with this opcode (bits 0 to 8), and with ``value`` under ``mask``.

    Mask and value apply to bytes 7 to 11, as one number.
    """

    name: str
    opcode: int
    mask: int
    value: int


# Bytes 9 to 11 of F2FP select the types. Not compared: RELU (bit 3 of byte 9), which byte or half is taken (bit 0 of
# bytes 9 and 11), and a uniform register as an operand (bit 3 of byte 11). Bit 1 of byte 10 is stochastic rounding.
_CONVERSION, _STOCHASTIC = 0xF6FDF60000, 0x02000000
_ENCODE = _CONVERSION | _STOCHASTIC
_F2FP = 0x03E
_OMMA = 0x07F
_QMMA = 0x07A
_UTCMMA = 0x1EA
_ENCODES = (0x0420700000, 0x0420320000, 0x0428320000)
"""From F32, F16 and BF16."""
PATTERNS = (
    *(BitPattern("nearest", _F2FP, _ENCODE, value) for value in _ENCODES),
    *(BitPattern("stochastic", _F2FP, _ENCODE, value | _STOCHASTIC) for value in _ENCODES),
    BitPattern("decodings", _F2FP, _CONVERSION, 0x0204020000),  # to F16
    BitPattern("decodings", _F2FP, _CONVERSION, 0x0204120000),  # to BF16
    BitPattern("matrix", _OMMA, 0, 0),
    BitPattern("matrix", _QMMA, 0x000C400000, 0x0008400000),  # A is E2M1: bit 6 of byte 9, bits 2 and 3 of byte 10
    BitPattern("matrix", _QMMA, 0x0030800000, 0x0020800000),  # B is
    # Tensor memory's (SM100): bit 7 of byte 7 tells UTCOMMA from UTCHMMA, bits 0 and 1 of byte 9 from UTCQMMA.
    BitPattern("matrix", _UTCMMA, 0x0000030080, 0x0000000080),
)

# Properties of an opcode, as bits; of a function, those that any of its instructions has.
_CLASS = 1 << 0
_READ = 1 << 1
_WRITE = 1 << 2
_CALL = 1 << 3
_TENSOR_MEMORY = 1 << 4
_READS = (0x180, 0x181, 0x1AE, 0x1B4, 0x1BA, 0x18A, 0x18B, 0x1A8, 0x1A9, 0x199, 0x160, 0x161, 0x163, 0x166, 0x167)
"""LD, LDG, LDGSTS, TMA's loads, atomics that return a value, textures: they read memory that others write."""
_WRITES = (
    # ST, STG, STS, ATOM, RED
    0x17F,
    0x185,
    0x186,
    0x188,
    0x18A,
    0x18B,
    0x18C,
    0x18D,
    0x18E,
    0x1A8,
    0x1A9,
    # SUST, SURED; TMA's UTMASTG, UTMAREDG, UBLKCP, UBLKRED
    0x19C,
    0x19D,
    0x19E,
    0x1B5,
    0x1B6,
    0x1BA,
    0x1BB,
)
"""Instructions that another thread can see. STL only keeps a thread's own variables."""
_PROPERTIES = np.zeros(512, np.uint8)
for _opcodes, _has in (
    ([pattern.opcode for pattern in PATTERNS], _CLASS),
    (_READS, _READ),
    (_WRITES, _WRITE),
    ((0x144,), _CALL),  # CALL.REL, of a function beside it; CALL.ABS is of the driver's: vprintf, __assertfail
    ((_UTCMMA,), _TENSOR_MEMORY),
):
    _PROPERTIES[list(_opcodes)] |= np.uint8(_has)

_RAREST = np.array(
    sorted({opcode | constant << 32 for (opcode, constant), *_ in (e.needs for e in ENCODERS)}), np.uint64
)
"""Each encoder's rarest constant, in the instruction that it belongs to."""

_FP4_NAME = re.compile(r"fp4|e2m1", re.IGNORECASE)
_NANOVDB = re.compile(r"nanovdb.*?3Fp4")
"""NanoVDB's codec of four bits for the values of a grid, which is no E2M1."""


def is_named_for_fp4(kernel: str) -> bool:
    """Return whether a kernel's mangled name says that it is for FP4."""
    return bool(_FP4_NAME.search(kernel)) and not _NANOVDB.search(kernel)


@dataclass(frozen=True)
class FunctionCode:
    """FP4 code of a function."""

    code: Fp4Code
    idle: Idle | None = None
    """In which way a kernel does nothing of use, if it does not."""
    tensor_memory: bool = False
    """True if it multiplies in SM100's tensor memory, on operands of any type."""


_NOTHING = FunctionCode(Fp4Code())


def _classes(words: NDArray[np.uint64], opcodes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the positions of the instructions of each class."""
    at = np.flatnonzero(_PROPERTIES[opcodes] & np.uint8(_CLASS))
    keys = words[at, 0] >> 56 | (words[at, 1] & 0xFFFFFFFF) << 8
    fits = {name: np.zeros(at.size, bool) for name in FP4_CLASSES}
    for pattern in PATTERNS:
        fits[pattern.name] |= (opcodes[at] == pattern.opcode) & (keys & pattern.mask == pattern.value)
    return {name: at[which] for name, which in fits.items()}


def by_function(data: bytes, functions: Sequence[DeviceFunction]) -> list[FunctionCode]:
    """Return what each of a cubin's functions holds; ``data`` is the cubin."""
    codes = [data[f.begin : f.end - (f.end - f.begin) % WORD] for f in functions]
    borders = np.cumsum([0, *(len(code) // WORD for code in codes)])
    words = np.frombuffer(b"".join(codes), "<u8").reshape(-1, 2)  # each as its lower and its upper half
    opcodes = (words[:, 0] & 0x1FF).astype(np.uint16)
    properties = _PROPERTIES[opcodes]
    has = [int(np.bitwise_or.reduce(properties[a:b])) if b > a else 0 for a, b in pairwise(borders)]

    def by_owner(places: NDArray[Any]) -> list[int]:
        owners = np.searchsorted(borders, places, side="right") - 1
        counts: list[int] = np.bincount(owners, minlength=len(codes)).tolist()
        return counts

    counts = zip(*map(by_owner, _classes(words, opcodes).values()), strict=True)
    constants = by_owner(np.flatnonzero(np.isin(words[:, 0] & CONSTANTS, _RAREST)))
    encoders = [recognise(code) if may else {} for code, may in zip(codes, constants, strict=True)]
    return list(map(_function, functions, has, counts, encoders))


def _function(function: DeviceFunction, has: int, counts: tuple[int, ...], encoders: dict[str, int]) -> FunctionCode:
    fp4 = bool(encoders or any(counts))
    idle = _idle(has) if function.kernel and not fp4 else None
    named = function.kernel and is_named_for_fp4(function.name)
    tensor_memory = bool(has & _TENSOR_MEMORY)
    if not (fp4 or idle or named or tensor_memory):
        return _NOTHING
    names = (function.name,) if named else ()
    own = dict(zip(FP4_CLASSES, counts, strict=True))
    return FunctionCode(Fp4Code(**own, encoders=encoders, named=names), idle, tensor_memory)


def _idle(has: int) -> Idle | None:
    """Return in which way a kernel does nothing of use, if it does not."""
    if has & _CALL:
        return None
    if not has & _WRITE:
        return Idle.EMPTY
    return None if has & _READ else Idle.UNREAD
