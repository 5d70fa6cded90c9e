"""The number formats: E2M1, E2M3, E3M2 and E4M3 (UE4M3 is its positive half), to codes and back.

Each encoder compares with exact midpoints, so no intermediate rounding can slip in; any floating dtype goes.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]
Floats = NDArray[Any]
"""An array of any floating dtype: float16, bfloat16 (of ml_dtypes), float32, float64."""

E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=np.float32)
"""Values of the codes 0 to 7; bit 3 is the sign (OCP MX 1.0, 5.3.3)."""

_E4M3_VALUES = np.array(
    # Four bits of exponent with bias 7, three of mantissa; 0x7f is NaN, there is no infinity (OCP MX 1.0, 5.3.1).
    [np.ldexp((c & 7) + (8 if c >> 3 else 0), max(c >> 3, 1) - 10) for c in range(127)],
    dtype=np.float32,
)
E4M3_MAX = float(_E4M3_VALUES[-1])
_E4M3_NAN = 0x7F


def e2m1_encode(x: Floats) -> Codes:
    """Encode to E2M1, one code (0 to 15) per byte: to nearest, ties to even, saturated at 6, every NaN to +6."""
    return _encode(x, E2M1_VALUES, sign=8, nan=7)


def e2m1_encode_stochastic(x: Floats, random: Codes) -> Codes:
    """Codes 0 to 15 by stochastic rounding: ``random``, a byte for each value, is added to the bits that are discarded.

    Equal to ``cvt.rs.satfinite.e2m1x4.f32`` (PTX ISA, ``cvt``): a value goes up to v if it is not below
    ``v - random / 256 * (v - the code below)``; values of E2M1 stay, saturated at 6, every NaN to +6. Thresholds are
    exact in float16 already. ``random_bytes`` has the bytes of the instruction's operand. ``x`` and ``random`` are
    broadcast. ValueError where ``random`` holds no bytes.
    """
    x, random = np.broadcast_arrays(np.asarray(x), random)
    if random.dtype != np.uint8:
        raise ValueError(f"the random bits of each value are a byte (uint8), not {random.dtype}")
    magnitude = np.abs(x).astype(np.promote_types(np.float32, _plain(x)))
    codes = np.where(np.signbit(x), np.uint8(8), np.uint8(0))
    for below, above in pairwise(E2M1_VALUES):
        codes += magnitude >= above - random * np.float32((above - below) / 256)
    return np.where(np.isnan(x), 7, codes).astype(np.uint8)


def random_bytes(words: NDArray[np.uint32]) -> Codes:
    """The random byte of each value, ``(..., K)``, of a word for four: ``(..., K / 4)``, the operand ``rbits``.

    Value 0 is the instruction's ``f``, the lowest nibble, and has the low byte; values 1, 2 and 3 (``e``, ``b``, ``a``)
    have bytes 2, 1 and 3 (PTX ISA, ``cvt``, the figure of the random bits for ``.e2m1x4``).
    """
    words = np.ascontiguousarray(words, dtype="<u4")
    return words.view(np.uint8).reshape(*words.shape, 4)[..., [0, 2, 1, 3]].reshape(*words.shape[:-1], -1)


def e2m1_decode(codes: Codes) -> NDArray[np.float32]:
    """Return the value of each code; raise ValueError for bits above the fourth, which hint at packed bytes."""
    codes = np.asarray(codes)
    if codes.size and int(codes.max()) > 15:
        raise ValueError("an E2M1 code has four bits, and these are packed bytes")
    return _decode(codes, E2M1_VALUES, sign=8)


_FP6_VALUES = {
    # Codes 0 to 31: exponent bits, mantissa bits and bias (OCP MX 1.0, 5.3.2).
    form: np.array(
        [np.ldexp((c & one - 1) + (one if c >= one else 0), max(c // one, 1) - bias - mantissa) for c in range(32)],
        dtype=np.float32,
    )
    for form, mantissa, bias in (("e2m3", 3, 1), ("e3m2", 2, 3))
    for one in (1 << mantissa,)
}


def e2m3_encode(x: Floats) -> Codes:
    """Encode like ``cvt.rn.satfinite.e2m3x2.f32``, one code per byte: to nearest even, saturated at 7.5; NaN is
    +7.5."""
    return _encode(x, _FP6_VALUES["e2m3"], sign=0x20, nan=0x1F)


def e3m2_encode(x: Floats) -> Codes:
    """Encode like ``cvt.rn.satfinite.e3m2x2.f32``, one code per byte: to nearest even, saturated at 28; NaN is +28."""
    return _encode(x, _FP6_VALUES["e3m2"], sign=0x20, nan=0x1F)


def fp6_decode(codes: Codes, form: str) -> NDArray[np.float32]:
    """Return the value of each code of ``e2m3`` or ``e3m2``."""
    return _decode(np.asarray(codes, dtype=np.uint8), _FP6_VALUES[form], sign=0x20)


def e4m3_encode(x: Floats) -> Codes:
    """Encode like ``cvt.rn.satfinite.e4m3x2.f32``: to nearest even, saturated at 448; NaN of either sign is 0x7f."""
    return _encode(x, _E4M3_VALUES, sign=0x80, nan=_E4M3_NAN)


def e4m3_decode(codes: Codes) -> NDArray[np.float32]:
    """Return the value of each code; 0x7f and 0xff are NaN."""
    codes = np.asarray(codes, dtype=np.uint8)
    values = _decode(np.where(codes & 0x7F == _E4M3_NAN, 0, codes), _E4M3_VALUES, sign=0x80)
    return np.where(codes & 0x7F == _E4M3_NAN, np.float32(np.nan), values)


def pack(codes: Codes) -> Codes:
    """Pack two codes per byte along the last axis, the first in the low nibble: ``(..., K)`` to ``(..., K / 2)``."""
    codes = np.asarray(codes, dtype=np.uint8)
    if codes.shape[-1] % 2:
        raise ValueError(f"{codes.shape[-1]} codes do not fill whole bytes")
    return codes[..., 0::2] | codes[..., 1::2] << np.uint8(4)


def unpack(packed: Codes) -> Codes:
    """Return the codes of packed bytes: ``(..., K / 2)`` to ``(..., K)``."""
    packed = np.asarray(packed, dtype=np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def bfloat16(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to values of bfloat16: to nearest, ties to even; a NaN stays one."""
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)) & np.uint32(0xFFFF_0000)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32))


def _encode(x: Floats, values: NDArray[np.float32], *, sign: int, nan: int) -> Codes:
    x = np.asarray(x)
    magnitude = np.abs(x).astype(np.promote_types(np.float32, _plain(x)))
    borders = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(magnitude.dtype)
    # Of the two sides of a tie, the even code; everywhere else the two searches agree.
    below, above = (np.searchsorted(borders, magnitude, side=side) for side in ("left", "right"))
    codes = np.where(below % 2, above, below) | np.where(np.signbit(x), sign, 0)
    return np.where(np.isnan(x), nan, codes).astype(np.uint8)


def _decode(codes: NDArray[Any], values: NDArray[np.float32], *, sign: int) -> NDArray[np.float32]:
    signs: NDArray[np.float32] = np.where(codes & sign, np.float32(-1), np.float32(1))
    magnitudes: NDArray[np.float32] = values[codes & (sign - 1)]
    return np.multiply(signs, magnitudes, dtype=np.float32)


def _plain(x: Floats) -> np.dtype[Any]:
    """Return a dtype of NumPy's own that holds the values exactly; those of ml_dtypes fit into float32."""
    return x.dtype if x.dtype.kind == "f" and x.dtype.isbuiltin == 1 else np.dtype(np.float32)
