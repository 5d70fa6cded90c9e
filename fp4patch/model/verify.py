"""What ``fp4patch verify`` found: a result for each probe and architecture, and the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.model.verdict import Verdict

if TYPE_CHECKING:
    from fp4patch.model.arch import Arch
    from fp4patch.model.coverage import Covered
    from fp4patch.model.execution import Executed
    from fp4patch.model.numerics import NumericsReport
    from fp4patch.model.probe import ProbeKind
    from fp4patch.model.problem import Problem
    from fp4patch.model.sass import SassDiff, SassListing


@dataclass(frozen=True)
class Check:
    """One condition of one rule on one probe and architecture."""

    rule: str
    """The condition in words: ``forbids F2FP.*E2M1``."""
    because: str
    verdict: Verdict
    detail: str
    """What was found: ``4 F2FP.SATFINITE.E2M1…``."""


@dataclass(frozen=True)
class ProbeResult:
    """What one probe came to on one architecture."""

    probe: str
    title: str
    arch: Arch
    kind: ProbeKind
    verdict: Verdict
    before: SassListing | None
    after: SassListing | None
    diff: SassDiff | None
    checks: tuple[Check, ...]
    error: str = ""
    """The compiler's words, where it refused."""
    cached: bool = False


@dataclass(frozen=True)
class ToolchainInfo:
    """The tools that ran, by version and path."""

    nvcc: str
    ptxas: str
    cicc: str
    nvdisasm: str
    host_compiler: str
    cuda_root: str
    disassembler: str


@dataclass(frozen=True)
class SetAside:
    """A probe that did not run because it has nothing to show here: neither a pass nor a failure."""

    probe: str
    title: str
    because: str
    """``csrc/**/nvfp4_utils.cuh of this release has no fp32_vec16_to_e2m1``."""


@dataclass(frozen=True)
class VerifyReport:
    """All that verify found; the JSON document and the HTML page are made of this."""

    variant: str
    target: str
    version: str
    tree: str
    patches: tuple[str, ...]
    """``cutlass/e2m1-guard 1``: those applied."""
    arch: tuple[Arch, ...]
    toolchain: ToolchainInfo
    results: tuple[ProbeResult, ...]
    problems: tuple[Problem, ...]
    """What failed beside the probes: a rule that matched nothing, a probe that no rule judges."""
    seconds: float
    fp4patch: str
    finished: str
    """UTC, ISO 8601."""
    set_aside: tuple[SetAside, ...] = ()
    numerics: tuple[NumericsReport, ...] = ()
    """Every input through the tree's conversions; empty unless asked for."""
    numerics_notes: tuple[str, ...] = ()
    """Where they ran and where not, in words."""
    executed: Executed | None = None
    """What the machine code came to when it was executed; None where it was not."""
    coverage: tuple[Covered, ...] = ()
    """Each function that the patches touch, with its checks on each target."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was checked, and all of it passed."""
        verdicts = [result.verdict for result in self.results] + [swept.verdict for swept in self.numerics]
        verdicts += self.executed.verdicts if self.executed else []
        if not self.results or self.problems or any(verdict.failed for verdict in verdicts):
            return Verdict.FAIL
        return Verdict.PASS
