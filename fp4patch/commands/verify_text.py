"""Verify's table for a terminal, at whatever width it has."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment, Segments
from rich.table import Column
from rich.text import Text

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import verify_execution_words as execution
from fp4patch.commands import verify_words as summary
from fp4patch.commands import words
from fp4patch.commands.terminal import NONE, STYLES, Hanging, folded, label, number, problems, table, whole
from fp4patch.core.verdict import Verdict
from fp4patch.proof.result import ProbeResult, VerifyReport
from fp4patch.proof.verdict import counts, failed_checks, headline, reason
from fp4patch.sass.instruction import SassListing

WIDE = 100
"""Columns from which the table also has room for the reason of a failure."""


@dataclass(frozen=True)
class VerifyTable:
    """A table with a row for each probe and architecture, which chooses its columns when the width is known.

    It has instructions, branches, conversions and registers before → after, and the verdict. Below it are the failures,
    each with rule, finding and reason; last, one line with verdict, number of checks, tool versions
    and seconds.
    """

    report: VerifyReport

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield Hanging(f"{report.variant} ", f"on {report.target} {report.version}  {report.tree}", "bold")
        if report.results:
            yield Text()
            yield from _table(console, options, report)
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
        if said := summary.unrecorded(report):
            yield Hanging("not recorded  ", said, "dim")
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
    """Yield the results of the tree's own build, and the checks of the functions that the patches change."""
    if report.builds or report.coverage:
        yield Text()
    for line in summary.build_lines(report.builds):
        yield Hanging("", line, "dim")
    for build in report.builds:
        if build.verdict.failed:
            yield label("fail", summary.build_sentence(build), STYLES[Verdict.FAIL])
    for line in summary.coverage_lines(report.coverage):
        yield Hanging("", line, "dim")


def _table(console: Console, options: ConsoleOptions, report: VerifyReport) -> RenderResult:
    """Yield the table. Where it would cut names of probes in the middle, each name has its rows below it."""
    for wide, gap in ((True, 2), (True, 1), (False, 1)):
        if wide and options.max_width < WIDE:
            continue
        columns, names, rows = _cells(report, wide=wide)
        others = table(columns[:-1], [row[:-1] for row in rows], gap=gap)
        room = options.max_width - Measurement.get(console, options, others).maximum - 2 * gap
        room -= max(len(result.verdict.value) for result in report.results)
        if room >= max(map(len, names)):
            yield table([whole("probe"), *columns], zip(names, *zip(*rows, strict=True), strict=True), gap=gap)
            return
    head, *lines = console.render_lines(
        table(columns, rows, gap=gap), options.update(width=options.max_width), pad=False
    )
    yield Segments([*head, Segment.line()])
    for name, line in zip(names, lines, strict=True):
        if name:
            yield Hanging("", name)
        yield Segments([*line, Segment.line()])


def _cells(report: VerifyReport, *, wide: bool) -> tuple[list[Column], list[str], list[tuple[RenderableType, ...]]]:
    """Return the columns beside the probe, its name in each row, empty where it is repeated, and the rows."""
    results, executed = report.results, report.executed
    columns = [whole("arch"), *map(number, ("instructions", "branches", "FP4 cvt", "registers"))]
    if wide and executed:
        columns.append(number("executed, wrong"))
    columns.append(folded("verdict", no_wrap=not wide))
    short = summary.short_names(results)
    names: list[str] = []
    rows: list[tuple[RenderableType, ...]] = []
    previous = ""
    for result in results:
        verdict = Text(result.verdict.value, style=STYLES[result.verdict])
        if wide and result.verdict is Verdict.FAIL:
            verdict.append(f": {words.printable(reason(result), kept=words.LINES)}", style="default not bold")
        names.append(short[result.probe] if result.probe != previous else "")
        wrong = [execution.cell(execution.of(executed, result))] if wide and executed else []
        rows.append((str(result.arch), *_numbers(result), *wrong, verdict))
        previous = result.probe
    return columns, names, rows


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
