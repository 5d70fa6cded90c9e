"""Results of a conversion over all inputs, by class of input."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from fp4patch.catalog.rule import Promise
from fp4patch.core.document import Document, Text, key, shown
from fp4patch.core.verdict import PassOrFail
from fp4patch.proof import verdict


class InputClass(StrEnum):
    """Classes of float32 inputs that encoders are known to treat differently."""

    ZERO = "+0"
    NEGATIVE_ZERO = "-0"
    FINITE = "finite"
    """Finite numbers without the zeros."""
    INFINITE = "infinity"
    NAN = "+NaN"
    """Quiet and signalling NaNs with any payload and a clear sign bit."""
    NEGATIVE_NAN = "-NaN"


@dataclass(frozen=True)
class Mismatch(Document):
    """One input with a wrong result."""

    input: Annotated[int, Text("{:#010x}".format)]
    """Bits of the float32: ``0x3e800001``."""
    expected: int
    """Expected E2M1, four bits."""
    got: int
    """Result, likewise."""


@dataclass(frozen=True)
class NumericsRow(Document):
    """Result of all inputs of one class."""

    cls: InputClass = field(metadata=key("class"))
    inputs: int
    mismatches: int
    magnitudes: int
    """Number of mismatches that differ in more than the sign."""
    first: tuple[Mismatch, ...] = ()
    """First few mismatches, the lowest inputs first."""

    def breaks(self, promise: Promise) -> bool:
        """Return whether the row has a mismatch that the promise does not allow."""
        sign_is_free = promise is Promise.EXACT_BUT_NAN_SIGN and self.cls in (InputClass.NAN, InputClass.NEGATIVE_NAN)
        return bool(self.magnitudes if sign_is_free else self.mismatches)


def row_of(line: str) -> NumericsRow:
    """Return the row of a line that a sweep printed: ``2 4278190080 3 1 3e800001:1:0``.

    It has class, inputs, mismatches, those of the magnitude, and the first of them, these in hexadecimal.
    """
    cls, inputs, mismatches, magnitudes, *first = line.split()
    return NumericsRow(
        cls=tuple(InputClass)[int(cls)],
        inputs=int(inputs),
        mismatches=int(mismatches),
        magnitudes=int(magnitudes),
        first=tuple(Mismatch(*(int(field, 16) for field in mismatch.split(":"))) for mismatch in first),
    )


@dataclass(frozen=True)
class NumericsReport(Document):
    """Sweep of all inputs through one encoder, compared with the specification."""

    subject: str
    """Name of the encoder: ``half_pair``, or ``NumericArrayConverter<float_e2m1_t, float, 8>``."""
    where: str
    """Compiler that built it for the host, or GPU that ran it."""
    lanes: int
    """Number of values that one call encodes."""
    rows: tuple[NumericsRow, ...] = field(metadata=key("classes"))
    promise: Promise
    """Promise of the variant."""
    seconds: float
    passes: int = 1
    """Number of lanes that each input went through, next to distant inputs."""
    alike: bool = False
    """True if the lanes that an input did not go through are proven to be the same function of their values."""
    bits: int = 32
    """Bits of an input: 16 if half or bfloat16 is converted."""

    @property
    @shown()
    def inputs(self) -> int:
        """Number of inputs that ran. A complete sweep has all inputs, or all of them for each pass."""
        return sum(row.inputs for row in self.rows)

    @property
    @shown()
    def every_lane(self) -> bool:
        """True if the result of every input is known for every lane."""
        return self.alike or self.passes == self.lanes

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if every input was run and the promise was kept."""
        return verdict.on_sweep(self)
