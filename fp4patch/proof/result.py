"""Results of ``fp4patch verify``, the verdict on them, and its sentence: all outputs read the verdict from here.

A condition that was looked at is a ``Check``, with a verdict of its own. A row of the table is the verdict on its
checks, a tree that on its rows, executions and builds. If nothing was checked, the verdict is not "pass".
"""

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fp4patch.catalog.probe import ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, Report, shown
from fp4patch.core.results import OnTree, PassOrFail, Problem, Verdict, overall, verdict_on
from fp4patch.core.wording import counted, listed
from fp4patch.proof.coverage import LEFT_OUT, LEFT_OUT_HERE, LOOSE, NO_CODE, NOT_READ, NOT_RUN, Coverage, places
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.listing import SassListing


@dataclass(frozen=True)
class Check(Document):
    """One condition of one rule on one probe and architecture."""

    rule: str
    """Text of the condition: ``forbids F2FP.*E2M1``."""
    because: str
    """Reason of the rule."""
    verdict: Verdict
    detail: str
    """Evidence that was found: ``4 F2FP.SATFINITE.E2M1…``."""


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
        """UNSUPPORTED if the compiler does not know the target, else PASS only if there is a check, and all pass."""
        verdicts = [check.verdict for check in self.checks]
        return Verdict.UNSUPPORTED if Verdict.UNSUPPORTED in verdicts else overall(verdicts)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not hold."""
        return tuple(check for check in self.checks if check.verdict.failed)

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
    executed: Executed = field(default_factory=lambda: Executed(()))
    """Results of executing the machine code; none if it was not executed."""
    builds: tuple[BuildResult, ...] = ()
    """The tree's own build, evaluated."""
    coverage: Coverage = field(default_factory=Coverage)
    """The lines that the patches change, and those of them that no check judged."""
    unasked: str = ""
    """What was not checked, since targets were named; empty if the variant's own were."""
    diffs: Mapping[str, int] = field(default_factory=dict)
    """Number of files that each patch of ``--with`` changed: it has no check of its own."""
    diff_lines: Mapping[str, Coverage] = field(default_factory=dict)
    """Of each such patch, the lines that need a check, and those of them that no probe judged."""
    cubins: Mapping[tuple[str, Arch, str], bytes] = field(default_factory=dict, metadata=HIDDEN)
    """Disassembled cubins by probe, architecture and side: ``pristine`` or ``patched``."""

    @property
    @shown()
    def verdict(self) -> OnTree:
        """PASS only if something was checked, and all of it passed."""
        if not (self.patches or self.results or self.builds or self.problems):
            return Verdict.NOTHING
        judged: list[Verdict] = [row.verdict for row in self.results]
        judged += [build.verdict for build in self.builds]
        # An execution of patched code is a check of its row; upstream's code has no row.
        upstreams = [run.verdict for run in self.executed.executions if run.side == "pristine"]
        return verdict_on(judged and not overall([*judged, *upstreams]).failed and not self.problems)


@dataclass(frozen=True)
class VerifyReports(Report):
    """Reports on several trees, or on none, which is a failure."""

    trees: tuple[VerifyReport, ...]

    @property
    @shown()
    def verdict(self) -> OnTree:
        """Verdict over all: NOTHING if that of each is, and not PASS if there are none."""
        verdicts = {report.verdict for report in self.trees}
        return Verdict.NOTHING if verdicts == {Verdict.NOTHING} else overall(verdicts)


def whole(reports: Sequence[VerifyReport]) -> VerifyReport | VerifyReports:
    """Return the document over some trees: of one tree, its own report."""
    return reports[0] if len(reports) == 1 else VerifyReports(tuple(reports))


@dataclass(frozen=True)
class Headline:
    """The verdict in words: one short sentence, and one that states the number of checks."""

    verdict: Verdict
    title: str
    detail: str


def _judged_lines(covered: Coverage) -> str:
    """Return how many lines of a patch of ``--with`` a probe judged."""
    unjudged = sum(span.last - span.first + 1 for span in covered.unjudged)
    if unjudged == covered.lines:
        return "0 checks"
    return f"{covered.lines - unjudged} of {counted(covered.lines, 'changed line')} judged"


