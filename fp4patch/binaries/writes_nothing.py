"""Paths through a kernel's machine code: whether it can write anything before it traps.

A path ends at an unconditional trap, exit or return. Where a jump's target is not known, it is assumed that the kernel
writes. Offsets of branches were found by comparing with nvdisasm; ``tests/binaries/test_sass_bits.py`` compares again.
"""

from bisect import bisect_left

import numpy as np

BRA, CALLS = 0x147, (0x143, 0x144)
PRINTS, _ASSERTS, _INTERNAL = "vprintf", "__assertfail", "$__internal"
TELLING = (PRINTS, _ASSERTS)
"""Functions of the driver by which a kernel prints."""
WRITES = (
    *(0x17F, 0x185, 0x186, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A8, 0x1A9),  # ST, STG, STS, ATOM, RED
    *(0x19C, 0x19D, 0x19E, 0x1B5, 0x1B6, 0x1BA, 0x1BB),  # SUST, SURED; TMA's UTMASTG, UTMAREDG, UBLKCP, UBLKRED
)
"""Instructions that another thread can see. STL only keeps a thread's own variables."""

_ABSOLUTE, _BPT, _EXIT, _RET, _BSSY, _BSYNC = 0x143, 0x15C, 0x14D, 0x150, 0x145, 0x141
_JUMPS = (0x149, 0x14A, 0x14B, 0x14C)  # BRX, JMP, JMX, BRXU: the target is in a register
_EVENTS = np.zeros(512, np.bool_)
_EVENTS[[*WRITES, *CALLS, *_JUMPS, BRA, _BPT, _EXIT, _RET, _BSSY, _BSYNC]] = True
_ALWAYS = 7
"""The predicate that is true."""


def writes(code: bytes, calls: frozenset[str]) -> bool:
    """Return whether some path of a function writes to memory; ``calls`` are the functions that it may call."""
    if any(name not in TELLING and not name.startswith(_INTERNAL) for name in calls):
        return True
    words = np.frombuffer(code, "<u8").reshape(-1, 2)
    opcodes = words[:, 0] & 0x1FF
    places = np.flatnonzero(_EVENTS[opcodes])
    at, events = places.tolist(), words[places].tolist()
    pending, seen, joined = [0], set[int](), False
    while pending:
        here = pending.pop()
        if here in seen or here >= len(at):
            continue
        seen.add(here)
        index, (low, high) = at[here], events[here]
        opcode = low & 0x1FF
        always = low >> 12 & 0xF == _ALWAYS
        if opcode in WRITES or opcode in _JUMPS:
            return True
        if opcode == BRA:
            pending.append(bisect_left(at, target(index, low | high << 64, BRA)))
            # Beside the predicate that all have, a branch can have one of its own (bits 87 to 90), or a uniform one.
            always = always and high >> 23 & 0xF == _ALWAYS and low >> 9 & 7 == 4
        elif opcode == _BSYNC:
            if not joined:  # which of them is not known: all may follow
                starts = np.flatnonzero(opcodes == _BSSY).tolist()
                joins = [target(start, int(words[start, 0]), _BSSY) for start in starts]
                pending += [bisect_left(at, join) for join in joins]
            joined, always = True, False
        elif opcode == _ABSOLUTE:
            always = always and calls == {_ASSERTS}
        elif opcode not in (_EXIT, _RET) and not (opcode == _BPT and high >> 20 & 7 == 3):
            always = False
        if not always:
            pending.append(here + 1)
    return False


def target(index: int, word: int, opcode: int) -> int:
    """Return the index of the instruction that a branch leads to."""
    if opcode == BRA:  # in multiples of four bytes; the lower eight bits are stored separately
        offset = ((word >> 34) & (1 << 48) - 1) << 8 | word >> 16 & 0xFF
        offset -= (offset >> 55) << 56
    else:
        offset = word >> 34 & (1 << 30) - 1
        offset -= (offset >> 29) << 30
    return index + 1 + offset // 4
