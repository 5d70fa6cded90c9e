"""Implementation of ``verify --execute``: the machine code of the probes runs on the host for every input.

It covers probes whose data states their function. Both sides are executed: the patched one must keep the variant's
promise; the pristine one, and code that the variant leaves as it is, what upstream's own software keeps, so that a
mistake in the execution itself shows.
"""

from collections.abc import Sequence
from dataclasses import replace

from fp4patch.catalog.probe import CARD, Executes, Probe, Quantizes
from fp4patch.catalog.rule import Promise
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.cache import cache_dir
from fp4patch.core.progress import OnProgress
from fp4patch.core.verdict import Verdict, verdict_on
from fp4patch.proof.cache import Cache
from fp4patch.proof.compile import FAST, Configured, Verification
from fp4patch.proof.instruction import SassListing
from fp4patch.proof.lift import host
from fp4patch.proof.lift.execute import Subject, execute
from fp4patch.proof.lift.result import Executed, Side, summary
from fp4patch.proof.result import Check
from fp4patch.proof.toolchain import Toolchain


def run(
    found: Verification,
    probes: Sequence[Probe],
    variant: Variant,
    toolchain: Toolchain,
    *,
    threads: int | None,
    on_progress: OnProgress,
) -> Executed:
    """Execute the machine code that ``verify`` found. Each kernel takes seconds once; then its result is cached."""
    folder = cache_dir() / "executions"
    executed = execute(
        subjects(found, probes, variant), toolchain=toolchain, cache=folder, threads=threads, progress=on_progress
    )
    does = {probe.id: probe.executes for probe in probes}
    on_host = tuple(
        host.execute(probe, arch, what, variant.promise, content, toolchain=toolchain, cache=Cache(folder))
        for (probe, arch), content in found.objects.items()
        if content and (what := does[probe])
    )
    return replace(executed, executions=(*executed.executions, *on_host))


def subjects(found: Verification, probes: Sequence[Probe], variant: Variant) -> list[Subject]:
    """Return the kernels to execute, of each probe that states its function.

    The patched side of every target, unless it is upstream's code that does not convert there. The pristine side of
    one, the RTX PRO 6000's where it is requested, and wherever it is the same code: that shows a mistake in the
    execution itself, and is what others are compared with.
    """
    compiled: dict[str, list[Arch]] = {}
    for result in found.results:
        compiled.setdefault(result.probe, []).append(result.arch)
    does = {probe.id: probe.does for probe in probes}
    found_code: list[Subject] = []
    for result in found.results:
        both: tuple[tuple[Side, SassListing | None], ...] = (("pristine", result.before), ("patched", result.after))
        for side, listing in both:
            if not listing or not (what := does[result.probe]):
                continue
            same = bool(result.diff and result.diff.identical)
            converts = 100 * result.arch.major + 10 * result.arch.minor >= what.pristine_from
            archs = compiled[result.probe]
            compared = converts and (same or result.arch == (CARD if CARD in archs else archs[0]))
            if compared or (side == "patched" and (converts or not same)):
                cubin = found.cubins[result.probe, result.arch, side]
                ours = side == "patched" and not same
                promise = variant.promise if ours else Promise.EXACT_BUT_NAN_SIGN
                found_code.append(Subject(result.probe, what, result.arch, side, cubin, listing, promise))
    return found_code


def configured(
    found: Verification, probes: Sequence[Probe], variant: Variant, toolchain: Toolchain, *, execute_too: bool
) -> dict[tuple[str, Arch], list[Check]]:
    """Check that other flags of the compiler do not change what the patched probes give.

    Code that is not the same is executed with chosen inputs, if ``execute_too``; else it is not checked. With fast
    mathematics, kernels that scale blocks are not: there upstream's own arithmetic of scales is another.
    """
    does = {probe.id: probe.does for probe in probes}
    left_alone = {(one.probe, one.arch) for one in found.results if one.diff and one.diff.identical}
    changed: dict[Subject, Configured] = {}
    checks: dict[tuple[str, Arch], list[Check]] = {}
    for one in found.configured:
        what = does[one.probe]
        if isinstance(what, Quantizes) and FAST in one.flags and not (one.same or one.error):
            continue
        if one.listing and not one.same and what and execute_too:
            sampled = replace(what, sampled=True) if isinstance(what, Executes) else what
            alone = (one.probe, one.arch) in left_alone
            promise = Promise.EXACT_BUT_NAN_SIGN if alone else variant.promise
            subject = Subject(one.probe, sampled, one.arch, "patched", one.cubin, one.listing, promise)
            changed[subject] = one
        elif one.same or one.error:
            said = "the same code" if one.same else one.error.splitlines()[0]
            checks.setdefault((one.probe, one.arch), []).append(_configuration(one, verdict_on(one.same), said))
    executed = execute(list(changed), toolchain=toolchain, cache=cache_dir() / "executions").executions
    for one, execution in zip(changed.values(), executed, strict=True):
        verdict, said = verdict_on(not execution.verdict.failed), f"other code, executed: {summary(execution)}"
        checks.setdefault((one.probe, one.arch), []).append(_configuration(one, verdict, said))
    return checks


def _configuration(one: Configured, verdict: Verdict, said: str) -> Check:
    return Check(f"right with {' '.join(one.flags)}", "a build may be configured so", verdict, said)
