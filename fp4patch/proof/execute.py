"""Execution of the probes: their machine code runs on the host for every input.

It covers probes whose data states their function. Both sides are executed: the patched one must keep the variant's
promise; the pristine one, and code that the variant leaves as it is, what upstream's own software keeps, so that a
mistake in the execution itself shows.
"""

from collections.abc import Sequence
from dataclasses import replace

from fp4patch.catalog.probe import CARD, Executes, ProbeKind, Quantizes
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.results import verdict_on
from fp4patch.proof.compile import FAST, CompiledProbes, Configured
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.executor import execute
from fp4patch.proof.execution.result import Executed, Execution, summary
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check, ProbeResult
from fp4patch.proof.view import SideName

Checks = dict[tuple[str, Arch], list[Check]]
"""Checks of rows, by probe and architecture."""


def execute_probes(
    compiled: CompiledProbes, rows: Sequence[ProbeResult], promise: Promise, *, execute: bool
) -> tuple[tuple[ProbeResult, ...], Executed]:
    """Return the rows with the checks of executions and of other flags, and the executions.

    ``promise`` is the variant's. Each kernel takes seconds once; then its result is kept.
    """
    executed = Executed(())
    if execute:
        on_host = [
            ProbeCode(probe.id, probe.executes, arch, "patched", made.content, None, promise)
            for probe, arch in compiled.pairs
            if probe.kind is ProbeKind.HOST and probe.executes
            if (made := compiled.side(probe.id, arch, "patched")).content
        ]
        executed = Executed(_execute(compiled, [*_subjects(compiled, rows, promise), *on_host]))
    others = _checks_with_other_flags(compiled, rows, promise, execute_too=execute)
    return with_checks(rows, executed, others), executed


def _execute(compiled: CompiledProbes, code: Sequence[ProbeCode]) -> tuple[Execution, ...]:
    request = compiled.request  # its store has the listings of what is executed
    return execute(
        code, toolchain=request.toolchain, store=request.store, threads=request.jobs, progress=request.progress
    )


def with_checks(results: Sequence[ProbeResult], executed: Executed, others: Checks) -> tuple[ProbeResult, ...]:
    """Return the rows with other checks, and with the execution of each patched side as a check, so that no row passes
    whose code is wrong."""
    rule, because = "gives what the variant promises", "the machine code was executed"
    checks = {
        (run.probe, run.arch): [Check(rule, because, verdict_on(not run.verdict.failed), summary(run))]
        for run in executed.executions
        if run.side == "patched"
    }
    for at, more in others.items():
        checks.setdefault(at, []).extend(more)
    return tuple(replace(row, checks=(*row.checks, *checks.get((row.probe, row.arch), ()))) for row in results)


def _subjects(compiled: CompiledProbes, rows: Sequence[ProbeResult], promise: Promise) -> list[ProbeCode]:
    """Return the kernels to execute, of each probe that states its function.

    The patched side of every target, unless it is upstream's code that does not convert there. The pristine side of
    one, the RTX PRO 6000's where it is requested, and wherever it is the same code: that shows a mistake in the
    execution itself, and is what others are compared with.
    """
    does = {probe.id: probe.does for probe, _ in compiled.request.probes}
    first = {row.probe: row.arch for row in reversed(rows)}
    reference = first | {row.probe: CARD for row in rows if row.arch == CARD}
    subjects: list[ProbeCode] = []
    for row in rows:
        both: tuple[tuple[SideName, SassListing | None], ...] = (("pristine", row.before), ("patched", row.after))
        for side, listing in both:
            if not listing or not (what := does[row.probe]):
                continue
            same = bool(row.identical)
            converts = 100 * row.arch.major + 10 * row.arch.minor >= what.pristine_from
            shown = converts and (same or row.arch == reference[row.probe])
            if shown or (side == "patched" and (converts or not same)):
                cubin = compiled.side(row.probe, row.arch, side).content
                kept = promise if side == "patched" and not same else Promise.EXACT_BUT_NAN_SIGN
                subjects.append(ProbeCode(row.probe, what, row.arch, side, cubin, listing, kept))
    return subjects


def _checks_with_other_flags(
    compiled: CompiledProbes, rows: Sequence[ProbeResult], promise: Promise, *, execute_too: bool
) -> Checks:
    """Check that other flags of the compiler do not change what the patched probes give.

    Code that is not the same is executed with chosen inputs, if ``execute_too``; else it is not checked. With fast
    mathematics, kernels that scale blocks are not: there upstream's own arithmetic of scales is another.
    """
    does = {probe.id: probe.does for probe, _ in compiled.request.probes}
    left_alone = {(row.probe, row.arch) for row in rows if row.identical}
    changed: dict[ProbeCode, Configured] = {}
    checks: Checks = {}

    def add(code: Configured, holds: object, detail: str) -> None:
        rule = f"right with {' '.join(code.flags)}"
        check = Check(rule, "a build may be configured so", verdict_on(holds), detail)
        checks.setdefault((code.probe, code.arch), []).append(check)

    for code in compiled.configured:
        what = does[code.probe]
        built = code.built
        if isinstance(what, Quantizes) and FAST in code.flags and not (code.same or built.error):
            continue
        if built.listing and not code.same and what and execute_too:
            sampled = replace(what, sampled=True) if isinstance(what, Executes) else what
            kept = Promise.EXACT_BUT_NAN_SIGN if (code.probe, code.arch) in left_alone else promise
            changed[ProbeCode(code.probe, sampled, code.arch, "patched", built.content, built.listing, kept)] = code
        elif code.same or built.error:
            add(code, code.same, "the same code" if code.same else built.error.splitlines()[0])
    subjects = _subjects(compiled, rows, promise)
    upstreams = [code for code in subjects if code.side == "pristine" and not isinstance(code.does, Executes)]
    for code, run in zip(changed.values(), _execute(compiled, [*changed, *upstreams]), strict=False):
        add(code, not run.verdict.failed, f"other code, executed: {summary(run)}")
    return checks
