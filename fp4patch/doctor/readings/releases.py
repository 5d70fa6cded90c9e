"""Comparisons with a CUDA release, as conditions of build files write them."""

from __future__ import annotations

import operator
import re

from packaging.version import InvalidVersion, Version

from fp4patch.doctor.readings.reading import UNKNOWN, Truth

COMPARES = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
MIRRORED = {">=": "<=", "<=": ">=", "==": "==", "!=": "!=", "<": ">", ">": "<"}
# Example: CMAKE_CUDA_COMPILER_VERSION
_OF_CUDA = re.compile(
    r"(?!.*(?:arch|capab|\bsm|compute|driver))(?=.*(?:cuda|nvcc|bare_metal)).*", re.IGNORECASE | re.DOTALL
)


def is_release(words: str) -> bool:
    """Return whether the words of an expression can be a CUDA release."""
    return bool(_OF_CUDA.fullmatch(words))


def compared(cuda: Version, sign: str, text: str) -> Truth:
    """Return whether a release compares so with one that is written ``12.8``, ``12,8``, ``12080`` or ``12``."""
    text = re.sub(r"\s*,\s*", ".", text.strip("\"'()[] "))
    if re.fullmatch(r"1\d\d[0-9]0", text):
        text = f"{int(text) // 1000}.{int(text) % 1000 // 10}"
    elif "." not in text and sign not in (">=", "<"):
        return UNKNOWN  # a major release alone, which may be compared with one alone
    try:
        return Truth(COMPARES[sign](cuda, Version(text)))
    except InvalidVersion:
        return UNKNOWN
