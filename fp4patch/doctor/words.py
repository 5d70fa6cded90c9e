"""Finds the instructions that matter to FP4 in machine code by their bits, without a disassembler.

From Volta on an instruction is 16 bytes. The opcode is in bits 0 to 8, the kinds of its operands in bits 9 to 11, its
predicate in 12 to 15, a 32-bit immediate in 32 to 63; modifiers begin at bit 72. Which bits stand for what was found by
comparing with nvdisasm, for SM100 and SM120, CUDA 13.0.88; ``tests/doctor/test_words.py`` compares again, both
ways: every instruction of a class is found, and nothing else is.

The first byte of every instruction, taken out by a slice, is searched for the few opcodes that matter; what is found is
compared under a mask. That is 16 bytes for each that a regular expression sees, and no array library is faster.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.doctor.encoders import ENCODERS, ROUNDING, recognise
from fp4patch.model.doctor_binaries import Fp4Code, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fp4patch.doctor.elf import Function

WORD = 16
"""Bytes in an instruction."""


@dataclass(frozen=True)
class Class:
    """One kind of instruction: those with ``value`` under ``mask``, and what to call one."""

    name: str
    opcode: int
    """Bits 0 to 8."""
    mask: int
    """Of bytes 7 to 11, as one number."""
    value: int
    kind: Callable[[bytes], str]

    def matches(self, word: bytes) -> bool:
        """Whether this instruction, of the right opcode, is of the class."""
        return int.from_bytes(word[7:12], "little") & self.mask == self.value


# Of F2FP, bytes 9 to 11 say what becomes of what. Left open: RELU (bit 3 of byte 9), stochastic rounding (bit 1 of byte
# 10), which byte or half is taken (bit 0 of bytes 9 and 11), and a uniform register as an operand (bit 3 of byte 11).
_CONVERSION = 0xF6FDF60000
_F2FP, _OMMA, _QMMA, _UTCMMA, _BPT = 0x03E, 0x07F, 0x07A, 0x1EA, 0x15C

_QMMA_TYPES = {0: "E4M3", 1: "E5M2", 3: "E3M2", 4: "E2M3", 5: "E2M1"}
_OMMA_SCALES = {0: "E8.4X", 1: "UE4M3.4X", 2: "E8"}


def _omma(word: bytes) -> str:
    sparse, scale = word[10] & 1, _OMMA_SCALES.get(word[10] >> 2 & 3, "?")
    return f"OMMA.SF{'.SP' if sparse else ''} E2M1.E2M1 {scale}"


def _qmma(word: bytes) -> str:
    a = word[9] >> 6 & 1 | (word[10] >> 2 & 1) << 1 | (word[10] >> 3 & 1) << 2
    b = word[9] >> 7 & 1 | (word[10] >> 4 & 1) << 1 | (word[10] >> 5 & 1) << 2
    sparse, scaled = word[10] & 1, word[1] >> 1 & 7 == 2
    types = f"{_QMMA_TYPES.get(a, '?')}.{_QMMA_TYPES.get(b, '?')}"
    return f"QMMA{'.SF' if scaled else ''}{'.SP' if sparse else ''} {types}{' E8' if scaled else ''}"


def _from(source: str) -> Callable[[bytes], str]:
    return lambda word: f"{source}.RS" if word[10] & 2 else source


CLASSES = (
    Class("encode", _F2FP, _CONVERSION, 0x0420700000, _from("F32")),
    Class("encode", _F2FP, _CONVERSION, 0x0420320000, _from("F16")),
    Class("encode", _F2FP, _CONVERSION, 0x0428320000, _from("BF16")),
    Class("decode", _F2FP, _CONVERSION, 0x0204020000, lambda _: "F16"),
    Class("decode", _F2FP, _CONVERSION, 0x0204120000, lambda _: "BF16"),
    Class("mma", _OMMA, 0, 0, _omma),
    Class("mma", _QMMA, 0, 0, _qmma),
    # Tensor memory's (SM100): bit 7 of byte 7 tells UTCOMMA from UTCHMMA, bits 0 and 1 of byte 9 from UTCQMMA.
    Class("mma", _UTCMMA, 0x0000030080, 0x0000000080, lambda word: "UTCOMMA" if word[7] & 0x40 else "UTCOMMA.4X"),
    Class("trap", _BPT, 0x0070000000, 0x0030000000, lambda _: "TRAP"),
)

_BY_OPCODE = {c.opcode: tuple(d for d in CLASSES if d.opcode == c.opcode) for c in CLASSES}
_FIRST_BYTES = re.compile(b"[" + b"".join(re.escape(bytes([c & 0xFF])) for c in sorted(_BY_OPCODE)) + b"]")

# Of each encoder's rarest constant: the first byte of its instruction, and the upper two of the constant.
_RAREST = [(e.needs[0][0] & 0xFF, *e.needs[0][1].to_bytes(4, "little")[2:]) for e in ENCODERS]
_CONSTANTS = re.compile(b"|".join(sorted({re.escape(bytes(three)) for three in _RAREST})))

_NOP, _BRA, _EXIT, _CALLS = 0x118, 0x147, 0x14D, frozenset({0x143, 0x144})
# ST, STG, STS, ATOM, ATOMS, RED, ATOMG: a kernel with one of them does something. STL only keeps its own variables.
_WRITES = frozenset({0x185, 0x186, 0x17F, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A8, 0x1A9})
_DOUBLE = frozenset({0x028, 0x029, 0x02A, 0x02B})  # DMUL, DADD, DSETP, DFMA
_F2F = 0x110  # between widths: the result's in bits 75 and 76, the source's in 84 and 85; 3 is 64 bits
_TRAPS_AT_MOST = 64  # instructions; CUTLASS's kernels for other targets print a line before they trap
_EMPTY_AT_MOST = 4

_FP4_NAME = re.compile(r"fp4|e2m1", re.IGNORECASE)


def find(code: bytes) -> Iterator[tuple[int, Class, str]]:
    """Every instruction of a class in a function's code: where it stands, its class, and what it is called."""
    for match in _FIRST_BYTES.finditer(code[::WORD]):
        at = match.start() * WORD
        word = code[at : at + WORD]
        for candidate in _BY_OPCODE.get(word[0] | (word[1] & 1) << 8, ()):
            if candidate.matches(word):
                yield at, candidate, candidate.kind(word)


