"""Recognition of software encoders, float to E2M1, by the constants that they need.

A compiler schedules, merges and renames, but a boundary that values are compared with stays an immediate of a
comparison. The constants of each encoder are in its source: ``encoders/`` for ours, CUTLASS's ``exmy_base.h``
and ``numeric_conversion.h``, NVIDIA's ``cuda_fp4.hpp``. Each constant is searched with the opcode that must have it,
and all of an encoder's must be in one function. ``tests/binaries/test_software_encoders.py`` compiles every one.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

FSETP = 0x00B
ISETP = 0x00C
SEL = 0x007
LOP3 = 0x012
SHF = 0x019
LEA = 0x011
FMUL = 0x020
HMNMX2 = 0x040

Immediate = tuple[int, int]
"""An opcode (nine bits) and the 32 bits of the constant in it."""

# The boundaries between the magnitudes of E2M1, as the bits of floats: 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.
_BORDERS = (0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000, 0x40A00000)
# Of these the ones that belong to the lower neighbour: a comparison of integers may write the others one less.
_EVEN_BORDERS = (0x3E800000, 0x3FA00000, 0x40200000, 0x40A00000)


@dataclass(frozen=True)
class Encoder:
    """Fingerprint of one encoder."""

    name: str
    needs: tuple[Immediate, ...]
    """All of these; the first is the rarest, and is looked for first."""
    counts: Immediate
    """Constant that occurs once for each value, or each pair."""
    values: int = 1
    """Values per occurrence of ``counts``."""


ENCODERS = (
    Encoder("half_pair", ((HMNMX2, 0x0E000E00), (FMUL, 0x38804000)), (HMNMX2, 0x0E000E00), 2),
    Encoder("threshold or predicate_sum", tuple((FSETP, b) for b in reversed(_BORDERS)), (FSETP, 0x40200000)),
    Encoder("CUTLASS e2m1_nib (4.7)", tuple((ISETP, b) for b in reversed(_EVEN_BORDERS)), (ISETP, 0x40200000)),
    Encoder("CUTLASS exmy_base", ((LOP3, 0x00C00000), (SEL, 0xFFFFFF82), (LEA, 7), (SHF, 0x15)), (SEL, 0xFFFFFF82)),
    Encoder(
        "cuda_fp4.hpp",
        ((LOP3, 0x0007FFFF), (LOP3, 0x000FFFFF), (SHF, 0x00080000), (SHF, 0x00040000)),
        (LOP3, 0x0007FFFF),
    ),
)


# 1.5, 3 and 6, the results of a search for scales, which rounds to the grid and keeps floats; vLLM 0.33 has one. An
# encoder has small integers there.
_RESULTS = (0x3FC00000, 0x40400000, 0x40C00000)


CONSTANTS = np.uint64(0xFFFFFFFF000001FF)
"""The bits of an instruction's lower half that hold its opcode and its constant."""
_WANTED = np.array(sorted({opcode | constant << 32 for e in ENCODERS for opcode, constant in e.needs}), np.uint64)


def recognise(code: bytes) -> dict[str, int]:
    """Return each encoder in a function's code, with the number of values that it converts there."""
    words = np.frombuffer(code, "<u8")[::2]
    pairs = words & CONSTANTS
    stands = Counter((pair & 0x1FF, pair >> 32) for pair in pairs[np.isin(pairs, _WANTED)].tolist())
    found = {}
    for encoder in ENCODERS:
        if not all(stands[need] for need in encoder.needs):
            continue
        if encoder.needs[0][0] != FSETP or not np.isin(_RESULTS, words >> 32).all():
            found[encoder.name] = stands[encoder.counts] * encoder.values
    return found
