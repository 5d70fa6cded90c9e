"""``fp4patch verify``: does the machine code of the patched tree satisfy the variant's rules?

The tree must be in the variant's state, byte for byte; then its probes are compiled from it and from its pristine
bytes, and judged. A probe that has nothing to show on this release, or that takes headers that are not at hand, is set
aside, and the report states this.
"""

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import ProbeKind
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GB10, Arch, requested
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.store import Store, cache_dir
from fp4patch.edits.language import language
from fp4patch.proof import builds, conditions
from fp4patch.proof.compile import CompileRequest, compile_probes
from fp4patch.proof.counts import file_of, recorded
from fp4patch.proof.coverage import coverage
from fp4patch.proof.dependence import dependencies
from fp4patch.proof.execute import execute_probes
from fp4patch.proof.execution.result import Executed
from fp4patch.proof.judge import judged, unjudged
from fp4patch.proof.result import ProbeResult, SetAside, VerifyReport
from fp4patch.proof.source_lines import SourceLines
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.proof.view import SourceView, nothing_to_show
from fp4patch.tree import status
from fp4patch.tree.fold import fold_tree
from fp4patch.tree.locked import locked


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


def verify_trees(trees: Sequence[Path], request: VerifyRequest, *, on_progress: OnProgress) -> tuple[VerifyReport, ...]:
    """Return a report for each tree. Refused if one is not in the variant's state; ToolchainError if no compiler."""
    catalog = load()
    identified = identify_all(trees, catalog)
    variant = catalog.variant(request.variant or _applied_variant(identified))
    own = ",".join(variant.arch)
    archs = requested(request.archs or own, f"variant {variant.name} is for {own}")
    toolchain = find_toolchain()
    return tuple(_verify_tree(tree, request, catalog, variant, archs, toolchain, on_progress) for tree in identified)


def _applied_variant(trees: Sequence[Identified]) -> str:
    """Return the variant that all receipts of the trees name; UsageError if they name none, or several."""
    with locked(trees) as every:
        names = {tree.receipt.variant for tree in every if tree.receipt}
    if len(names) == 1:
        return names.pop()
    found = f"these trees have several: {', '.join(sorted(names))}" if names else "no tree here has a receipt"
    raise UsageError(f"which variant? {found}", help="name it with --variant, after `fp4patch apply`")


def _verify_tree(
    tree: Identified,
    request: VerifyRequest,
    catalog: Catalog,
    variant: Variant,
    archs: tuple[Arch, ...],
    toolchain: Toolchain,
    progress: OnProgress,
) -> VerifyReport:
    began = time.monotonic()
    torch = request.torch_include.resolve() if request.torch_include else None
    headers = {"torch": (torch, torch / "torch/csrc/api/include")} if torch else {}
    records = recorded(file_of(variant.name))
    folded = _folded(tree, catalog, variant)
    pristine, written = folded.pristine, folded.written
    probes = catalog.probes_of(variant, tree.target.name)
    every = [probe for probe, _ in probes]
    aside = {
        probe.id: SetAside(probe.id, because)
        for probe in every
        if (because := nothing_to_show(probe, pristine, headers, every_probe=request.every_probe))
    }
    patches = catalog.patches_of(variant, tree.target.name)
    progress(Step(0, None, f"evaluating the build of {tree.target.name}"))
    evaluated = builds.evaluate(pristine, tree, patches)
    progress(Step(0, None, "reading the probes' headers"))
    held, cuts = conditions.evaluate(pristine.overlay, written, patches, toolchain)
    evaluations = (*evaluated.results, *held)
    changed = [path for path, new in written.items() if new is not None and new != pristine.overlay[path]]
    compiled = compile_probes(
        CompileRequest(
            before=pristine,
            after=SourceView(tree.root),
            target=tree.target,
            probes=[(probe, source) for probe, source in probes if probe.id not in aside],
            archs=archs,
            toolchain=toolchain,
            headers=headers,
            own_targets=request.archs is None,
            configured=sorted(archs, key=lambda arch: arch.gpu != GB10)[: None if request.every_probe else 1],
            configure_all=request.every_probe,
            watched=changed,
            jobs=request.jobs,
            store=Store(cache_dir() / "compilations"),
            progress=progress,
        )
    )
    rules = [rule for rule in variant.rules if rule.speaks_of(tree.target.name)]
    set_aside = [probe for probe in every if probe.id in aside]
    problems = unjudged(rules, compiled.pairs, archs, set_aside, builds=bool(evaluations))
    rows = judged(compiled, rules, records)
    results, executed = execute_probes(compiled, rows, variant.promise, execute=request.execute)
    _must_be_unchanged(tree, written)
    seen = {result.arch for result in results if result.after} if request.archs is None else set[Arch]()
    depends = dependencies(tree.root, tree.target, folded.with_diffs, written, every, seen, cuts)
    lines = coverage(
        folded.with_diffs,
        written,
        compiled.lines,
        _judged(compiled.lines, results, executed),
        {**_lines_of_conditions(cuts), **_lines_of_builds(patches, evaluated, folded.authors)},
    )
    return VerifyReport(
        variant=variant.name,
        target=tree.target.name,
        version=str(tree.version or ""),
        tree=str(tree.root),
        patches=folded.applied,
        arch=archs,
        toolchain=toolchain.info,
        results=results,
        problems=(
            # Where the variant changes nothing, that no probe ran is no mistake.
            *(problems if folded.applied or results else ()),
            *depends,
        ),
        seconds=round(time.monotonic() - began, 3),
        fp4patch=__version__,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        set_aside=(*aside.values(), *evaluated.aside),
        builds=evaluations,
        executed=executed,
        coverage=lines,
        diffs=folded.diffs,
        cubins=compiled.cubins,
    )


