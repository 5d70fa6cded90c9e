"""The result of verify in sentences, which its page shows too, and as text for a terminal: first verdict and effect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from fp4patch.catalog.probe import ProbeKind
from fp4patch.console import NONE, STYLES, Hanging, folded, number, problems, table, whole
from fp4patch.core.results import Verdict
from fp4patch.core.wording import counted, listed
from fp4patch.proof.execution.result import Executed, summary
from fp4patch.proof.result import BuildResult, ProbeResult, VerifyReport, headline, reason, unjudged

EIGHT_VALUES = "x8"
"""End of the names of probes that convert eight values: the unit in which the project states lengths."""
ROWS = 12
"""Rows of the short table: with verdict and effect they fill one screen."""
LEGEND = f"pristine → patched; {NONE}: it does not compile; FP4 cvt: conversions by the hardware"
MORE = "--details: every row, execution and unchecked line; --report FILE.html: both listings"


def effect(report: VerifyReport) -> Iterator[str]:
    """Yield what the patches change: the architectures of a build, the machine code, and whether it is exact.

    Nothing of a tree that failed: its gain is worth nothing.
    """
    if report.verdict.failed:
        return
    for check, group in groupby(report.builds, key=lambda build: build.check):
        results = list(group)
        changed = [build for build in results if build.before != build.after]
        of = "arch lists" if results[0].cuda else "files with a condition"
        example = min(map(build_sentence, changed), key=len, default="")
        yield f"{check}: {len(changed)} of {len(results)} {of} changed{'; ' * bool(changed)}{example}"
    code = [row for row in report.results if row.kind is not ProbeKind.HOST and not row.forced]
    for bare in (True, False):
        yield from _lengths([row for row in code if bool(row.arch.suffix) is not bare])
    yield from _exact(report.executed)


def _lengths(rows: Sequence[ProbeResult]) -> Iterator[str]:
    """Yield the greatest gain of these targets, and how much of their code is new."""
    both = ((row, row.before, row.after) for row in rows if row.before and row.after)
    if shorter := [found for found in both if found[2].size < found[1].size]:
        best, old, new = min(shorter, key=lambda of: (not of[0].probe.endswith(EIGHT_VALUES), of[2].size / of[1].size))
        fewer = f", {old.branches} → {new.branches} branches" if old.branches else ""
        yield f"{best.arch} {short_name(best.probe)}: {old.size} → {new.size} instructions{fewer}"
    if alone := [row for row in rows if row.after and not row.before]:
        archs = listed(dict.fromkeys(row.arch for row in alone))
        yield f"{archs}: {counted(len(alone), 'probe compiles', 'probes compile')} that upstream's text does not"


def _exact(executed: Executed) -> Iterator[str]:
    """Yield how many kernels give what the variant promises, for all inputs or for chosen ones."""
    ran = [run for run in executed.executions if run.side == "patched" and not run.unsupported]
    right = [run for run in ran if not run.verdict.failed]
    swept = sum(run.ran.bits > 0 for run in right)
    signs = sum(run.ran.signs > 0 for run in right)
    but = f"; {signs} but for the sign of NaN, as the variant declares" if signs else ""
    if ran:
        numbers = f"{len(right)} of {counted(len(ran), 'patched kernel')} right, {swept} of them for all inputs"
        yield f"executed on this host: {numbers}{but}"


def short_name(probe: str) -> str:
    """Return the name of a probe without its target, which is that of the tree."""
    return probe.partition("/")[2] or probe


def build_sentence(build: BuildResult) -> str:
    """Return one evaluation in words: ``12.1a with CUDA 13.0: 12.0f → 12.1a``."""
    asked = f"{build.asked} with CUDA {build.cuda}" if build.cuda else build.asked
    return f"{asked}: {build.before} → {build.after}" + (f"; {build.detail}" if build.detail else "")


def executions(executed: Executed, *, failed: bool = False) -> Iterator[str]:
    """Yield a sentence for each execution, or only for those that are not as promised."""
    for run in executed.executions:
        if run.verdict.failed or not failed:
            yield f"{run.probe}, {run.side} {run.arch}: {summary(run)}"


def not_run(report: VerifyReport) -> dict[str, list[str]]:
    """Return the probes that did not run, by their reason."""
    reasons: dict[str, list[str]] = {}
    for probe in report.set_aside:
        reasons.setdefault(probe.because, []).append(short_name(probe.probe))
    return reasons


def unrecorded(report: VerifyReport) -> str:
    """Return that nothing says how long some of the code may be; empty if all of it has a record."""
    rows = sum(row.unrecorded for row in report.results)
    return f"how long {counted(rows, 'row')} may be with nvcc {report.toolchain.nvcc}" if rows else ""


@dataclass(frozen=True)
class VerifyText:
    """The verdict with its effect, the rows that changed or failed, and what was not checked.

    ``details`` adds the other rows, and a sentence for each execution, build and unchecked line.
    """

    report: VerifyReport
    details: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report, head = self.report, headline((self.report,))
        yield Hanging(f"{head.verdict.value.upper()}  ", head.title, f"{STYLES[head.verdict]} bold")
        for line in effect(report):
            yield Hanging("      ", line)
        yield Hanging("      ", f"{head.detail} nvcc {report.toolchain.nvcc}, {report.seconds:.0f} s", "dim")
        yield Hanging("      ", report.tree, "dim")
        if report.results:
            yield from ("", _rows(report.results, every=self.details))
        for result in report.results:
            if result.verdict.failed:
                yield from ("", _failure(result))
        wrong = executions(report.executed, failed=True)
        builds = (f"{build.check}, {build_sentence(build)}" for build in report.builds if build.verdict.failed)
        for line in (*wrong, *builds):
            yield Hanging("fail: ", line, STYLES[Verdict.FAIL])
        beside = [*self._beside()]
        yield from [""] * bool(beside)
        yield from (Hanging(f"{word}  ", line, "dim") for word, line in beside)
        if report.problems:
            yield from ("", problems(report.problems))
        if report.results and not self.details:
            yield from ("", Hanging("", MORE, "dim"))

    def _beside(self) -> Iterator[tuple[str, str]]:
        """Yield what was not checked, and with ``details`` every sentence."""
        report, aside = self.report, 0
        if self.details:
            yield from (("executed", line) for line in (*executions(report.executed), *report.executed.notes))
            yield from (("build", f"{build.check}, {build_sentence(build)}") for build in report.builds)
            yield from (("not judged", line) for line in unjudged([report.coverage]))
        for because, probes in not_run(report).items():
            if self.details or "--" in because:  # it names the option that a person can give
                yield "not run", f"{', '.join(probes)}: {because}"
            else:
                aside += len(probes)
        if aside:
            yield "not run", f"{counted(aside, 'probe')} without what they test in this release"
        if line := unrecorded(report):
            yield "not recorded", line


def _rows(results: Sequence[ProbeResult], *, every: bool) -> RenderableType:
    """Return the table of what failed, then of what changed, the greatest difference first.

    Targets where all numbers are the same share a row.
    """
    alike: dict[tuple[str, tuple[str, ...], Verdict], list[ProbeResult]] = {}
    for row in results:
        if every or differs(row):
            alike.setdefault((row.probe, _changes(row), row.verdict), []).append(row)
    rows = sorted(alike.values(), key=lambda same: by_effect(same[0]))
    shown, same = rows if every else rows[:ROWS], sum(bool(row.identical) for row in results)
    columns = [folded("probe"), folded("targets"), *map(number, ("instructions", "branches", "FP4 cvt"))]
    lines = [table([*columns, whole("verdict")], map(_cells, shown), gap=1)] if shown else []
    notes = {
        LEGEND: shown,
        f"{len(rows) - len(shown)} more rows changed: --details": len(rows) > len(shown),
        f"{same} of {len(results)} unchanged, byte for byte": same,
    }
    return Group(*lines, *(Text(note, "dim") for note, holds in notes.items() if holds))


def differs(row: ProbeResult) -> bool:
    """Return whether a row is of interest: it failed, or its code changed."""
    return row.verdict.failed or not (row.identical or row.kind is ProbeKind.HOST)


def _cells(same: Sequence[ProbeResult]) -> tuple[RenderableType | str, ...]:
    row = same[0]
    archs = " ".join(str(result.arch).removeprefix("sm_") for result in same)
    return (short_name(row.probe), archs, *_changes(row), Text(row.verdict.value, style=STYLES[row.verdict]))


def _changes(row: ProbeResult) -> tuple[str, ...]:
    """Return instructions, branches and FP4 conversions of the code before and after."""
    sides = ((side.size, side.branches, side.fp4) if side else (NONE,) * 3 for side in (row.before, row.after))
    return tuple(f"{old} → {new}" for old, new in zip(*sides, strict=True))


def by_effect(row: ProbeResult) -> tuple[bool, bool, int]:
    """Return the key of the order of rows: what failed, what upstream's text lacks, then the greatest difference."""
    before, after = (side.size if side else 0 for side in (row.before, row.after))
    return not row.verdict.failed, bool(row.before or not row.after), -abs(after - before)


def _failure(result: ProbeResult) -> RenderableType:
    where = f"{result.probe} on {result.arch}"
    parts: list[RenderableType] = [Hanging(f"{result.verdict.value}: ", where, STYLES[result.verdict])]
    for check in result.failed:
        facts = (("rule", check.rule), ("found", check.detail), ("because", check.because))
        parts += [Hanging(f"  {word:7}  ", text, "dim") for word, text in facts if text]
    if result.error:
        parts += [Hanging("  ", line) for line in result.error.strip("\n").splitlines()]
    elif not result.failed:
        parts.append(Hanging("  ", reason(result)))
    return Group(*parts)
