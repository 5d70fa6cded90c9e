"""Sentences and numbers that terminal and page share about a verify report."""

from collections.abc import Iterator, Sequence

from fp4patch.core.wording import counted, listed
from fp4patch.proof.coverage import Coverage, LineSpan, number_of_lines, places
from fp4patch.proof.result import BuildResult, ProbeResult, VerifyReport
from fp4patch.proof.verdict import unread_files


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """Yield how many of the changed lines were judged, then those that were not, by the reason."""
    if not coverage.lines:
        return
    missing = number_of_lines(coverage.unjudged)
    judged = f"; {missing} not judged" if missing else ", no line without a check"
    yield f"{counted(coverage.lines, 'changed line')} in {counted(coverage.files, 'file')}{judged}"
    for (archs, because), spans in _by_reason((*coverage.compiled, *coverage.left_out)).items():
        yield f"not judged for {archs}, {because}: {', '.join(places(spans))}"
    if coverage.unread:
        yield unread_files(coverage.unread)
    for (archs, because), spans in _by_reason(coverage.without_code).items():
        by_file = {span.file: [other for other in spans if other.file == span.file] for span in spans}
        lines = [f"{file} ({counted(number_of_lines(those), 'line')})" for file, those in by_file.items()]
        yield f"no code for {archs}, {because}: {', '.join(lines)}"


def _by_reason(spans: Sequence[LineSpan]) -> dict[tuple[str, str], list[LineSpan]]:
    by_reason: dict[tuple[str, str], list[LineSpan]] = {}
    for span in spans:
        by_reason.setdefault((listed([*map(str, span.arch)]), span.because), []).append(span)
    return by_reason


def not_run(report: VerifyReport) -> dict[str, list[str]]:
    """Return the probes that did not run, by their reason."""
    reasons: dict[str, list[str]] = {}
    for probe in report.set_aside:
        reasons.setdefault(probe.because, []).append(probe.probe.removeprefix(f"{report.target}/"))
    return reasons


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
