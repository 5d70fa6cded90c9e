"""What ``fp4patch bench`` measured."""

from __future__ import annotations

from dataclasses import dataclass

from fp4patch.model.verdict import Verdict


@dataclass(frozen=True)
class Rate:
    """Values a second: the median of the repeats, the slowest and the fastest."""

    median: float
    low: float
    high: float
    ratio: float
    """To ``predicate_sum``: the median of the quotients of each repeat."""


@dataclass(frozen=True)
class BenchRow:
    """One encoder on one GPU: what all 2^32 inputs came to, and how fast it is. One that is wrong is not measured."""

    name: str
    wrong: int
    """Of the numbers, infinities included."""
    wrong_nans: int
    """NaNs that do not become 6, of either sign."""
    nan_signs: int
    """NaNs that become -6, where the instruction gives +6."""
    registers: Rate | None
    memory: Rate | None

    @property
    def verdict(self) -> Verdict:
        """PASS if every number came out right; what becomes of NaN is a variant's promise, and is shown."""
        return Verdict.PASS if self.registers and self.memory and not self.wrong else Verdict.FAIL


@dataclass(frozen=True)
class BenchReport:
    """What one run of the bench program measured."""

    device: str
    arch: str
    multiprocessors: int
    fp4patch: str
    nvcc: str
    repeats: int
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...]
    """What was not measured, and why."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was measured and every encoder is right."""
        if not self.rows or any(row.verdict.failed for row in self.rows):
            return Verdict.FAIL
        return Verdict.PASS
