"""``fp4patch verify``: does the machine code of the patched tree satisfy the variant's rules?

The tree must be in the variant's state, byte for byte. What is looked at is read once (``Subject``); its probes are
compiled from it and from its pristine bytes, and executed (``Evidence``); then each of ``CHECKS`` judges one thing, and
the verdict is made of what they found (``result.py``). A probe that has nothing to show on this release, or that takes
headers that are not at hand, is set aside, and the report states this.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import ALONE, Catalog, load
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GB10, Arch, requested
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.results import Problem
from fp4patch.core.store import Store, cache_dir
from fp4patch.core.wording import counted
from fp4patch.edits.language import language
from fp4patch.proof import builds, conditions, dependence, execute, judge
from fp4patch.proof.compile import compile_probes
from fp4patch.proof.counts import file_of, recorded
from fp4patch.proof.coverage import LEFT_OUT_HERE, LineSpan, coverage, coverage_of, lines_of_each
from fp4patch.proof.evidence import Evidence, Judge, OnRow
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.layers import execute_layers
from fp4patch.proof.result import Check, ProbeResult, SetAside, VerifyReport
from fp4patch.proof.subject import Means, Probes, Subject, fold, must_be_unchanged, named
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.proof.view import nothing_to_show
from fp4patch.tree.locking import locked

CHECKS: tuple[Judge, ...] = (
    judge.by_rules,
    judge.by_counts,
    judge.by_effects,
    execute.by_execution,
    execute.with_other_flags,
    judge.missing,
    dependence.unvaried,
)
"""All that is judged, in the order of the report. What the tree's own build gives has its verdicts with it."""


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """What the user asked for, as the command line gives it; the help texts of its options explain each."""

    variant: str | None = None
    """None: the one that the trees' receipts name."""
    archs: str | None = None
    """``sm_120a,sm_121a``; None: the variant's own."""
    torch_include: Path | None = None
    jobs: int | None = None
    """Compilations, or threads of a sweep, at a time; None: one for each core."""
    execute: bool = True
    """Execute the machine code on the host."""
    every_probe: bool = False
    layers: bool = False
    """Execute the layers of the patches."""
    strict: bool = False
    """A changed line that no check judges is a failure."""


def verify_trees(trees: Sequence[Path], request: VerifyRequest, *, on_progress: OnProgress) -> tuple[VerifyReport, ...]:
    """Return a report for each tree. Refused if one is not in the variant's state; ToolchainError if no compiler."""
    catalog = load()
    identified = identify_all(trees, catalog)
    name = request.variant or _applied_variant(identified)
    if name == ALONE:
        raise UsageError(
            "the patches of --with are applied alone, and only variants have code that is checked",
            help="`fp4patch apply --with DIR --variant NAME TREE` applies one behind them; then verify the tree",
        )
    variant = catalog.variant(name)
    own = ",".join(variant.arch)
    archs = requested(request.archs or own, f"variant {variant.name} is for {own}")
    toolchain = find_toolchain()
    means = Means(store=Store(cache_dir() / "compilations"), jobs=request.jobs, progress=on_progress)
    reports = []
    for tree in identified:
        began = time.monotonic()
        beside = {one.target.name: [one.root / folder for folder in one.target.include] for one in identified}
        subject = _subject(tree, request, catalog, variant, archs, toolchain, beside)
        evidence = _evidence(subject, means, is_executed=request.execute)
        reports.append(report(evidence, began, strict=request.strict))
    return tuple(reports)


def _applied_variant(trees: Sequence[Identified]) -> str:
    """Return the variant that all receipts of the trees name; UsageError if they name none, or several."""
    with locked(trees) as every:
        names = {tree.receipt.variant for tree in every if tree.receipt}
    if len(names) == 1:
        return names.pop()
    found = f"these trees have several: {', '.join(sorted(names))}" if names else "no tree here has a receipt"
    raise UsageError(f"which variant? {found}", help="name it with --variant, after `fp4patch apply`")