def by_function(data: bytes, functions: Sequence[Function]) -> list[Fp4Code]:
    """Return what each of a cubin's functions holds; ``data`` is the cubin."""
    return [_function(data[f.begin : f.end - (f.end - f.begin) % WORD], f) for f in functions]


def scan(data: bytes, functions: Sequence[Function]) -> Fp4Code:
    """Return what a cubin's functions hold together."""
    return total(by_function(data, functions))


def _function(code: bytes, function: Function) -> Fp4Code:
    counts: dict[str, Counter[str]] = {"encode": Counter(), "decode": Counter(), "mma": Counter(), "trap": Counter()}
    for _, found, kind in find(code):
        counts[found.name][kind] += 1
    encoders = recognise(code) if _may_encode(code) else {}
    roundings = encoders.pop(ROUNDING, 0)
    trap = empty = False
    if function.kernel and (counts["trap"] or len(code) <= 32 * WORD):
        trap, empty = _idle(code, traps=bool(counts["trap"]))
    name = (function.name,)
    return Fp4Code(
        encodes=counts["encode"],
        encoders=encoders,
        roundings=roundings,
        decodes=counts["decode"].total(),
        mma=counts["mma"],
        f64=_doubles(code) if encoders or counts["encode"] else 0,
        traps=name if trap else (),
        empty=name if empty else (),
        named=name if function.kernel and _FP4_NAME.search(function.name) else (),
    )


def _may_encode(code: bytes) -> bool:
    """Whether the rarest constant of some encoder stands in the code."""
    three = bytearray(3 * (len(code) // WORD))
    for place, byte in enumerate((0, 6, 7)):
        three[place::3] = code[byte::WORD]
    at = 0
    while found := _CONSTANTS.search(three, at):
        if found.start() % 3 == 0:
            return True
        at = found.start() + 1
    return False


def _opcodes(code: bytes) -> list[int]:
    return [low | (high & 1) << 8 for low, high in zip(code[::WORD], code[1::WORD], strict=True)]


def _idle(code: bytes, *, traps: bool) -> tuple[bool, bool]:
    """Whether a kernel only traps, and whether it does nothing at all."""
    opcodes = [opcode for opcode in _opcodes(code) if opcode != _NOP]
    if opcodes and opcodes[-1] == _BRA:  # the branch to itself that ends every function
        opcodes.pop()
    if not _WRITES.isdisjoint(opcodes):
        return False, False
    if traps:
        return len(opcodes) <= _TRAPS_AT_MOST, False
    return False, len(opcodes) <= _EMPTY_AT_MOST and _EXIT in opcodes and _CALLS.isdisjoint(opcodes)


def _doubles(code: bytes) -> int:
    """Double-precision instructions."""
    number = 0
    for index, opcode in enumerate(_opcodes(code)):
        if opcode in _DOUBLE:
            number += 1
        elif opcode == _F2F:
            word = code[index * WORD : index * WORD + WORD]
            number += word[9] >> 3 & 3 == 3 or word[10] >> 4 & 3 == 3
    return number
