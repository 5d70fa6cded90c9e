"""Forms of conversions, the order of their inputs, and the digests that all results must have."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import cache

from fp4patch.catalog.manifest import data_root
from fp4patch.catalog.probe import BITS, Executes, Format
from fp4patch.proof.specification import FORMATS, specification

FORMATS_IN_ORDER: tuple[Format, ...] = ("float32", "float16", "bfloat16", "e2m1", "e2m3", "e3m2")
"""Formats by their number in ``program/conversion.h``."""
MOST = 34
"""Largest number of records that a program runs, as a power of two."""
DIGESTS = "records/digests.json"


@dataclass(frozen=True)
class Form:
    """Formats of a conversion and the number of values in a record, which are all that its results depend on."""

    input: Format
    output: Format
    lanes: int
    stochastic: bool = False

    @classmethod
    def of(cls, executes: Executes) -> Form:
        """Return the form of a probe's kernel."""
        return cls(executes.input, executes.output, executes.lanes, executes.rounding == "stochastic")

    @property
    def name(self) -> str:
        """Name in files: ``float32 to e2m1, 8 values``."""
        values = f"{self.lanes} value{'s' if self.lanes > 1 else ''}"
        return f"{self.input} to {self.output}, {values}{', stochastic' if self.stochastic else ''}"

    @property
    def space(self) -> int:
        """Number of records, as a power of two.

        Each lane gets every float once, and combinations of narrow codes occur once each. With stochastic rounding a
        16-bit float is paired with every random byte, and a float32 with the four bytes at its boundaries.
        """
        bits = BITS[self.input]
        if bits < 16:
            return bits * self.lanes
        return bits + (2 if bits == 32 else 8) * self.stochastic

    @property
    def initializer(self) -> str:
        """The form as a ``struct conversion`` of ``program/conversion.h``."""
        kinds = (FORMATS_IN_ORDER.index(self.input), FORMATS_IN_ORDER.index(self.output))
        return f"{{{kinds[0]}, {kinds[1]}, {self.lanes}, {self.stochastic:d}, {self.space}}}"


@cache
def digests() -> dict[str, int]:
    """Return the expected digest of each form by its name; ``python -m tools.regenerate digests`` computes them."""
    document = json.loads((data_root() / DIGESTS).read_text(encoding="utf-8"))
    return {name: int(digest, 16) for name, digest in document["digests"].items()}


def tables() -> str:
    """Return ``tables.h``: the specification as the tables that ``program/conversion.h`` reads."""
    lines = ["// Made by fp4patch from the specification of the formats."]
    for form, magnitudes in FORMATS.items():
        codes = len(magnitudes)
        first = {i.code: i.first for i in reversed(specification(form))}
        values = [int.from_bytes(struct.pack(">f", float(magnitude))) for magnitude in magnitudes]
        signed = [*values, *(value | 1 << 31 for value in values)]
        for name, row in (("from", [first[code] for code in range(1, codes)]), ("value", signed)):
            lines.append(f"TABLE uint32_t {form}_{name}[{len(row)}] = {{{', '.join(map(hex, row))}}};")
    return "\n".join([*lines, ""])
