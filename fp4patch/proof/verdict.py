"""The verdict of verify and its sentence: text, page, JSON document and exit status read both from here.

A condition that was looked at is a ``Check``, with a verdict of its own. A row of the table is the verdict on its
checks, a tree that on its rows, executions and builds. If nothing was checked, the verdict is not "pass".
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fp4patch.core.document import Document
from fp4patch.core.results import OnTree, Verdict, overall, verdict_on
from fp4patch.core.wording import counted, listed
from fp4patch.proof.coverage import LEFT_OUT, NO_CODE, places

if TYPE_CHECKING:
    from fp4patch.proof.execution.result import Execution
    from fp4patch.proof.result import ProbeResult, VerifyReport


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


def on_checks(checks: Iterable[Check]) -> Verdict:
    """Return the verdict on a row: UNSUPPORTED if the compiler does not know the target, else PASS if all pass."""
    verdicts = [check.verdict for check in checks]
    return Verdict.UNSUPPORTED if Verdict.UNSUPPORTED in verdicts else overall(verdicts)


def on_execution(execution: Execution) -> Verdict:
    """Return PASS only if every input ran and every result, including those of the corners, keeps the promise."""
    if execution.unsupported:
        return Verdict.UNSUPPORTED
    if execution.problem:
        return Verdict.FAIL
    if batch := execution.batch:
        return verdict_on(batch.inputs and not batch.mismatches)
    corners = any(row.breaks(execution.promise) for row in execution.corners)
    return verdict_on(execution.report and execution.report.keeps(execution.promise) and not corners)


def on_tree(report: VerifyReport) -> OnTree:
    """Return PASS only if something was checked, and all of it passed."""
    if not (report.patches or report.results or report.builds or report.problems):
        return Verdict.NOTHING
    verdicts: list[Verdict] = [*(row.verdict for row in report.results), *(build.verdict for build in report.builds)]
    executions = (execution.verdict for execution in (report.executed.executions if report.executed else ()))
    passed = not overall([*verdicts, *executions]).failed
    return verdict_on(verdicts and passed and not report.problems)


def on_trees(reports: Iterable[VerifyReport]) -> OnTree:
    """Return the verdict over several trees: NOTHING if each is, and not PASS if there are none."""
    verdicts = {report.verdict for report in reports}
    return Verdict.NOTHING if verdicts == {Verdict.NOTHING} else overall(verdicts)


@dataclass(frozen=True)
class Headline:
    """The verdict in words: one short sentence, and one that states the number of checks."""

    verdict: Verdict
    title: str
    detail: str


def headline(reports: Sequence[VerifyReport]) -> Headline:
    """Return the verdict over these reports in one short sentence, and one with the numbers."""
    verdict = on_trees(reports)
    names = {id(report): f"{report.target} {report.version}".strip() for report in reports}
    idle = listed([names[id(report)] for report in reports if report.verdict is Verdict.NOTHING])
    looked_at = listed([names[id(report)] for report in reports if report.verdict is not Verdict.NOTHING])
    variant = listed(sorted({report.variant for report in reports}))
    results = [result for report in reports for result in report.results]
    if verdict is Verdict.NOTHING:
        title = f"Not needed: {variant} changes nothing in {idle}"
        return Headline(verdict, title, "No probe is for this release, and nothing was checked.")
    if not any(report.results or report.builds for report in reports):
        detail = "No probe ran, so nothing is known about the machine code."
        return Headline(verdict, f"Not verified: nothing was checked{_of_diffs(reports)}", detail)
    archs = listed([str(arch) for arch in sorted({result.arch for result in results})])
    numbers = ", ".join([f"{counted(len(results), 'result')} for {archs}"] * bool(results) + _counts(reports))
    if verdict.failed:
        title = f"Not verified: {'; '.join(_failures(reports))}{_of_diffs(reports)}"
        return Headline(verdict, title, f"{variant} on {looked_at}: {numbers}.")
    beside = f"; it changes nothing in {idle}" if idle else ""
    title = f"Verified: {variant} on {looked_at} satisfies its rules{_longer(results)}{beside}"
    title += _unjudged(reports) + _of_diffs(reports)
    return Headline(verdict, title, f"{numbers}, all passed.")


def _unjudged(reports: Sequence[VerifyReport]) -> str:
    """Return a clause about the changed lines that no check judged; empty if there are none."""
    clauses = []
    for because, what in ((NO_CODE, "not judged"), (LEFT_OUT, "left out by the preprocessor")):
        if spans := [span for report in reports for span in report.coverage.unjudged_for(because)]:
            lines = sum(span.last - span.first + 1 for span in spans)
            where = f"{', '.join(places(spans[:_LIMIT]))}{_more(spans)}"
            clauses.append(f"{counted(lines, 'changed line')} {what}: {where}")
    if unread := [file for report in reports for file in report.coverage.unread]:
        clauses.append(unread_files(unread))
    return "".join(f"; {clause}" for clause in clauses)


def _of_diffs(reports: Sequence[VerifyReport]) -> str:
    """Return a clause about each unified diff, of which nothing was judged; empty if there is none."""
    numbers = ((name, files) for report in reports for name, files in report.diffs.items())
    return "".join(f"; {name}: {counted(files, 'changed file')}, 0 checks" for name, files in numbers)


def unread_files(files: Sequence[str]) -> str:
    """Return the clause on changed files that no probe reads; the JSON document has all of their lines."""
    return f"{counted(len(files), 'changed file')} that no probe reads: {', '.join(files[:_LIMIT])}{_more(files)}"


_LIMIT = 3
"""Places that a sentence names."""


def _more(all_of_them: Sequence[object]) -> str:
    return f" and {len(all_of_them) - _LIMIT} more" if len(all_of_them) > _LIMIT else ""


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


_LONGER = 1.5
"""Factor from which on longer code stands in the verdict's line."""


def _failures(reports: Sequence[VerifyReport]) -> list[str]:
    """Return what failed, each as a clause with its number."""
    checks = [check for report in reports for result in report.results for check in result.checks]
    executions = [run.verdict for report in reports if report.executed for run in report.executed.executions]
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


def _counts(reports: Sequence[VerifyReport]) -> list[str]:
    """Return what was counted: the checks of machine code, and the evaluations of the tree's own build."""
    checks = sum(len(result.checks) for report in reports for result in report.results)
    builds = sum(len(report.builds) for report in reports)
    return [counted(checks, "check")] * bool(checks or not builds) + [
        f"{counted(builds, 'evaluation')} of the build"
    ] * bool(builds)


def failed_checks(result: ProbeResult) -> tuple[Check, ...]:
    """Return the checks that did not hold."""
    return tuple(check for check in result.checks if check.verdict.failed)


def reason(result: ProbeResult) -> str:
    """Return the reason why this probe failed, in one short line; empty if it passed."""
    if not result.verdict.failed:
        return ""
    failed = failed_checks(result)
    if result.error and not (result.after and failed):
        lines = result.error.strip().splitlines()
        line = next((line for line in lines if "error" in line.lower()), lines[0])
        return textwrap.shorten(re.sub(r"^/\S*/(?=[^\s/])", "", line), 72, placeholder=" …")
    if failed:
        return failed[0].rule + (f" (and {len(failed) - 1} more)" if len(failed) > 1 else "")
    return "nothing was checked"
