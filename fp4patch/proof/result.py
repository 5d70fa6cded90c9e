"""Results of ``fp4patch verify``: one for each probe and architecture, and the verdict on the whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fp4patch.catalog.probe import ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, Report, shown
from fp4patch.core.results import OnTree, PassOrFail, Problem, Verdict, verdict_on
from fp4patch.proof import verdict
from fp4patch.proof.coverage import Coverage
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.listing import SassListing
from fp4patch.proof.verdict import Check


@dataclass(frozen=True)
class ProbeResult(Document):
    """Result of one probe on one architecture."""

    probe: str
    title: str
    arch: Arch
    kind: ProbeKind
    before: SassListing | None
    """Machine code of the pristine tree."""
    after: SassListing | None
    """Machine code of the patched tree."""
    checks: tuple[Check, ...]
    error: str = ""
    """Error message of the compiler, if it refused."""
    cached: bool = False
    """True if it was compiled before, from the same bytes by the same tools."""
    forced: bool = field(default=False, metadata=HIDDEN)
    """True if a macro that users may define selects the software: this is not what a plain build gets."""
    unrecorded: bool = False
    """True if the variant's record has no counts of this code by this compiler: nothing says how long it may be."""

    @property
    @shown()
    def verdict(self) -> Verdict:
        """PASS only if there is a check, and every one passes."""
        return verdict.on_checks(self.checks)

    @property
    @shown()
    def identical(self) -> bool | None:
        """True if not one byte of code differs; null if nothing was compared."""
        return is_same(self.before, self.after) if self.before and self.after else None


def is_same(before: SassListing | None, after: SassListing | None) -> bool:
    """Return whether there is code on both sides, and not one byte of it differs."""
    return bool(before and after and before.code_sha256 == after.code_sha256)


@dataclass(frozen=True)
class ToolchainInfo(Document):
    """The tools that ran, by version and path."""

    nvcc: str
    ptxas: str
    nvdisasm: str
    host_compiler: str
    cuda_root: str
    disassembler: str


@dataclass(frozen=True)
class SetAside(Document):
    """A probe that did not run on this tree, or not with other flags of the compiler: neither a pass nor a failure."""

    probe: str
    title: str
    because: str
    """Reason: ``csrc/**/nvfp4_utils.cuh of this release has no fp32_vec16_to_e2m1``."""


@dataclass(frozen=True)
class BuildResult(Document):
    """Results of a tree's own build for one arch list with one CUDA release, before and after; or of a condition on the
    compute capability."""

    check: str
    """Id of the check: ``vllm/arch-lists``."""
    cuda: str
    """CUDA release: ``13.0``. Empty for a condition."""
    asked: str
    """Arch list: ``12.0a;12.1a``; or the file of the condition."""
    before: str
    """Architectures of the FP4 kernels, or the reason why there are none; or the capabilities that meet it."""
    after: str
    """The same of the patched tree."""
    detail: str
    """Expectation, if it was not met."""

    @property
    @shown()
    def verdict(self) -> PassOrFail:
        """PASS if every expectation was met."""
        return verdict_on(not self.detail)


@dataclass(frozen=True)
class VerifyReport(Report):
    """Complete report on one tree; the JSON document and the HTML page are made from it."""

    variant: str
    target: str
    version: str
    tree: str
    patches: tuple[str, ...]
    """Applied patches: ``cutlass/e2m1-guard 1``."""
    arch: tuple[Arch, ...]
    toolchain: ToolchainInfo
    results: tuple[ProbeResult, ...]
    """Results of each probe on each architecture."""
    problems: tuple[Problem, ...]
    """Failures beside the probes: a rule that matched nothing, a probe that no rule judges."""
    seconds: float
    """Wall time."""
    fp4patch: str
    """Version of fp4patch."""
    finished: str
    """End time in UTC, ISO 8601."""
    set_aside: tuple[SetAside, ...] = ()
    """Probes that do not apply to this tree and did not run."""
    executed: Executed | None = None
    """Results of executing the machine code; None if it was not executed."""
    builds: tuple[BuildResult, ...] = ()
    """The tree's own build, evaluated."""
    coverage: Coverage = field(default_factory=Coverage)
    """The lines that the patches change, and those of them that no check judged."""
    diffs: Mapping[str, int] = field(default_factory=dict)
    """Number of files that each unified diff changed: it has no check of its own."""
    cubins: Mapping[tuple[str, Arch, str], bytes] = field(default_factory=dict, metadata=HIDDEN)
    """Disassembled cubins by probe, architecture and side: ``pristine`` or ``patched``."""

    @property
    @shown()
    def verdict(self) -> OnTree:
        """PASS only if something was checked, and all of it passed."""
        return verdict.on_tree(self)


@dataclass(frozen=True)
class VerifyReports(Report):
    """Reports on several trees, or on none, which is a failure."""

    trees: tuple[VerifyReport, ...]

    @property
    @shown()
    def verdict(self) -> OnTree:
        """Verdict over all."""
        return verdict.on_trees(self.trees)


def whole(reports: Sequence[VerifyReport]) -> VerifyReport | VerifyReports:
    """Return the document over some trees: of one tree, its own report."""
    return reports[0] if len(reports) == 1 else VerifyReports(tuple(reports))
