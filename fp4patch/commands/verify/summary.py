"""Sentences and numbers that terminal and page share about a verify report."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fp4patch.catalog.coverage import Covered, How, unchecked
from fp4patch.core.verdict import Verdict, overall
from fp4patch.core.wording import counted, listed
from fp4patch.proof.result import EXECUTED, BuildResult, Check, ProbeResult, VerifyReport


@dataclass(frozen=True)
class Headline:
    """The verdict in words: one short sentence, and one that states the number of checks."""

    verdict: Verdict
    title: str
    detail: str


def coverage_lines(coverage: Sequence[Covered]) -> Iterator[str]:
    """Yield how the functions were checked, in one sentence, and those that were not, by the reason."""
    if not coverage:
        return
    missing = unchecked(coverage)
    checked = [one for one in coverage if one.checks and not one.missing]
    weakest = [max(list(How).index(c.how) for c in one.checks) for one in checked]
    ways = [f"{weakest.count(at)} {how.value}" for at, how in enumerate(How) if at in weakest]
    absent = [one for one in coverage if one.absent]
    where = "every target that they are compiled for" if absent else "every target"
    found = f"{counted(len(coverage), 'function')} touched, {len(checked)} checked on {where}"
    yield found + (f" ({', '.join(ways)})" if ways else "")
    for targets in dict.fromkeys(one.absent for one in absent):
        functions = [function_name(one.function) for one in absent if one.absent == targets]
        which = ", ".join(functions) if len(functions) < len(coverage) else "all"
        yield f"not compiled for {listed([*map(str, targets)])}, as the build or the preprocessor shows: {which}"
    reasons: dict[str, list[str]] = {}
    for one in missing:
        archs = f" on {listed([*map(str, one.missing)])}" if one.checks else ""
        reasons.setdefault(one.because, []).append(function_name(one.function) + archs)
    yield from (f"not checked: {', '.join(functions)}: {because}" for because, functions in reasons.items())


def build_lines(builds: Sequence[BuildResult]) -> Iterator[str]:
    """Yield the evaluated results of a tree's own build, a sentence for each check."""
    for check in dict.fromkeys(one.check for one in builds):
        found = [one for one in builds if one.check == check]
        wrong = sum(one.verdict.failed for one in found)
        changed = sum(one.before != one.after for one in found)
        if not found[0].cuda:
            places = counted(len(found), "file")
            yield f"{check}: the condition evaluated in {places} for each compute capability; {wrong} wrong"
            continue
        lists = counted(len(found), "pair") + " of a CUDA release and a list of architectures"
        yield f"{check}: the tree's own build evaluated for {lists}; {changed} changed by the patches, {wrong} wrong"


def build_sentence(one: BuildResult) -> str:
    """Return one evaluation in words: ``vllm/arch-lists, CUDA 13.0, 12.1a: 12.0f → 12.1a; …``."""
    where = f"CUDA {one.cuda}, {one.asked}" if one.cuda else one.asked
    return f"{one.check}, {where}: {one.before} → {one.after}" + (f"; {one.detail}" if one.detail else "")


def function_name(function: str) -> str:
    """Return a function's name with its parameters left out where they are long."""
    return function if len(function) <= _LONGEST_FUNCTION else f"{function[:_LONGEST_FUNCTION]}\N{HORIZONTAL ELLIPSIS}"


_LONGEST_FUNCTION = 90


def failed_checks(result: ProbeResult) -> tuple[Check, ...]:
    """Return the checks that did not hold."""
    return tuple(check for check in result.checks if check.verdict.failed)


def reason(result: ProbeResult) -> str:
    """Return the reason why this probe failed, in one short line; empty if it passed."""
    if not result.verdict.failed:
        return ""
    if result.verdict is Verdict.UNSUPPORTED:
        return f"this toolkit cannot compile for {result.arch}"
    if result.error:
        line = re.sub(r"^/\S*/(?=[^\s/])", "", first_error_line(result.error))  # directories add nothing in a table
        return textwrap.shorten(line, 72, placeholder=" …")
    failed = failed_checks(result)
    if failed:
        what = failed[0].detail.partition(" (")[0] if failed[0].rule == EXECUTED else failed[0].rule
        return what + (f" (and {len(failed) - 1} more)" if len(failed) > 1 else "")
    return "nothing was checked"