def _subject(
    tree: Identified,
    request: VerifyRequest,
    catalog: Catalog,
    variant: Variant,
    archs: tuple[Arch, ...],
    toolchain: Toolchain,
    beside: Mapping[str, Sequence[Path]],
) -> Subject:
    """Return what is to be looked at in a tree, with the include directories of all trees. Refused if it is not in the
    variant's state."""
    torch = request.torch_include.resolve() if request.torch_include else None
    headers = {**beside, **({"torch": (torch, torch / "torch/csrc/api/include")} if torch else {})}
    records = recorded(file_of(variant.name))
    folded = fold(tree, catalog, variant)
    every = catalog.probes_of(variant, tree.target.name)
    if folded.exported:
        every = tuple((probe.in_upstreams_names(tree.target.name), source) for probe, source in every)
    why = [nothing_to_show(probe, folded.pristine, headers, every_probe=request.every_probe) for probe, _ in every]
    layers = catalog.layers_of(variant, tree.target.name) if request.layers else ()
    not_run = [nothing_to_show(layer.unit, folded.pristine, headers) for layer, _ in layers]
    return Subject(
        tree=tree,
        folded=folded,
        variant=variant,
        patches=catalog.patches_of(variant, tree.target.name),
        probes=Probes(
            ran=[found for found, because in zip(every, why, strict=True) if not because],
            aside=[(probe, because) for (probe, _), because in zip(every, why, strict=True) if because],
            archs=archs,
            own_targets=request.archs is None,
            configured=sorted(archs, key=lambda arch: arch.gpu != GB10)[: None if request.every_probe else 1],
            every=request.every_probe,
        ),
        layers=[found for found, because in zip(layers, not_run, strict=True) if not because],
        layers_aside=[(layer.unit, because) for (layer, _), because in zip(layers, not_run, strict=True) if because],
        toolchain=toolchain,
        headers=headers,
        records=records,
    )


def _evidence(subject: Subject, means: Means, *, is_executed: bool) -> Evidence:
    """Evaluate, compile and execute. Refused if the tree was changed meanwhile."""
    means.progress(Step(0, None, f"evaluating the build of {subject.tree.target.name}"))
    built = builds.evaluate(subject.pristine, subject.tree, subject.patches, means.store)
    means.progress(Step(0, None, "reading the probes' headers"))
    held, cuts = conditions.evaluate(
        subject.pristine.overlay, subject.written, subject.patches, subject.toolchain, means.store
    )
    kept, aside = conditions.evaluate_idle(subject.folded.idle, subject.toolchain, means.store)
    compiled = compile_probes(subject, means)
    executed = execute.execute_probes(subject, compiled, means) if is_executed else Executed(())
    configured = execute.execute_configured(subject, compiled, means) if is_executed else ()
    layers = execute_layers(subject, means)
    must_be_unchanged(subject)
    return Evidence(
        subject=subject,
        compiled=compiled,
        executed=executed,
        configured=configured,
        layers=layers,
        built=built,
        conditions=[*held, *kept],
        idle=aside,
        cuts=cuts,
    )


