"""Results of executing machine code: what each kernel gives, compared with the specification or with upstream's."""

from dataclasses import dataclass

from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, shown
from fp4patch.core.results import Verdict, verdict_on
from fp4patch.proof.view import SideName


@dataclass(frozen=True)
class Ran(Document):
    """Inputs of one kernel that ran, and how many results are not those of the specification or of upstream's code."""

    what: str = ""
    """Name of the inputs, in the plural, with what is to be known of them: ``blocks``, ``records of 8``."""
    inputs: int = 0
    wrong: int = 0
    signs: int = 0
    """Number of results that differ in the sign of a NaN alone."""
    first: str = ""
    """The first result that is not right: ``0x3e800000 gives 0x1, not 0x0``."""
    bits: int = 0
    """Bits of an input if all of them ran; 0 if selected ones did."""


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
    ran: Ran = Ran()
    problem: str = ""
    """Error: ``unsupported: F2FP.NEW at 0x120``, or a store outside of the thread's own memory."""
    unsupported: bool = False
    """True if the kernel has an instruction whose semantics are not implemented."""
    instruction: bool = False
    """True if the kernel converts with F2FP. Its semantics are taken from the specification: this proves nothing about
    silicon."""

    @property
    @shown()
    def verdict(self) -> Verdict:
        """PASS only if inputs ran and every result keeps the promise."""
        if self.unsupported:
            return Verdict.UNSUPPORTED
        return verdict_on(self.ran.inputs and not (self.problem or self.wrong))

    @property
    def wrong(self) -> int:
        """Number of results that break the promise."""
        return self.ran.wrong + self.ran.signs * (self.promise is Promise.EXACT)


def summary(execution: Execution) -> str:
    """Return an execution in words: ``3 of 4,294,967,296 inputs differ (first: 0x3e800000 gives 0x1, not 0x0)``."""
    if execution.problem:
        return f"{'unsupported: ' if execution.unsupported else ''}{execution.problem}"
    ran = execution.ran
    if execution.wrong:
        return f"{execution.wrong:,} of {ran.inputs:,} {ran.what} differ (first: {ran.first})"
    return f"{ran.inputs:,} {ran.what}, 0 wrong"


@dataclass(frozen=True)
class Executed(Document):
    """Results of executing all probes of a tree."""

    executions: tuple[Execution, ...]

    @property
    def notes(self) -> list[str]:
        """Limits of the result."""
        note = "F2FP has the meaning of the specification by definition: code that uses it is no proof of silicon"
        return [note] if any(run.instruction and run.ran.bits for run in self.executions) else []