def first_error_line(error: str) -> str:
    """Return the line of a compiler's output that names the error, else its first."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")


def headline(reports: Sequence[VerifyReport]) -> Headline:
    """Return the verdict over these reports in one short sentence, and one with the numbers."""
    results = [result for report in reports for result in report.results]
    problems = sum(len(report.problems) for report in reports)
    checks = [check for result in results for check in result.checks]
    failed = [check for check in checks if check.verdict.failed]
    broken = [r for r in results if r.verdict is Verdict.FAIL and not failed_checks(r)]
    unsupported = sorted({r.arch for r in results if r.verdict is Verdict.UNSUPPORTED})
    names, unneeded = (
        listed([f"{one.target} {one.version}".strip() for one in reports if (one.verdict is Verdict.NOTHING) is idle])
        for idle in (False, True)
    )
    variant = listed(sorted({report.variant for report in reports}))
    archs = listed([str(arch) for arch in sorted({result.arch for result in results})])
    builds = [build for report in reports for build in report.builds]
    looked = ", ".join([f"{counted(len(results), 'result')} for {archs}"] * bool(results) + counts(reports))
    if unneeded and not names:
        return Headline(
            Verdict.NOTHING,
            f"Not needed: {variant} changes nothing in {unneeded}",
            "No probe is for this release, and nothing was checked.",
        )
    if not overall(report.verdict for report in reports).failed:
        coverage = [one for report in reports for one in report.coverage]
        missing = unchecked(coverage)
        where = f" for {len(coverage) - len(missing)} of {counted(len(coverage), 'function')}" if missing else ""
        return Headline(
            Verdict.PASS,
            f"Verified: {variant} on {names} satisfies its rules{where}"
            + (f"; it changes nothing in {unneeded}" if unneeded else ""),
            f"{looked}, all passed." + (f" Not checked: {counted(len(missing), 'function')}." if missing else ""),
        )
    if not (results or builds):
        return Headline(
            Verdict.FAIL,
            "Not verified: nothing was checked",
            "No probe ran, so nothing is known about the machine code.",
        )
    parts = []
    if failed:
        parts.append(f"{len(failed)} of {counted(len(checks), 'check')} failed")
    if broken:
        parts.append(f"{counted(len(broken), 'probe')} did not compile or could not be judged")
    if unsupported:
        parts.append(f"the toolkit cannot compile for {listed([str(arch) for arch in unsupported])}")
    if problems:
        parts.append(f"{counted(problems, 'problem')} beside the probes")
    verdicts = [verdict for report in reports if report.executed for verdict in report.executed.verdicts]
    if wrong := sum(verdict.failed for verdict in verdicts):
        parts.append(f"{wrong} of {len(verdicts)} executions and comparisons are not as promised")
    if lost := sum(build.verdict.failed for build in builds):
        parts.append(f"{counted(lost, 'result')} of the tree's own build not as declared")
    empty = [report for report in reports if report.verdict.failed and not (report.results or report.builds)]
    if empty:
        parts.append(f"nothing was checked in {listed([report.tree for report in empty])}")
    return Headline(Verdict.FAIL, f"Not verified: {'; '.join(parts)}", f"{variant} on {names}: {looked}.")


def counts(reports: Sequence[VerifyReport]) -> list[str]:
    """Return what was counted: the checks of machine code, and the evaluations of the tree's own build."""
    checks = sum(len(result.checks) for report in reports for result in report.results)
    builds = sum(len(report.builds) for report in reports)
    conditions = " and of conditions" if any(not one.cuda for report in reports for one in report.builds) else ""
    return [f"{counted(checks, 'check')}"] * bool(checks or not builds) + [
        f"{counted(builds, 'evaluation')} of the build{conditions}"
    ] * bool(builds)


def tools(report: VerifyReport) -> str:
    """Return ``nvcc 13.0.88, ptxas 13.0.88, nvdisasm 13.5.37``."""
    chain = report.toolchain
    named = (("nvcc", chain.nvcc), ("ptxas", chain.ptxas), ("nvdisasm", chain.nvdisasm))
    return ", ".join(f"{name} {version}" for name, version in named if version)


def short_names(results: Sequence[ProbeResult]) -> dict[str, str]:
    """Return probe ids without their target if all have the same one."""
    targets = {result.probe.partition("/")[0] for result in results}
    if len(targets) > 1:
        return {result.probe: result.probe for result in results}
    return {result.probe: result.probe.partition("/")[2] or result.probe for result in results}
