"""Counts what matters to FP4 in PTX, the text that a driver compiles where no cubin fits."""

import re
from collections import Counter

from fp4patch.binaries.report import Fp4Code
from fp4patch.core.cuda import RELEASE

_ENCODE = re.compile(rb"\bcvt\.(?:rn|rs)(?:\.relu)?\.satfinite(?:\.relu)?\.e2m1x[24]\.(f32|f16x2|bf16x2)")
_DECODE = re.compile(rb"\bcvt\.rn(?:\.relu)?\.(?:f16x2|bf16x2)\.e2m1x2")
# Modifiers are bounded: a text that begins the same instruction again and again would else take its square in time.
_MMA = re.compile(rb"\bmma\.[\w.:]{0,120}kind::(mxf4nvf4|mxf4|mxf8f6f4|f8f6f4)[\w.:]*")
_TCGEN05 = re.compile(rb"\btcgen05\.mma\.[\w.:]{0,120}kind::(mxf4nvf4|mxf4)\b")
_ENTRY = re.compile(rb"\.entry\s+([\w$]*(?:fp4|FP4|e2m1)[\w$]*)")
_KERNEL = re.compile(rb"\.entry\s+([\w$]+)")
_BORDERS = (b"0f3E800000", b"0f3F400000", b"0f3FA00000", b"0f3FE00000", b"0f40200000", b"0f40600000", b"0f40A00000")

_SOURCES = {b"f32": "F32", b"f16x2": "F16", b"bf16x2": "BF16"}


def scan(text: bytes) -> Fp4Code:
    """Return the FP4 code of a PTX file. It recognises software encoders that compare floats with the thresholds."""
    encodes, mma, decodes = Counter[str](), Counter[str](), 0
    if b"e2m1" in text or b"mxf4" in text:  # most texts have neither, and this finds it out a hundred times faster
        encodes.update(_SOURCES[found[1]] for found in _ENCODE.finditer(text))
        decodes = sum(1 for _ in _DECODE.finditer(text))
        for found in _MMA.finditer(text):
            if b"mxf4" in found[1] or b".e2m1" in found[0]:
                mma[f"mma kind::{found[1].decode()} E2M1"] += 1
        for found in _TCGEN05.finditer(text):
            mma[f"UTCOMMA (tcgen05 kind::{found[1].decode()})"] += 1
    return Fp4Code(
        encodes=encodes,
        encoders=_encoders(text),
        decodes=decodes,
        mma=mma,
        named=tuple(found[1].decode() for found in _ENTRY.finditer(text)),
    )


def _encoders(text: bytes) -> dict[str, int]:
    if not all(border in text for border in _BORDERS):
        return {}
    return {"threshold or predicate_sum": text.count(b"0f40200000")}


def kernels(text: bytes) -> tuple[str, ...]:
    """Return the names of the kernels in a PTX file."""
    return tuple(found[1].decode() for found in _KERNEL.finditer(text))


def has_code(text: bytes) -> bool:
    """Return whether PTX has a kernel, or a function to link: a driver loads an empty text, and nothing is gained."""
    return b".entry" in text or b".func" in text


def compiler(text: bytes) -> str:
    """Return the release that wrote the PTX, from the comment at its head; empty if it does not state it."""
    found = RELEASE.search(text, 0, 4096)
    return found[1].decode() if found else ""
