"""Execution of the probes: their machine code runs on the host for every input.

It covers probes whose data states their function. Both sides are executed: the patched one must keep the variant's
promise; the pristine one, and code that the variant leaves as it is, what upstream's own software keeps, so that a
mistake in the execution itself shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fp4patch.catalog.probe import CARD, Executes, ProbeKind, Quantizes
from fp4patch.catalog.rule import Promise
from fp4patch.core.arch import Arch
from fp4patch.core.results import verdict_on
from fp4patch.proof.compile import FAST, CompiledProbes, Configured, Pair
from fp4patch.proof.evidence import Evidence, OnRow
from fp4patch.proof.execution.code import ProbeCode
from fp4patch.proof.execution.executor import execute
from fp4patch.proof.execution.result import Executed, Execution, summary
from fp4patch.proof.result import Check
from fp4patch.proof.subject import Means, Subject


def execute_probes(subject: Subject, compiled: CompiledProbes, means: Means) -> Executed:
    """Return the executions of the probes. Each kernel takes seconds once; then its result is kept."""
    promise = subject.variant.promise
    on_host = [
        ProbeCode(pair.probe.id, pair.probe.executes, pair.arch, "patched", pair.after.content, None, promise)
        for pair in compiled.pairs
        if pair.probe.kind is ProbeKind.HOST and pair.probe.executes and pair.after.content
    ]
    return Executed(_execute(subject, means, [*_codes(compiled.pairs, promise), *on_host]))


def execute_configured(
    subject: Subject, compiled: CompiledProbes, means: Means
) -> tuple[tuple[Configured, Execution], ...]:
    """Return the executions, with chosen inputs, of the probes that other flags make other code of."""
    does = {pair.probe.id: pair.probe.does for pair in compiled.pairs}
    left_alone = {(pair.probe.id, pair.arch) for pair in compiled.pairs if pair.identical}
    changed: dict[ProbeCode, Configured] = {}
    for code in compiled.configured:
        what, built = does[code.probe], code.built
        is_left_out = isinstance(what, Quantizes) and FAST in code.flags
        if what and built.listing and not (code.same or is_left_out):
            sampled = replace(what, sampled=True) if isinstance(what, Executes) else what
            is_upstreams = (code.probe, code.arch) in left_alone
            kept = Promise.EXACT_BUT_NAN_SIGN if is_upstreams else subject.variant.promise
            made = ProbeCode(code.probe, sampled, code.arch, "patched", built.content, built.listing, kept)
            changed[made] = code
    codes = _codes(compiled.pairs, subject.variant.promise)
    upstreams = [code for code in codes if code.side == "pristine" and not isinstance(code.does, Executes)]
    return tuple(zip(changed.values(), _execute(subject, means, [*changed, *upstreams]), strict=False))


def by_execution(evidence: Evidence) -> Iterator[OnRow]:
    """Return the verdict on each execution of a patched side, so that no row passes whose code is wrong.

    Upstream's code has no row of its own: its executions count as they are.
    """
    runs = (run for run in evidence.executed.executions if run.side == "patched")
    return (OnRow(run.probe, run.arch, check_of(run)) for run in runs)


def check_of(run: Execution) -> Check:
    """Return an execution as a check of its row: the code is there, so it is right or it fails."""
    rule, because = "gives what the variant promises", "the machine code was executed"
    return Check(rule, because, verdict_on(not run.verdict.failed), summary(run))


def with_other_flags(evidence: Evidence) -> Iterator[OnRow]:
    """Yield whether other flags of the compiler change what the patched probes give.

    Other code is right if it was executed, and is not checked if it was not. With fast mathematics, kernels that scale
    blocks are not: there upstream's own arithmetic of scales is another.
    """
    for code in evidence.compiled.configured:
        if code.same or code.built.error:
            yield _with_flags(code, code.same, "the same code" if code.same else code.built.error.splitlines()[0])
    for code, run in evidence.configured:
        yield _with_flags(code, not run.verdict.failed, f"other code, executed: {summary(run)}")


def _with_flags(code: Configured, holds: object, detail: str) -> OnRow:
    rule = f"right with {' '.join(code.flags)}"
    return OnRow(code.probe, code.arch, Check(rule, "a build may be configured so", verdict_on(holds), detail))


def _execute(subject: Subject, means: Means, codes: Sequence[ProbeCode]) -> tuple[Execution, ...]:
    return execute(
        codes,
        toolchain=subject.toolchain,
        store=means.store,  # it has the listings of what is executed
        threads=means.jobs,
        progress=means.progress,
    )


def _codes(pairs: Sequence[Pair], promise: Promise) -> list[ProbeCode]:
    """Return the kernels to execute, of each probe that states its function.

    The patched side of every target, unless it is upstream's code that does not convert there. The pristine side of
    one, the RTX PRO 6000's where it is requested, and wherever it is the same code: that shows a mistake in the
    execution itself, and is what others are compared with.
    """
    reference: Mapping[str, Arch] = {
        **{pair.probe.id: pair.arch for pair in reversed(pairs)},
        **{pair.probe.id: CARD for pair in pairs if pair.arch == CARD},
    }
    codes: list[ProbeCode] = []
    for pair in pairs:
        probe = pair.probe
        arch = pair.arch
        same = pair.identical
        if not (does := probe.does):
            continue
        converts = 100 * arch.major + 10 * arch.minor >= does.pristine_from
        if (old := pair.before).listing and converts and (same or arch == reference[probe.id]):
            kept = Promise.EXACT_BUT_NAN_SIGN
            codes.append(ProbeCode(probe.id, does, arch, "pristine", old.content, old.listing, kept))
        if (new := pair.after).listing and (converts or not same):
            kept = Promise.EXACT_BUT_NAN_SIGN if same else promise
            codes.append(ProbeCode(probe.id, does, arch, "patched", new.content, new.listing, kept))
    return codes
