"""Results of executing machine code: what each kernel gives, compared with the specification or with a reference."""

from dataclasses import dataclass, field

from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, key, shown
from fp4patch.core.results import Verdict, verdict_on
from fp4patch.proof.specification import InputClass
from fp4patch.proof.view import SideName

UPSTREAM = "upstream's kernel for sm_120a"


@dataclass(frozen=True)
class Mismatch(Document):
    """One input with a wrong result."""

    input: int = field(metadata=HIDDEN)
    """Bits of the float32."""
    expected: int
    """Expected E2M1, four bits."""
    got: int
    """Result, likewise."""

    @property
    @shown("input")
    def bits(self) -> str:
        """Bits of the float32: ``0x3e800001``."""
        return f"{self.input:#010x}"


@dataclass(frozen=True)
class SweepRow(Document):
    """Result of all inputs of one class."""

    cls: InputClass = field(metadata=key("class"))
    inputs: int
    mismatches: int
    magnitudes: int
    """Number of mismatches that differ in more than the sign."""
    first: tuple[Mismatch, ...] = ()
    """First few mismatches, the lowest inputs first."""

    @classmethod
    def parse(cls, line: str) -> "SweepRow":
        """Return the row of a line that a sweep printed: ``2 4278190080 3 1 3e800001:1:0``.

        It has class, inputs, mismatches, those of the magnitude, and the first of them, these in hexadecimal.
        """
        number, inputs, mismatches, magnitudes, *first = line.split()
        wrong = (Mismatch(*(int(part, 16) for part in mismatch.split(":"))) for mismatch in first)
        return cls(tuple(InputClass)[int(number)], int(inputs), int(mismatches), int(magnitudes), tuple(wrong))

    def breaks(self, promise: Promise) -> bool:
        """Return whether the row has a mismatch that the promise does not allow."""
        sign_is_free = promise is Promise.EXACT_BUT_NAN_SIGN and self.cls in (InputClass.NAN, InputClass.NEGATIVE_NAN)
        return bool(self.magnitudes if sign_is_free else self.mismatches)


@dataclass(frozen=True)
class Sweep(Document):
    """All inputs through one conversion, compared with the specification."""

    lanes: int
    """Number of values that one call converts."""
    rows: tuple[SweepRow, ...] = field(metadata=key("classes"))
    bits: int = 32
    """Bits of an input: 16 if half or bfloat16 is converted."""
    passes: int = 1
    """Number of lanes that each input went through, next to distant inputs."""
    alike: bool = False
    """True if the lanes that an input did not go through are proven to be the same function of their values."""

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

    def keeps(self, promise: Promise) -> bool:
        """Return whether every input was run and the promise was kept."""
        return self.inputs == self.passes << self.bits and not any(row.breaks(promise) for row in self.rows)


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
class InputCounts(Document):
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
    side: SideName
    promise: Promise
    """What it must keep."""
    report: Sweep | None = field(default=None, metadata=key("sweep"))
    """Result over all inputs; None if they did not run, for the reason in ``problem``."""
    corners: tuple[SweepRow, ...] = field(default=(), metadata=HIDDEN)
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
        if self.unsupported:
            return Verdict.UNSUPPORTED
        if self.problem:
            return Verdict.FAIL
        if batch := self.batch:
            return verdict_on(batch.inputs and not batch.mismatches)
        corners = any(row.breaks(self.promise) for row in self.corners)
        return verdict_on(self.report and self.report.keeps(self.promise) and not corners)

    @property
    @shown("corners")
    def corner_counts(self) -> InputCounts:
        """InputCounts of the inputs at the boundaries, through every lane."""
        return InputCounts(sum(row.inputs for row in self.corners), sum(row.mismatches for row in self.corners))

    @property
    @shown("batch")
    def batch_or_empty(self) -> Batch:
        """Selected inputs, if there are too many for a ``sweep``; else with an empty ``what``."""
        return self.batch or Batch("", 0, 0)


def summary(execution: Execution) -> str:
    """Return a summary of an execution with the first input that is wrong: ``3 of 2^32 inputs, first 0x3e800000 …``."""
    if execution.problem:
        return f"{'unsupported: ' if execution.unsupported else ''}{execution.problem}"
    if batch := execution.batch:
        first = f" (first: {batch.first[0]})" if batch.mismatches and batch.first else ""
        return f"{batch.inputs:,} {batch.what}, {batch.mismatches:,} wrong bytes, compared with {batch.against}{first}"
    sweep = execution.report
    if sweep is None:
        return "nothing ran"
    for rows, of in ((sweep.rows, f"2^{sweep.bits} inputs"), (execution.corners, "the inputs at the boundaries")):
        wrong = [row for row in rows if row.breaks(execution.promise)] or [row for row in rows if row.mismatches]
        if wrong:
            count = sum(row.mismatches for row in wrong)
            first = next(
                (f", first {m.input:#x}: {m.got:#x}, not {m.expected:#x}" for row in wrong for m in row.first), ""
            )
            return f"{count:,} of {of} differ ({wrong[0].cls.value}{first})"
    lanes = "" if sweep.every_lane else ", each in one lane, boundaries in every lane"
    return f"{1 << sweep.bits:,} inputs{lanes}, 0 mismatches"


@dataclass(frozen=True)
class Executed(Document):
    """Results of executing all probes of a tree."""

    executions: tuple[Execution, ...]

    @property
    def notes(self) -> list[str]:
        """Limits of the result."""
        note = "F2FP has the meaning of the specification by definition: code that uses it is no proof of silicon"
        return [note] if any(run.instruction and run.report for run in self.executions) else []
