"""Verify's result for a terminal: the numbers before and after, what failed, and last the verdict."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import verify_execution_words as execution
from fp4patch.commands import verify_words as summary
from fp4patch.commands.terminal import NONE, STYLES, Hanging, folded, label, number, problems, table, whole
from fp4patch.core.verdict import Verdict
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import ProbeResult, VerifyReport
from fp4patch.proof.verdict import counts, failed_checks, headline, reason


@dataclass(frozen=True)
class VerifyTable:
    """A table with a row for each probe and architecture: numbers before → after, and the verdict.

    Below it are the failures, each with rule, finding and reason; last, the verdict, the number of checks, the versions
    of the tools and the seconds.
    """

    report: VerifyReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield Hanging(f"{report.variant} ", f"on {report.target} {report.version}  {report.tree}", "bold")
        if report.results:
            yield Text()
            yield _table(report)
        for result in report.results:
            if result.verdict.failed:
                yield Text()
                yield _failure(result)
        if report.set_aside:
            yield Text()
        reasons: dict[str, list[str]] = {}
        for probe in report.set_aside:
            reasons.setdefault(probe.because, []).append(probe.probe.removeprefix(f"{report.target}/"))
        for because, probes in reasons.items():
            yield Hanging("not run  ", f"{', '.join(probes)}: {because}", "dim")
        if unrecorded := summary.unrecorded(report):
            yield Hanging("not recorded  ", unrecorded, "dim")
        if report.executed:
            yield Text()
            for line in execution.failures(report.executed):
                yield label("fail", line, STYLES[Verdict.FAIL])
            for line in execution.lines(report.executed):
                yield Hanging("", line, "dim")
        yield from _covered(report)
        if report.problems:
            yield Text()
            yield problems(report.problems)
        yield Text()
        yield _summary(report)


def _covered(report: VerifyReport) -> Iterator[RenderableType]:
    """Yield the results of the tree's own build, and what was judged of the lines that the patches change."""
    if report.builds or report.coverage.lines:
        yield Text()
    for line in summary.build_lines(report.builds):
        yield Hanging("", line, "dim")
    for build in report.builds:
        if build.verdict.failed:
            yield label("fail", summary.build_sentence(build), STYLES[Verdict.FAIL])
    for line in summary.coverage_lines(report.coverage):
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
    tail = [*counts((report,)), summary.tools(report), f"{report.seconds:.1f} s"]
    cached = sum(result.cached for result in report.results)
    if cached:
        tail.append(f"{cached} of {len(report.results)} from cache")
    verdict = report.verdict
    return Group(
        Hanging(f"{verdict.value.upper()}  ", headline((report,)).title, f"{STYLES[verdict]} bold"),
        Hanging("      ", ", ".join(part for part in tail if part)),
    )