def headline(reports: Sequence[VerifyReport]) -> Headline:
    """Return the verdict over these reports in one short sentence, and one with the numbers."""
    verdict = VerifyReports(tuple(reports)).verdict
    names = {id(report): f"{report.target} {report.version}".strip() for report in reports}
    idle = listed([names[id(report)] for report in reports if report.verdict is Verdict.NOTHING])
    looked_at = listed([names[id(report)] for report in reports if report.verdict is not Verdict.NOTHING])
    variant = listed(sorted({report.variant for report in reports}))
    if verdict is Verdict.NOTHING:
        title = f"Not needed: {variant} changes nothing in {idle}"
        return Headline(verdict, title, "No probe is for this release, and nothing was checked.")
    of_diffs = "".join(
        f"; {name}: {counted(files, 'changed file')}, {_judged_lines(report.diff_lines.get(name, Coverage()))}"
        for report in reports
        for name, files in report.diffs.items()
    )
    results = [result for report in reports for result in report.results]
    builds = [build for report in reports for build in report.builds]
    if not (results or builds):
        detail = "No probe ran, so nothing is known about the machine code."
        return Headline(verdict, f"Not verified: nothing was checked{of_diffs}", detail)
    archs = listed([str(arch) for arch in sorted({result.arch for result in results})])
    checks = [check for result in results for check in result.checks]
    numbers = {
        f"{counted(len(results), 'result')} for {archs}": results,
        counted(len(checks), "check"): checks or not builds,
        f"{counted(len(builds), 'evaluation')} of the build": builds,
    }
    said = ", ".join(number for number, holds in numbers.items() if holds)
    if verdict.failed:
        title = f"Not verified: {'; '.join(_failures(reports, checks))}{of_diffs}"
        return Headline(verdict, title, f"{variant} on {looked_at}: {said}.")
    beside = f"; it changes nothing in {idle}" if idle else ""
    title = f"Verified: {variant} on {looked_at} satisfies its rules{_longer(results)}{beside}{of_diffs}"
    return Headline(verdict, f"{title}. {_judged(reports, archs)}".strip(), f"{said}, all passed.")


def _judged(reports: Sequence[VerifyReport], archs: str) -> str:
    """Return how many of the changed lines were judged, and how many not for which reason; the numbers add up."""
    coverages = [report.coverage for report in reports]
    lines, judged = (sum(numbers) for numbers in zip(*((c.lines, c.judged) for c in coverages), strict=True))
    said = [f"{judged} of {counted(lines, 'changed line')} judged{f' on {archs}' if archs else ''}"] if lines else []
    said += unjudged(coverages, _LIMIT)
    said += dict.fromkeys(report.unasked for report in reports if report.unasked)
    return "".join(f"{sentence}. " for sentence in said).rstrip()


def unjudged(coverages: Sequence[Coverage], limit: int = sys.maxsize) -> list[str]:
    """Return sentences about the changed lines that no check judged, each with so many places."""
    sentences = []
    for because, (one, several) in _REASONS.items():
        if spans := [span for coverage in coverages for span in coverage.unjudged if span.because == because]:
            number = sum(map(len, spans))
            more = f" and {len(spans) - limit} more" if len(spans) > limit else ""
            where = "" if because == LEFT_OUT_HERE and limit < sys.maxsize else f": {', '.join(places(spans[:limit]))}"
            sentences.append(f"{number} {one if number == 1 else several}{where}{more if where else ''}")
    return sentences


_REASONS = {
    NO_CODE: ("has no code that was judged", "have no code that was judged"),
    NOT_RUN: ("has code that was counted and not executed", "have code that was counted and not executed"),
    LOOSE: ("may be another for all that was evaluated", "may be others for all that was evaluated"),
    LEFT_OUT: ("is left out by the preprocessor on every target", "are left out by the preprocessor on every target"),
    LEFT_OUT_HERE: ("is left out on these targets", "are left out on these targets"),
    NOT_READ: ("is read by no probe", "are read by no probe"),
}


def _longer(results: Sequence[ProbeResult]) -> str:
    """Return a clause on code that became longer, as a variant may define it; empty if none did.

    Probes that choose the software by a macro, as ``FP4PATCH_FORCE_SOFTWARE``, do not count.
    """
    factors = {
        result.after.size / result.before.size: result.arch
        for result in results
        if result.before and result.after and not result.forced and result.before.size
    }
    factor = max(factors, default=1.0)
    if factor < _LONGER:
        return ""
    return f"; on {factors[factor]} up to {factor:.0f} times longer than upstream's code, as this variant is defined"


_LIMIT = 1
"""Places that a sentence names."""
_LONGER = 1.5
"""Factor from which on longer code stands in the verdict's line."""


def _failures(reports: Sequence[VerifyReport], checks: Sequence[Check]) -> list[str]:
    """Return what failed, each as a clause with its number."""
    executions = [run.verdict for report in reports for run in report.executed.executions]
    failed = sum(check.verdict.failed for check in checks)
    wrong = sum(run.failed for run in executions)
    lost = sum(build.verdict.failed for report in reports for build in report.builds)
    problems = sum(len(report.problems) for report in reports)
    empty = [report.tree for report in reports if report.verdict.failed and not (report.results or report.builds)]
    clauses = {
        f"{failed} of {counted(len(checks), 'check')} failed": failed,
        f"{counted(problems, 'problem')} beside the probes": problems,
        f"{wrong} of {len(executions)} executions are not as promised": wrong,
        f"{counted(lost, 'result')} of the tree's own build not as declared": lost,
        f"nothing was checked in {listed(empty)}": empty,
    }
    return [clause for clause, holds in clauses.items() if holds]


def reason(result: ProbeResult) -> str:
    """Return the reason why this probe failed, in one short line; empty if it passed."""
    if not result.verdict.failed:
        return ""
    failed = result.failed
    if result.error and not (result.after and failed):
        lines = result.error.strip().splitlines()
        line = next((line for line in lines if "error" in line.lower()), lines[0])
        return textwrap.shorten(re.sub(r"^/\S*/(?=[^\s/])", "", line), 72, placeholder=" …")
    if failed:
        return failed[0].rule + (f" (and {len(failed) - 1} more)" if len(failed) > 1 else "")
    return "nothing was checked"
