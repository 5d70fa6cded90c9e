"""The effect of the patches, as verify counted and executed it: what text and page say right below the verdict."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

from fp4patch.catalog.probe import ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.wording import counted, listed
from fp4patch.proof.execution.result import Executed, Execution
from fp4patch.proof.result import BuildResult, ProbeResult, VerifyReport

EIGHT_VALUES = "x8"
"""End of the names of probes that convert eight values: the unit in which the project states lengths."""


def effect(report: VerifyReport) -> Iterator[str]:
    """Yield what the patches change: the architectures of a build, the machine code, and whether it is exact."""
    yield from _builds(report.builds)
    code = [row for row in report.results if row.kind is not ProbeKind.HOST and not row.chosen_by_a_macro]
    for bare in (True, False):
        yield from _code([row for row in code if bool(row.arch.suffix) is not bare])
    if report.executed:
        yield from _exact(report.executed)


def unchanged(results: Iterable[ProbeResult]) -> int:
    """Return the number of results whose machine code is the same, byte for byte."""
    return sum(bool(row.identical) for row in results)


def _builds(builds: Sequence[BuildResult]) -> Iterator[str]:
    """Yield a line for each check of a build: how many lists changed, and the one that changed for one GPU alone."""
    for check, group in groupby(builds, key=lambda build: build.check):
        results = list(group)
        changed = [build for build in results if build.before != build.after]
        of = "arch lists" if results[0].cuda else "files with a condition"
        line = f"{check}: {len(changed)} of {len(results)} {of} changed"
        if changed:
            shortest = min(changed, key=lambda build: len(build.asked + build.before + build.after))
            asked = f"{shortest.asked} with CUDA {shortest.cuda}" if shortest.cuda else shortest.asked
            line += f"; {asked}: {shortest.before} → {shortest.after}"
        yield line


def _code(rows: Sequence[ProbeResult]) -> Iterator[str]:
    """Yield how much shorter the code of these targets is, with the greatest gain, and how much of it is new."""
    shorter = [row for row in rows if row.before and row.after and row.after.size < row.before.size]
    if shorter:
        best = max(shorter, key=lambda row: (row.probe.endswith(EIGHT_VALUES), factor(row)))
        assert best.before
        assert best.after
        branches = f", {best.before.branches} → {best.after.branches} branches" if best.before.branches else ""
        name = best.probe.partition("/")[2]
        yield f"{best.arch} {name}: {best.before.size} → {best.after.size} instructions{branches}"
    if new := [row for row in rows if row.after and not row.before]:
        yield f"{targets(row.arch for row in new)}: {counted(len(new), 'probe')} compile that upstream's text does not"


def _exact(executed: Executed) -> Iterator[str]:
    """Yield for how many kernels the output is what the specification gives."""
    found = list[str]()
    patched = [run for run in executed.executions if run.side == "patched" and not run.unsupported]
    swept = [run for run in patched if run.report]
    if swept:
        right = [run for run in swept if not run.verdict.failed]
        signs = sum(wrong_inputs(run) > 0 for run in right)
        bits = listed(sorted({f"2^{run.report.bits}" for run in swept if run.report}), last="or")
        but = f", {signs} of them but for the sign of NaN, as the variant declares" if signs else ""
        found.append(f"{len(right)} of {counted(len(swept), 'kernel')} exact for all {bits} inputs{but}")
    if chosen := [run for run in patched if run.batch and not run.report]:
        right = [run for run in chosen if not run.verdict.failed]
        found.append(f"{len(right)} of {len(chosen)} right for chosen inputs")
    if found:
        yield f"executed on this host: {'; '.join(found)}"


def wrong_inputs(run: Execution) -> int:
    """Return the number of inputs with another result than the specification gives."""
    return sum(row.mismatches for row in run.report.rows) if run.report else 0


def factor(row: ProbeResult) -> float:
    """Return how many times fewer instructions there are; infinite where there was no code."""
    if not (row.before and row.after and row.after.size):
        return float("inf") if row.after else 1.0
    return row.before.size / row.after.size


def targets(archs: Iterable[Arch]) -> str:
    """Return each target once: ``sm_120, sm_121 and sm_90``."""
    return listed(dict.fromkeys(map(str, archs)))


@dataclass(frozen=True)
class AlikeRows:
    """Results of one probe on targets where all numbers are the same."""

    result: ProbeResult
    archs: tuple[Arch, ...]


def numbers(row: ProbeResult) -> tuple[tuple[int, int, int] | None, ...]:
    """Return instructions, branches and FP4 conversions, before and after."""
    return tuple((side.size, side.branches, side.fp4) if side else None for side in (row.before, row.after))


def changed_rows(results: Sequence[ProbeResult]) -> list[AlikeRows]:
    """Return what failed, then what changed, the greatest difference first; targets with equal numbers share a row."""
    alike: dict[object, list[ProbeResult]] = {}
    for row in results:
        if row.verdict.failed or (row.kind is not ProbeKind.HOST and not row.identical):
            alike.setdefault((row.probe, numbers(row), row.verdict), []).append(row)
    rows = [AlikeRows(group[0], tuple(row.arch for row in group)) for group in alike.values()]
    return sorted(rows, key=lambda row: (not row.result.verdict.failed, -abs(log(min(factor(row.result), 1e9)))))
