"""Results of ``fp4patch bench``, as values."""

from __future__ import annotations

from dataclasses import dataclass

from fp4patch.core.verdict import Verdict


@dataclass(frozen=True)
class Rate:
    """Values per second: the median, the slowest and the fastest of the repeats."""

    median: float
    low: float
    high: float
    ratio: float
    """Ratio to ``predicate_sum``: the median of the ratios of the single repeats."""


@dataclass(frozen=True)
class BenchRow:
    """Correctness over all 2^32 inputs and speed of one encoder on one GPU. An encoder that is wrong is not
    measured."""

    name: str
    wrong: int
    """Number of wrong results among the numbers, infinities included."""
    wrong_nans: int
    """Number of NaNs of either sign whose result is not a 6."""
    nan_signs: int
    """Number of NaNs that become -6, where the instruction gives +6."""
    registers: Rate | None
    memory: Rate | None

    @property
    def verdict(self) -> Verdict:
        """PASS if every number is right. The results for NaN are a variant's promise, and are shown."""
        return Verdict.PASS if self.registers and self.memory and not self.wrong else Verdict.FAIL


@dataclass(frozen=True)
class BenchReport:
    """Measurements of one run of the bench program."""

    device: str
    arch: str
    multiprocessors: int
    fp4patch: str
    nvcc: str
    repeats: int
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...]
    """Measurements that were left out, each with its reason."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was measured and every encoder is right."""
        if not self.rows or any(row.verdict.failed for row in self.rows):
            return Verdict.FAIL
        return Verdict.PASS
