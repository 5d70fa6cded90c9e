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
        if self.report is None or self.problem or any(row.breaks(self.report.promise) for row in self.corners):
            return Verdict.FAIL
        return self.report.verdict


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
