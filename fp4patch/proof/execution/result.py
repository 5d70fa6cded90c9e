"""Results of executing machine code: each kernel against the specification, and one architecture against another."""

from dataclasses import dataclass, field
from typing import Literal

from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, key, shown
from fp4patch.core.verdict import PassOrFail, Verdict
from fp4patch.proof import verdict
from fp4patch.proof.sweep_result import NumericsReport, NumericsRow

Side = Literal["pristine", "patched"]
"""State of the tree: as upstream released it, or as it is now."""


UPSTREAM = "upstream's kernel for sm_120a"


@dataclass(frozen=True)
class Batch(Document):
    """Selected inputs of a kernel, and its output compared byte for byte with ``fp4patch.reference`` or upstream's."""

    what: str
    """Name of the inputs, in the plural: ``blocks``, ``records of 8 codes``."""
    inputs: int
    """Number of inputs that ran."""
    mismatches: int
    """Number of wrong bytes."""
    first: tuple[str, ...] = ()
    """First few mismatches: input, expected, got."""
    against: str = ""
    """Name of the reference: ``vLLM's cvt_warp_fp16_to_fp4``."""


@dataclass(frozen=True)
class Counts(Document):
    """Number of inputs that ran, and of those with a wrong result."""

    inputs: int
    mismatches: int


@dataclass(frozen=True)
class Execution(Document):
    """Result of executing the kernel of one probe, one architecture and one side on the host.

    The patched side is checked against the variant's promise. The pristine side is checked against the promise that
    upstream's own software keeps, with the sign of NaNs left free.
    """

    probe: str
    arch: Arch
    side: Side
    report: NumericsReport | None = field(metadata=key("sweep"))
    """Result over all inputs; None if they did not run, for the reason in ``problem``."""
    corners: tuple[NumericsRow, ...] = field(default=(), metadata=HIDDEN)
    """Results of thousands of inputs at the boundaries, each through every lane, with memory accesses checked."""
    batch: Batch | None = field(default=None, metadata=HIDDEN)
    """Result of selected inputs, in place of ``report``, if there are too many inputs to run all of them."""
    problem: str = ""
    """Error: ``unsupported: F2FP.NEW at 0x120``, or a store outside of the thread's own memory."""
    unsupported: bool = False
    """True if the kernel has an instruction whose semantics are not implemented."""
    instruction: bool = False
    """True if the kernel converts with F2FP. Its semantics are taken from the specification: this proves nothing about
    silicon."""
    cached: bool = False

    @property
    @shown()
    def verdict(self) -> Verdict:
        """PASS only if every input ran and every result, including those of the corners, keeps the promise."""
        return verdict.on_execution(self)

    @property
    @shown("corners")
    def corner_counts(self) -> Counts:
        """Counts of the inputs at the boundaries, through every lane."""
        return Counts(sum(row.inputs for row in self.corners), sum(row.mismatches for row in self.corners))

    @property
    @shown("batch")
    def batch_or_empty(self) -> Batch:
        """Selected inputs, if there are too many for a ``sweep``; else with an empty ``what``."""
        return self.batch or Batch("", 0, 0)


def summary(execution: Execution) -> str:
    """Return a summary of an execution with the first input that is wrong: ``3 of 2^32 inputs, first 0x3e800000 …``."""
    if (batch := execution.batch) and not execution.problem:
        first = f" (first: {batch.first[0]})" if batch.mismatches and batch.first else ""
        return f"{batch.inputs:,} {batch.what}, {batch.mismatches:,} wrong bytes, compared with {batch.against}{first}"
    if execution.unsupported or execution.problem or execution.report is None:
        return f"{'unsupported: ' if execution.unsupported else ''}{execution.problem or 'nothing ran'}"
    report = execution.report
    for rows, of in ((report.rows, f"2^{report.bits} inputs"), (execution.corners, "the inputs at the boundaries")):
        wrong = [row for row in rows if row.breaks(report.promise)] or [row for row in rows if row.mismatches]
        if wrong:
            count = sum(row.mismatches for row in wrong)
            first = next(
                (f", first {m.input:#x}: {m.got:#x}, not {m.expected:#x}" for row in wrong for m in row.first), ""
            )
            return f"{count:,} of {of} differ ({wrong[0].cls.value}{first})"
    lanes = "" if report.every_lane else ", each in one lane, boundaries in every lane"
    return f"{1 << report.bits:,} inputs{lanes}, 0 mismatches"


@dataclass(frozen=True)
class Equivalence(Document):
    """Comparison of two kernels of one probe over all inputs."""

    probe: str
    one: str
    """Name of the first kernel: ``pristine sm_120a``."""
    other: str
    """Name of the second kernel: ``patched sm_121a``."""
    inputs: int = field(metadata=HIDDEN)
    """Number of inputs to compare: all, or all for each lane."""
    rows: tuple[NumericsRow, ...] = field(metadata=HIDDEN)
    """Counts of differences by input class. ``expected`` is the nibble of ``one``, ``got`` that of ``other``."""
    promise: Promise = field(metadata=HIDDEN)
    same_code: bool = False
    """True if the two are the same program, up to its address. Then there is nothing to compare."""

    @property
    @shown()
    def differences(self) -> int:
        """Number of inputs that the two convert differently."""
        return sum(row.mismatches for row in self.rows)

    @property
    @shown()
    def only_nan_signs(self) -> bool:
        """True if the two differ, and only in the sign of NaNs."""
        return self.differences > 0 and not any(row.breaks(Promise.EXACT_BUT_NAN_SIGN) for row in self.rows)

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS only if every input was compared and all differences are allowed by the variant's promise."""
        return verdict.on_comparison(self)

    @property
    @shown()
    def sentence(self) -> str:
        """The same as a sentence."""
        return f"{self.short}: {self.comparison}"

    @property
    def short(self) -> str:
        """Name of the probe without its target."""
        return self.probe.partition("/")[2]

    @property
    def comparison(self) -> str:
        """Comparison as a clause: ``patched sm_121a gives for every input what pristine sm_120a gives``."""
        if self.same_code:
            return f"{self.other} is the same code as {self.one}"
        if self.differences == 0:
            found = f"{self.other} gives for every input what {self.one} gives"
            return found if self.rows else f"{self.other} could not be compared with {self.one}"
        what = f"the sign of {self.differences:,} NaNs" if self.only_nan_signs else f"{self.differences:,} inputs"
        declared = ", which the variant does not declare" if self.verdict.failed else ", as the variant declares"
        return f"{self.other} gives what {self.one} gives, but for {what}{declared}"


@dataclass(frozen=True)
class Executed(Document):
    """Results of executing all probes of a tree."""

    executions: tuple[Execution, ...]
    equivalences: tuple[Equivalence, ...] = ()
    notes: tuple[str, ...] = ()
    """Kernels that were not executed, and limits of the result."""

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts of every execution and every comparison."""
        return [one.verdict for one in self.executions] + [one.verdict for one in self.equivalences]
