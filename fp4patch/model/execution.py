"""What executing machine code found: each kernel against the specification, and one architecture against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fp4patch.model.arch import Arch
from fp4patch.model.numerics import NumericsReport, NumericsRow
from fp4patch.model.rule import Promise
from fp4patch.model.verdict import Verdict

Side = Literal["pristine", "patched"]
"""Of a tree: as upstream released it, or as it is now."""


@dataclass(frozen=True)
class Batch:
    """Chosen inputs through a kernel, and what it stored compared byte for byte with ``fp4patch.reference``."""

    what: str
    """``blocks``, ``records of 8 codes``."""
    inputs: int
    """How many of them ran."""
    mismatches: int
    first: tuple[str, ...] = ()
    """The first of these: input, expected, got."""
    against: str = ""
    """What it was compared with: ``vLLM's cvt_warp_fp16_to_fp4``."""


@dataclass(frozen=True)
class Execution:
    """One probe's kernel, as the compiler made it for one architecture from one side, executed on the host.

    What it promises is the variant's promise on the patched side; on the pristine side it is what upstream's own
    software keeps, a NaN's sign left free.
    """

    probe: str
    arch: Arch
    side: Side
    report: NumericsReport | None
    """All inputs; None where they did not run, because of ``problem``."""
    corners: tuple[NumericsRow, ...] = ()
    """Thousands of inputs at the borders, each through every lane, over memory that is checked."""
    batch: Batch | None = None
    """In the place of ``report``: where there are too many inputs for all of them to run."""
    problem: str = ""
    """``unsupported: F2FP.NEW at 0x120``, or a store outside of what is the thread's own."""
    unsupported: bool = False
    """It has an instruction whose meaning is not known."""
    instruction: bool = False
    """It converts by F2FP, whose meaning is the specification's by definition: this is no proof of silicon."""
    cached: bool = False

    @property
    def verdict(self) -> Verdict:
        """PASS only if every input ran and every one, the corners too, came out as promised."""
        if self.unsupported:
            return Verdict.UNSUPPORTED
        if self.batch and not self.problem:
            return Verdict.PASS if self.batch.inputs and not self.batch.mismatches else Verdict.FAIL
        if self.report is None or self.problem or any(row.breaks(self.report.promise) for row in self.corners):
            return Verdict.FAIL
        return self.report.verdict


def summary(execution: Execution) -> str:
    """Return what an execution found, with the first input that is wrong: ``3 of 2^32 inputs, first 0x3e800000 …``."""
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
    return f"{1 << report.bits:,} inputs, 0 mismatches"


@dataclass(frozen=True)
class Equivalence:
    """What two kernels of one probe make of every input, one against the other."""

    probe: str
    one: str
    """``pristine sm_120a``."""
    other: str
    """``patched sm_121a``."""
    inputs: int
    """How many there are to compare: all, or all for each lane."""
    rows: tuple[NumericsRow, ...]
    """Where they differ: ``expected`` is the one's nibble, ``got`` the other's."""
    promise: Promise
    same_code: bool = False
    """The two are one program, up to where it lies: there is nothing to compare."""

    @property
    def differences(self) -> int:
        """Inputs that the two convert differently."""
        return sum(row.mismatches for row in self.rows)

    @property
    def only_nan_signs(self) -> bool:
        """They differ, and in nothing but the sign of NaNs."""
        return self.differences > 0 and not any(row.breaks(Promise.EXACT_BUT_NAN_SIGN) for row in self.rows)

    @property
    def verdict(self) -> Verdict:
        """PASS only if every input was compared and they differ in nothing that the variant does not declare."""
        complete = self.same_code or sum(row.inputs for row in self.rows) == self.inputs
        broken = any(row.breaks(self.promise) for row in self.rows)
        return Verdict.PASS if complete and not broken else Verdict.FAIL


@dataclass(frozen=True)
class Executed:
    """All that executing a tree's probes came to."""

    executions: tuple[Execution, ...]
    equivalences: tuple[Equivalence, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> list[Verdict]:
        """Of every execution and every comparison."""
        return [one.verdict for one in self.executions] + [one.verdict for one in self.equivalences]
