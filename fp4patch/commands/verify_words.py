"""Sentences and numbers that terminal and page share about a verify report."""

from collections.abc import Iterator, Sequence

from fp4patch.catalog.coverage import Covered, How, unchecked
from fp4patch.core.wording import counted, listed
from fp4patch.proof.result import BuildResult, ProbeResult, VerifyReport


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


def unrecorded(report: VerifyReport) -> str:
    """Return the code of which nothing says how long it may be; empty if all of it has a record."""
    rows = [f"{row.probe} on {row.arch}" for row in report.results if row.unrecorded]
    more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    if not rows:
        return ""
    return f"nothing says how long this code of nvcc {report.toolchain.nvcc} may be: {', '.join(rows[:4])}{more}"


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
