"""Verify's table, refusals and errors as text for a terminal, at whatever width it has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fp4patch.model.probe import ProbeKind
from fp4patch.model.verdict import Verdict
from fp4patch.report import execution, numerics, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from fp4patch.errors import Fp4PatchError
    from fp4patch.model.execution import Executed
    from fp4patch.model.problem import Problem
    from fp4patch.model.sass import SassListing
    from fp4patch.model.verify import ProbeResult, VerifyReport

WIDE = 100
"""Columns from which the table also has room for the reason of a failure."""

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.UNSUPPORTED: "yellow"}
NONE = "\N{EN DASH}"


def verify_table(report: VerifyReport) -> RenderableType:
    """Return a table with a row for each probe and architecture.

    It has instructions, branches, conversions and registers before → after, and the verdict. Below it are the failures,
    each with rule, finding and reason; last, one line with verdict, number of checks, tool versions
    and seconds.
    """
    return _VerifyTable(report)


def problems(found: Sequence[Problem]) -> RenderableType:
    """Return the refusals: place, expected and found, nearest, and the recommended action; one block per problem."""
    return Group(*(_problem(problem) for problem in advised_once(found)))


def advised_once(found: Sequence[Problem], said: str = "") -> Iterator[Problem]:
    """Yield the problems, each advice with the last problem that it applies to. ``said`` is printed below all of
    them."""
    last = {problem.help: number for number, problem in enumerate(found)}
    for number, problem in enumerate(found):
        repeated = problem.help == said or number < last[problem.help]
        yield replace(problem, help="") if repeated else problem


def error(failure: Fp4PatchError) -> RenderableType:
    """Return an error with its problems, and the recommended next step."""
    parts: list[RenderableType] = [_label("error", failure.message, "bold red")]
    parts += [_problem(problem, "  ") for problem in advised_once(failure.problems, failure.help)]
    if failure.help:
        parts.append(_label("help", failure.help, "bold", "  "))
    return Group(*parts)


class _VerifyTable:
    """Chooses its columns when the width is known."""

    def __init__(self, report: VerifyReport) -> None:
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield _Hanging(f"{report.variant} ", f"on {report.target} {report.version}  {report.tree}", "bold")
        if report.results:
            yield Text()
            yield _table(report.results, report.executed, wide=options.max_width >= WIDE)
        for result in report.results:
            if result.verdict.failed:
                yield Text()
                yield _failure(result)
        if report.set_aside:
            yield Text()
        for probe in report.set_aside:
            yield _Hanging(f"not run  {probe.probe}: ", probe.because, "dim")
        if report.executed:
            yield Text()
            for line in execution.failures(report.executed):
                yield _label("fail", line, STYLES[Verdict.FAIL])
            for line in execution.lines(report.executed):
                yield _Hanging("", line, "dim")
        if report.numerics or report.numerics_notes:
            yield Text()
            yield numerics.table(report.numerics, report.numerics_notes)
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
    for line in words.build_lines(report.builds):
        yield _Hanging("", line, "dim")
    for build in report.builds:
        if build.verdict.failed:
            yield _label("fail", words.build_sentence(build), STYLES[Verdict.FAIL])
    for line in words.coverage_lines(report.coverage):
        yield _Hanging("", line, "dim")


def _table(results: Sequence[ProbeResult], executed: Executed | None, *, wide: bool) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2 if wide else 1, 0, 0), header_style="bold", collapse_padding=True
    )
    table.add_column("probe", overflow="fold")
    table.add_column("arch", no_wrap=True)
    for heading in ("instructions", "branches", "FP4 cvt", "registers"):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide and executed:
        table.add_column("executed, wrong", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=not wide, overflow="fold")
    names = words.short_names(results)
    previous = ""
    for result in results:
        verdict = Text(result.verdict.value, style=STYLES[result.verdict])
        if wide and result.verdict is Verdict.FAIL:
            verdict.append(f": {words.printable(words.reason(result), kept=words.LINES)}", style="default not bold")
        name = names[result.probe] if result.probe != previous else ""
        wrong = [execution.cell(execution.of(executed, result))] if wide and executed else []
        table.add_row(name, str(result.arch), *_numbers(result), *wrong, verdict)
        previous = result.probe
    return table


def _numbers(result: ProbeResult) -> tuple[str, str, str, str]:
    before, after = result.before, result.after
    if result.kind is ProbeKind.HOST and before is None and after is None:
        return "host pass", NONE, NONE, NONE
    columns = ("instructions", "branches", "fp4", "registers")
    one, two, three, four = (f"{_value(before, name)} → {_value(after, name)}" for name in columns)
    return one, two, three, four


def _value(listing: SassListing | None, name: str) -> str:
    return NONE if listing is None else str(getattr(words.metrics(listing), name))


def _failure(result: ProbeResult) -> RenderableType:
    parts: list[RenderableType] = [
        _label(result.verdict.value, f"{result.probe} on {result.arch}", STYLES[result.verdict])
    ]
    for check in words.failed_checks(result):
        facts = (("rule", check.rule), ("found", check.detail), ("because", check.because))
        parts += [_Hanging(f"  {word:7}  ", text, "dim") for word, text in facts if text]
    if result.error:
        parts += [_Hanging("  ", line) for line in result.error.strip("\n").splitlines()]
    elif not words.failed_checks(result):
        parts.append(_Hanging("  ", words.reason(result)))
    return Group(*parts)


def _summary(report: VerifyReport) -> RenderableType:
    checks = sum(len(result.checks) for result in report.results)
    tail = [words.counted(checks, "check"), words.tools(report), f"{report.seconds:.1f} s"]
    cached = sum(result.cached for result in report.results)
    if cached:
        tail.append(f"{cached} of {len(report.results)} from cache")
    verdict = report.verdict
    return Group(
        _Hanging(f"{verdict.value.upper()}  ", words.headline((report,)).title, f"{STYLES[verdict]} bold"),
        _Hanging("      ", ", ".join(part for part in tail if part)),
    )


def _problem(problem: Problem, indent: str = "") -> RenderableType:
    title, place, sentence = words.problem_title(problem), words.problem_place(problem), words.problem_sentence(problem)
    lines = [line for line in (title, place, sentence) if line] or ["a problem that says nothing of itself"]
    parts: list[RenderableType] = [_label("error", lines[0], "bold red", indent)]
    parts += [_Hanging(f"{indent}  ", line) for line in lines[1:]]
    if problem.help:
        parts.append(_label("help", problem.help, "bold", f"{indent}  "))
    return Group(*parts)


def _label(word: str, text: str, style: str, indent: str = "") -> RenderableType:
    return _Hanging(f"{indent}{word}: ", text, style)


class _Hanging:
    """A prefix, then text that wraps below itself on a terminal and stays one line in a pipe, where grep reads it."""

    def __init__(self, prefix: str, text: str, style: str = "") -> None:
        self.prefix, self.text, self.style = prefix, text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(words.printable(self.text, kept=words.LINES))
        room = max(20, options.max_width - len(self.prefix))
        lines = text.split() if options.no_wrap else text.wrap(console, room, overflow="fold")
        prefix = Text(self.prefix, style=self.style)
        for line in lines:
            line.rstrip()
            if not line:
                yield Text()
                continue
            yield Text.assemble(prefix, line, overflow="ignore", no_wrap=True)
            prefix = Text(" " * len(self.prefix))
