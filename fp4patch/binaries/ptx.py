"""Counts what matters to FP4 in PTX, the text that a driver compiles where no cubin fits."""

import re

from fp4patch.binaries.report import Fp4Code

_ENCODE = re.compile(rb"\bcvt\.r([ns])(?:\.relu)?\.satfinite(?:\.relu)?\.e2m1x[24]\.(?:f32|f16x2|bf16x2)")
_DECODE = re.compile(rb"\bcvt\.rn(?:\.relu)?\.(?:f16x2|bf16x2)\.e2m1x2")
# Modifiers are bounded: a text that begins the same instruction again and again would else take its square in time.
_MATRIX = re.compile(rb"\b(?:mma|tcgen05\.mma)\.[\w.:]{0,120}kind::(?:mxf4|(?:mxf8f6f4|f8f6f4)[\w.:]*\.e2m1)")
_ENTRY = re.compile(rb"\.entry\s+([\w$]*(?:fp4|FP4|e2m1)[\w$]*)")
_BORDERS = (b"0f3E800000", b"0f3F400000", b"0f3FA00000", b"0f3FE00000", b"0f40200000", b"0f40600000", b"0f40A00000")


def scan(text: bytes) -> Fp4Code:
    """Return the FP4 code of a PTX file. It recognises software encoders that compare floats with the thresholds."""
    named = tuple(found[1].decode() for found in _ENTRY.finditer(text))
    if b"e2m1" not in text and b"mxf4" not in text:  # most texts; the expressions would take a hundred times as long
        return Fp4Code(encoders=_encoders(text), named=named)
    roundings = [found[1] for found in _ENCODE.finditer(text)]
    return Fp4Code(
        nearest=roundings.count(b"n"),
        stochastic=roundings.count(b"s"),
        decodings=sum(1 for _ in _DECODE.finditer(text)),
        matrix=sum(1 for _ in _MATRIX.finditer(text)),
        encoders=_encoders(text),
        named=named,
    )


def _encoders(text: bytes) -> dict[str, int]:
    if not all(border in text for border in _BORDERS):
        return {}
    return {"threshold or predicate_sum": text.count(b"0f40200000")}


def has_code(text: bytes) -> bool:
    """Return whether PTX has a kernel, or a function to link: a driver loads an empty text, and nothing is gained."""
    return b".entry" in text or b".func" in text