def _judged(
    made: Mapping[tuple[str, Arch], SourceLines], results: Sequence[ProbeResult], executed: Executed
) -> set[tuple[str, Arch]]:
    """Return the probes whose machine code was judged, by target; a HOST probe only if its code was executed."""
    ran = {(run.probe, run.arch) for run in executed.executions if run.ran.inputs}
    checked = {(row.probe, row.arch) for row in results if row.checks and row.kind is not ProbeKind.HOST}
    return made.keys() & (checked | ran)


def _lines_of_conditions(cuts: Sequence[conditions.Cut]) -> dict[str, Sequence[range]]:
    return {path: [span for cut in cuts if cut.path == path for span in cut.after] for path in {c.path for c in cuts}}


def _lines_of_builds(
    patches: Sequence[Patch], evaluated: builds.Evaluated, authors: Mapping[str, Collection[str]]
) -> dict[str, Sequence[range]]:
    """Return all lines of each file of a build that was evaluated for each patch that changed the file."""
    checks = {result.check for result in evaluated.results}
    built = {
        _named(patch) for patch in patches if any(builds.check_id(patch, check) in checks for check in patch.builds)
    }
    of_builds = [path for path in authors if built.issuperset(authors[path]) and language(path) in ("cmake", "python")]
    return {path: [range(1, sys.maxsize)] for path in of_builds}


@dataclass(frozen=True)
class _Folded:
    """The tree with its pristine bytes, and what the variant and the diffs that the tree keeps make of these."""

    pristine: SourceView
    written: Mapping[str, bytes | None]
    with_diffs: Mapping[str, bytes | None]
    """The pristine bytes with the diffs alone, which need no check."""
    applied: tuple[str, ...]
    """Patches that changed something, with their versions."""
    authors: Mapping[str, Collection[str]]
    """Patches of the variant, with their versions, that changed each file."""
    diffs: Mapping[str, int]
    """Number of files that each diff changed."""


def _folded(tree: Identified, catalog: Catalog, variant: Variant) -> _Folded:
    """Return what the variant makes of the tree. Refused: the tree is not in that state."""
    with locked([tree]) as (held,):
        catalog, outside = catalog.including(held.outside), held.outside
        folds, _ = status.folded(held, catalog.variant(variant.name), catalog)
        if folds.problems:
            raise Refused(f"{variant.name} does not fit {tree.root}", problems=folds.problems)
        for path, done in folds.files.items():
            if held.current(path) != done.desired:
                state = held.state(path, done.desired)
                raise Refused(
                    f"{tree.root} is not in the state of {variant.name}: {path} is {state}",
                    help=f"run `fp4patch apply --variant {variant.name} {tree.root}` first",
                )
        overlay = {path: held.pristine(path) for path in folds.files}
        of_diffs = fold_tree(held, "", outside, {}).files if outside else {}
    authors = {path: {*done.patches} for path, done in folds.files.items()}
    changed = {name: sum(name in by for by in authors.values()) for name in map(_named, folds.patches)}
    diffs = {_named(patch): patch.id for patch in outside}
    return _Folded(
        pristine=SourceView(tree.root, overlay),
        written={path: done.desired for path, done in folds.files.items()},
        with_diffs=overlay | {p: done.desired for p, done in of_diffs.items() if done.desired is not None},
        applied=tuple(name for name, files in changed.items() if files),
        authors={path: by - diffs.keys() for path, by in authors.items() if by},
        diffs={diffs[name]: files for name, files in changed.items() if files and name in diffs},
    )


def _named(patch: Patch) -> str:
    return f"{patch.id} {patch.version}"


def _must_be_unchanged(tree: Identified, written: Mapping[str, bytes | None]) -> None:
    """Refused if another program wrote these files since: then the compiled sources are not known."""
    with locked([tree]) as (held,):
        changed = [path for path, content in written.items() if held.current(path) != content]
    if changed:
        raise Refused(
            f"{tree.root} was changed while it was being verified: {', '.join(changed)}",
            help="verify it again when no other process changes it",
        )
