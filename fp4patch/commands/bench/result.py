"""Results of ``fp4patch bench``, as values."""

from dataclasses import dataclass

from fp4patch.core.document import Document, Report, shown
from fp4patch.core.verdict import PassOrFail, overall, verdict_on


@dataclass(frozen=True)
class Rate(Document):
    """Values per second."""

    median: float
    """Median of the repeats."""
    low: float
    """Slowest of the repeats."""
    high: float
    """Fastest of the repeats."""
    ratio: float
    """Ratio to ``predicate_sum``: the median of the ratios of the single repeats."""


@dataclass(frozen=True)
class BenchRow(Document):
    """Correctness over all 2^32 inputs and speed of one encoder on one GPU. An encoder that is wrong is not
    measured."""

    name: str
    """Name of the encoder."""
    wrong: int
    """Number of wrong results among all 2^32 inputs without the NaNs; infinities are included."""
    wrong_nans: int
    """Number of NaNs of either sign whose result is not a 6."""
    nan_signs: int
    """Number of NaNs that become -6, where the instruction gives +6."""
    registers: Rate | None
    """Rate from registers; null for a wrong encoder, which is not measured."""
    memory: Rate | None
    """Rate from memory."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS if every number is right. The results for NaN are a variant's promise, and are shown."""
        return verdict_on(self.registers and self.memory and not self.wrong)


@dataclass(frozen=True)
class BenchReport(Report):
    """Measurements of one run of the bench program."""

    device: str
    """Name of the GPU."""
    arch: str
    """Architecture of the GPU: ``sm_121``."""
    multiprocessors: int
    fp4patch: str
    """Version of fp4patch that built the program."""
    nvcc: str
    repeats: int
    rows: tuple[BenchRow, ...]
    """Encoders, the fastest first and those that were not measured last."""
    notes: tuple[str, ...]
    """Measurements that were left out, each with its reason."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if something was measured and every encoder is right."""
        return overall(row.verdict for row in self.rows)
