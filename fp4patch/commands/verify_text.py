"""Verify's result for a terminal: first the verdict and the effect, then what changed and what failed."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import verify_execution_words as execution
from fp4patch.commands import verify_words as summary
from fp4patch.commands.terminal import NONE, STYLES, Hanging, folded, label, number, problems, table, whole
from fp4patch.commands.verify_effect import changed_rows, effect, unchanged
from fp4patch.core.verdict import Verdict
from fp4patch.core.wording import counted
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import ProbeResult, VerifyReport
from fp4patch.proof.verdict import counts, failed_checks, headline, reason

ROWS = 12
"""Rows of the short table: with verdict, effect and legend they fill one screen."""

LEGEND = (
    f"pristine → patched, of the compiled probe; {NONE}: it does not compile; without sm_",
    "FP4 cvt: conversions by the hardware instruction F2FP",
    "fp4patch verify --details: all rows, registers, each execution, what did not run",
)


@dataclass(frozen=True)
class VerifyTable:
    """The verdict with its effect, a row for what changed, and each failure with rule, finding and reason.

    ``details`` adds a row for each probe and target, and every sentence on executions, builds and what did not run.
    """

    report: VerifyReport
    details: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield _summary(report)
        if report.results:
            yield Text()
            yield _table(report) if self.details else _changes(report)
        yield from self._failures()
        yield from self._did_not_run()
        if self.details:
            yield from _covered(report)
        if report.problems:
            yield Text()
            yield problems(report.problems)
        if report.results and not self.details:
            yield Text()
            for line in LEGEND:
                yield Hanging("", line, "dim")

    def _failures(self) -> Iterator[RenderableType]:
        for result in self.report.results:
            if result.verdict.failed:
                yield Text()
                yield _failure(result)
        failed = [summary.build_sentence(build) for build in self.report.builds if build.verdict.failed]
        wrong = execution.failures(self.report.executed) if self.report.executed else ()
        for line in (*wrong, *failed):
            yield label("fail", line, STYLES[Verdict.FAIL])

    def _did_not_run(self) -> Iterator[RenderableType]:
        if self.report.set_aside:
            yield Text()
        for because, probes in _reasons(self.report, every=self.details).items():
            yield Hanging("not run  ", f"{', '.join(probes)}: {because}", "dim")
        if unrecorded := summary.unrecorded(self.report):
            yield Hanging("not recorded  ", unrecorded, "dim")


def _reasons(report: VerifyReport, *, every: bool) -> dict[str, list[str]]:
    """Return the probes that did not run by their reason; in short, their number, and one reason for older releases."""
    if every:
        return summary.not_run(report)
    reasons: dict[str, list[str]] = {}
    for because, probes in summary.not_run(report).items():
        of_release = because.startswith("this release has no")
        reasons.setdefault("this release does not have what they test" if of_release else because, []).extend(probes)
    return {
        because: probes if len(probes) <= 2 else [counted(len(probes), "probe")] for because, probes in reasons.items()
    }


def _changes(report: VerifyReport) -> RenderableType:
    """Return the table of what changed, and the number of rows that did not."""
    rows, short = changed_rows(report.results), summary.short_names(report.results)
    same, hidden = unchanged(report.results), rows[ROWS:]
    columns = [
        folded("probe"),
        folded("targets"),
        *map(number, ("instructions", "branches", "FP4 cvt")),
        whole("verdict"),
    ]
    cells: list[tuple[RenderableType | str, ...]] = [
        (
            short[row.result.probe],
            " ".join(str(arch).removeprefix("sm_") for arch in row.archs),
            *_numbers(row.result)[:3],
            Text(row.result.verdict.value, style=STYLES[row.result.verdict]),
        )
        for row in rows[:ROWS]
    ]
    lines: list[RenderableType] = [table(columns, cells, gap=1)] if rows else []
    if hidden:
        lines.append(Text(f"{len(hidden)} more rows changed: --details", "dim"))
    if same:
        lines.append(Text(f"{same} of {len(report.results)} unchanged, byte for byte", "dim"))
    if hosts := sum(row.kind is ProbeKind.HOST and not row.verdict.failed for row in report.results):
        lines.append(Text(f"{counted(hosts, 'object file')} with a host pass compiled", "dim"))
    return Group(*lines)


def _covered(report: VerifyReport) -> Iterator[RenderableType]:
    """Yield each execution, the results of the tree's own build, and what was judged of the changed lines."""
    executions = execution.lines(report.executed) if report.executed else ()
    lines = [*executions, *summary.build_lines(report.builds), *summary.coverage_lines(report.coverage)]
    if lines:
        yield Text()
    for line in lines:
        yield Hanging("", line, "dim")


def _table(report: VerifyReport) -> Table:
    """Return the table of the results; a probe has its name in its first row."""
    columns = [folded("probe"), whole("arch")]
    columns += [*map(number, ("instructions", "branches", "FP4 cvt", "registers")), whole("verdict")]
    short, rows, previous = summary.short_names(report.results), [], ""
    for result in report.results:
        name = short[result.probe] if result.probe != previous else ""
        verdict = Text(result.verdict.value, style=STYLES[result.verdict])
        rows.append((name, str(result.arch), *_numbers(result), verdict))
        previous = result.probe
    return table(columns, rows, gap=1)


def _numbers(result: ProbeResult) -> tuple[str, str, str, str]:
    before, after = result.before, result.after
    if result.kind is ProbeKind.HOST and before is None and after is None:
        return "host pass", NONE, NONE, NONE
    columns = ("size", "branches", "fp4", "registers")
    one, two, three, four = (f"{_value(before, name)} → {_value(after, name)}" for name in columns)
    return one, two, three, four


def _value(listing: SassListing | None, name: str) -> str:
    return NONE if listing is None else str(getattr(listing, name))


def _failure(result: ProbeResult) -> RenderableType:
    parts: list[RenderableType] = [
        label(result.verdict.value, f"{result.probe} on {result.arch}", STYLES[result.verdict])
    ]
    for check in failed_checks(result):
        facts = (("rule", check.rule), ("found", check.detail), ("because", check.because))
        parts += [Hanging(f"  {word:7}  ", text, "dim") for word, text in facts if text]
    if result.error:
        parts += [Hanging("  ", line) for line in result.error.strip("\n").splitlines()]
    elif not failed_checks(result):
        parts.append(Hanging("  ", reason(result)))
    return Group(*parts)


def _summary(report: VerifyReport) -> RenderableType:
    """Return the verdict, the effect, and by which tools it was found."""
    tail = [*counts((report,)), summary.tools(report), f"{report.seconds:.1f} s"]
    cached = sum(result.cached for result in report.results)
    if cached:
        tail.append(f"{cached} of {len(report.results)} from cache")
    verdict = report.verdict
    return Group(
        Hanging(f"{verdict.value.upper()}  ", headline((report,)).title, f"{STYLES[verdict]} bold"),
        *(Hanging("      ", line) for line in effect(report)),
        Hanging("      ", ", ".join(part for part in tail if part), "dim"),
        Hanging("      ", report.tree, "dim"),
    )
