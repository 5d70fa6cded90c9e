"""What became of all inputs of a conversion, by the kind of input."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fp4patch.model.rule import Promise
from fp4patch.model.verdict import Verdict


class InputClass(StrEnum):
    """The kinds of float32 inputs that encoders are known to treat differently."""

    ZERO = "+0"
    NEGATIVE_ZERO = "-0"
    FINITE = "finite"
    """Without the zeros."""
    INFINITE = "infinity"
    NAN = "+NaN"
    """Quiet and signalling, any payload, sign clear."""
    NEGATIVE_NAN = "-NaN"


@dataclass(frozen=True)
class Mismatch:
    """One input that came out wrong: the bits of the float32, and two nibbles."""

    input: int
    expected: int
    got: int


@dataclass(frozen=True)
class NumericsRow:
    """What became of all inputs of one class."""

    cls: InputClass
    inputs: int
    mismatches: int
    magnitudes: int
    """Of the mismatches, those that differ in more than the sign."""
    first: tuple[Mismatch, ...] = ()
    """The lowest few inputs that mismatch."""

    def breaks(self, promise: Promise) -> bool:
        """Whether something mismatches that the promise does not allow."""
        sign_is_free = promise is Promise.EXACT_BUT_NAN_SIGN and self.cls in (InputClass.NAN, InputClass.NEGATIVE_NAN)
        return bool(self.magnitudes if sign_is_free else self.mismatches)


@dataclass(frozen=True)
class NumericsReport:
    """Every float32 input through one encoder, against the specification."""

    subject: str
    """``half_pair``, or ``NumericArrayConverter<float_e2m1_t, float, 8>``."""
    where: str
    """The compiler that built it for the host, or the GPU that ran it."""
    lanes: int
    """How many values one call encodes."""
    rows: tuple[NumericsRow, ...]
    promise: Promise
    seconds: float
    every_lane: bool = True
    """Every input went through every lane; else through one of them, neighbouring lanes taking distant inputs."""
    bits: int = 32
    """Of an input: 16 where half or bfloat16 is converted."""

    @property
    def inputs(self) -> int:
        """Inputs that were run: all there are, or all of them for each lane, or the sweep is not one."""
        return sum(row.inputs for row in self.rows)

    @property
    def verdict(self) -> Verdict:
        """PASS only if every input was run and the promise was kept."""
        broken = any(row.breaks(self.promise) for row in self.rows)
        every = (self.lanes if self.every_lane else 1) << self.bits
        return Verdict.FAIL if broken or self.inputs != every else Verdict.PASS