def report(evidence: Evidence, began: float, *, strict: bool = False) -> VerifyReport:
    """Return the report on a subject whose verification began at this time of the monotonic clock.

    ``strict``: a changed line that nothing judged is a problem, but for those of targets that were not asked for.
    """
    checks: dict[tuple[str, Arch], list[Check]] = {(pair.probe.id, pair.arch): [] for pair in evidence.compiled.pairs}
    problems: list[Problem] = []
    for check in CHECKS:
        for found in check(evidence):
            if isinstance(found, OnRow):
                checks[found.probe, found.arch].append(found.check)  # each has its row: none is lost
            else:
                problems.append(found)
    results = (*judge.rows(evidence, checks), *evidence.layers)
    subject, compiled = evidence.subject, evidence.compiled
    folded = subject.folded
    every_target = {*subject.variant.arch} <= {str(arch) for arch in subject.probes.archs}
    covered = coverage(
        folded.with_diffs,
        folded.written,
        compiled.lines,
        _judged(evidence, results),
        {
            **_lines_of_conditions(evidence.cuts),
            **_lines_of_builds(subject, evidence.built),
        },
        _loose(evidence),
        every_target=every_target,
    )
    if strict:
        problems += map(_unjudged, (span for span in covered.unjudged if span.because != LEFT_OUT_HERE))
    return VerifyReport(
        variant=subject.variant.name,
        target=subject.tree.target.name,
        version=str(subject.tree.version or ""),
        tree=str(subject.tree.root),
        patches=folded.applied,
        arch=tuple(subject.probes.archs),
        toolchain=subject.toolchain.info,
        results=results,
        problems=tuple(problems),
        seconds=round(time.monotonic() - began, 3),
        fp4patch=__version__,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        set_aside=(
            *(SetAside(one.id, because) for one, because in (*subject.probes.aside, *subject.layers_aside)),
            *evidence.built.aside,
            *evidence.idle,
        ),
        builds=evidence.builds,
        executed=evidence.executed,
        coverage=covered,
        unasked=_unasked(subject),
        diffs=folded.diffs,
        diff_lines={
            name: coverage_of(
                lines,
                folded.written,
                compiled.lines,
                _judged(evidence, results),
                _lines_of_conditions(evidence.cuts),
                _loose(evidence),
                every_target=every_target,
            )
            for name, lines in lines_of_each(folded.pristine.overlay, folded.states, folded.written).items()
            if name in folded.diffs
        },
        cubins=compiled.cubins,
    )


def _unasked(subject: Subject) -> str:
    """Return what was not checked since the command named targets; empty if it named none."""
    if subject.probes.own_targets:
        return ""
    return "--arch leaves out the check that conditions on targets are varied"


def _unjudged(span: LineSpan) -> Problem:
    return Problem(
        file=span.file,
        line=span.first,
        expected="a check of each changed line, as --strict asks",
        found=f"none of {counted(len(span), 'line')}: {span.because}",
        help="give the patch a probe that has them, or verify without --strict",
    )


def _judged(evidence: Evidence, results: Sequence[ProbeResult]) -> set[tuple[str, Arch]]:
    """Return the probes whose patched code was executed, or has the same bytes as upstream's, by target.

    Rules and counts bound what is in the code of the others, and say nothing of what it computes.
    """
    ran = {(run.probe, run.arch) for run in evidence.executed.executions if run.side == "patched" and run.ran.inputs}
    same = {(row.probe, row.arch) for row in results if row.checks and row.identical}
    return evidence.compiled.lines.keys() & (same | ran)


def _lines_of_conditions(cuts: Sequence[conditions.Cut]) -> dict[str, Sequence[range]]:
    return {path: [span for cut in cuts if cut.path == path for span in cut.after] for path in {c.path for c in cuts}}


def _loose(evidence: Evidence) -> dict[str, set[int]]:
    """Return the lines of each file that every condition or evaluation of the build that runs them found loose."""
    looked: list[tuple[str, Sequence[range], frozenset[int]]] = [
        (cut.path, cut.after, cut.loose) for cut in evidence.cuts
    ]
    executed = _lines_of_builds(evidence.subject, evidence.built)
    looked += [(path, spans, evidence.built.loose.get(path, frozenset())) for path, spans in executed.items()]
    tight = {(path, line) for path, spans, loose in looked for span in spans for line in span if line not in loose}
    found: dict[str, set[int]] = {}
    for path, _, loose in looked:
        found.setdefault(path, set()).update(line for line in loose if (path, line) not in tight)
    return found


def _lines_of_builds(subject: Subject, evaluated: builds.Evaluated) -> dict[str, Sequence[range]]:
    """Return the lines that were executed of each file of a build that was evaluated for each patch that changed it."""
    patches, authors = subject.patches, subject.folded.authors
    checks = {result.check for result in evaluated.results}
    built = {
        named(patch) for patch in patches if any(builds.check_id(patch, check) in checks for check in patch.builds)
    }
    of_builds = [path for path in authors if built.issuperset(authors[path]) and language(path) in ("cmake", "python")]
    texts = {path: (subject.written.get(path) or b"").decode("utf-8", "replace") for path in of_builds}
    return {path: builds.executed_lines(path, text, evaluated.ran.get(path, ())) for path, text in texts.items()}
