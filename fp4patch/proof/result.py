"""Results of ``fp4patch verify``: one for each probe and architecture, and the verdict on the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.core.verdict import Verdict

if TYPE_CHECKING:
    from fp4patch.catalog.coverage import Covered
    from fp4patch.catalog.probe import ProbeKind
    from fp4patch.core.arch import Arch
    from fp4patch.core.problem import Problem
    from fp4patch.proof.inputs import NumericsReport
    from fp4patch.proof.instruction import SassDiff, SassListing
    from fp4patch.proof.lift.result import Executed


@dataclass(frozen=True)
class Check:
    """One condition of one rule on one probe and architecture."""

    rule: str
    """Text of the condition: ``forbids F2FP.*E2M1``."""
    because: str
    verdict: Verdict
    detail: str
    """Evidence that was found: ``4 F2FP.SATFINITE.E2M1…``."""


@dataclass(frozen=True)
class ProbeResult:
    """Result of one probe on one architecture."""

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
    """Error message of the compiler, if it refused."""
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
    """A probe that did not run on this tree, or not with other flags of the compiler: neither a pass nor a failure."""

    probe: str
    title: str
    because: str
    """Reason: ``csrc/**/nvfp4_utils.cuh of this release has no fp32_vec16_to_e2m1``."""


@dataclass(frozen=True)
class BuildResult:
    """Results of a tree's own build for one arch list with one CUDA release, before and after."""

    check: str
    """Id of the check: ``vllm/arch-lists``."""
    cuda: str
    asked: str
    """Arch list: ``12.0a;12.1a``."""
    before: str
    """Architectures of the FP4 kernels, or the reason why there are none."""
    after: str
    verdict: Verdict
    detail: str
    """Expectation, if it was not met."""


@dataclass(frozen=True)
class VerifyReport:
    """Complete report of verify; the JSON document and the HTML page are made from it."""

    variant: str
    target: str
    version: str
    tree: str
    patches: tuple[str, ...]
    """Applied patches: ``cutlass/e2m1-guard 1``."""
    arch: tuple[Arch, ...]
    toolchain: ToolchainInfo
    results: tuple[ProbeResult, ...]
    problems: tuple[Problem, ...]
    """Failures beside the probes: a rule that matched nothing, a probe that no rule judges."""
    seconds: float
    fp4patch: str
    finished: str
    """End time in UTC, ISO 8601."""
    set_aside: tuple[SetAside, ...] = ()
    numerics: tuple[NumericsReport, ...] = ()
    """Results of every input through the tree's conversions; empty unless requested."""
    numerics_notes: tuple[str, ...] = ()
    """Notes on the sweeps: where they ran, and why others did not."""
    executed: Executed | None = None
    """Results of executing the machine code; None if it was not executed."""
    builds: tuple[BuildResult, ...] = ()
    """The tree's own build, evaluated."""
    coverage: tuple[Covered, ...] = ()
    """Each function that the patches touch, with its checks on each target."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was checked, and all of it passed."""
        verdicts = [result.verdict for result in self.results] + [swept.verdict for swept in self.numerics]
        verdicts += self.executed.verdicts if self.executed else []
        verdicts += [result.verdict for result in self.builds]
        if not self.results or self.problems or any(verdict.failed for verdict in verdicts):
            return Verdict.FAIL
        return Verdict.PASS
