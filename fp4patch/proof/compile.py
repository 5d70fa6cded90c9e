"""Compile every probe from two views of a tree, and judge what became of its machine code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Rule
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.problem import Problem
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.verdict import Verdict, overall
from fp4patch.proof import sass
from fp4patch.proof.cache import Cache
from fp4patch.proof.diff import compare
from fp4patch.proof.disassemble import disassemble
from fp4patch.proof.instruction import SassListing
from fp4patch.proof.judge import concerns, judge, unjudged
from fp4patch.proof.probe import Compiled, Compiler, together
from fp4patch.proof.result import Check, ProbeResult
from fp4patch.proof.source_lines import SourceLines
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side, SourceView

_COMPILES = "compiles, host code included"


@dataclass(frozen=True)
class Verification:
    """Results of the probes, and the failures beside them."""

    results: tuple[ProbeResult, ...]
    """Results probe by probe, each with the architectures in the requested order."""
    problems: tuple[Problem, ...]
    cubins: Mapping[tuple[str, Arch, str], bytes]
    """Disassembled cubins by probe, architecture and side: ``pristine`` or ``patched``."""
    objects: Mapping[tuple[str, Arch], bytes] = field(default_factory=dict)
    """Object files of the patched HOST probes by probe and architecture."""
    configured: tuple[Configured, ...] = ()
    """The patched probes, compiled with other flags."""
    lines: Mapping[tuple[str, Arch], SourceLines] = field(default_factory=dict)
    """Lines of the patched probes in the watched files, by probe and architecture; of HOST probes not known."""


@dataclass(frozen=True)
class Configured:
    """A patched probe as a build with other flags compiles it."""

    probe: str
    arch: Arch
    flags: tuple[str, ...]
    same: bool
    """Its code is the same as with the usual flags."""
    cubin: bytes
    listing: SassListing | None
    error: str


FAST = "-use_fast_math"
CONFIGURATIONS = (("-DNDEBUG", "-std=c++20"), ("-rdc=true",), (FAST,), ("-O1",))
"""Flags that builds set, and that must not change what a conversion gives."""


@dataclass(frozen=True)
class _Built:
    """One probe, architecture and side: the listing, or why there is none."""

    listing: SassListing | None = None
    cubin: bytes = b""
    error: str = ""
    unsupported: bool = False
    cached: bool = False
    lines: SourceLines = field(default_factory=SourceLines)


def verify(
    *,
    before: SourceView,
    after: SourceView,
    target: Target,
    probes: Sequence[tuple[Probe, Path]],
    rules: Sequence[Rule],
    archs: Sequence[Arch],
    toolchain: Toolchain,
    headers: Mapping[str, Sequence[Path]] | None = None,
    aside: Sequence[Probe] = (),
    builds: bool = False,
    jobs: int | None = None,
    cache: Path | None = None,
    configured: Sequence[Arch] = (),
    every: bool = False,
    also: bool = False,
    watched: Iterable[str] = (),
    progress: OnProgress = silent,
) -> Verification:
    """Compile each probe (with its source file) for each architecture from both views, compare, and judge.

    ``headers`` are the include directories of what probes use in earnest, by name. ``aside`` are probes that have
    nothing to show on this tree: a rule that applies to them alone has nothing to judge, and is no mistake.
    With ``builds`` the tree's own build was evaluated, and a target without probes is no mistake either.
    ``configured`` are targets for which the patched probes are compiled with each of CONFIGURATIONS too: those that are
    compiled together, or ``every`` one. With ``also``, probes are compiled for further targets of their own.
    ``watched`` are files of the tree of which the result has the lines that were compiled. ``jobs`` compilers run at a
    time, by default one for each processor that this process may use. ``cache`` is a directory for results of unchanged
    compilations; None for none. ``progress`` is called in this thread. A probe that does not compile or whose code is
    not understood is a failed result. An exception, KeyboardInterrupt too, ends every compiler that still runs.
    """
    kept = Cache(cache) if cache else None
    runner = Runner(toolchain.environ)
    with tempfile.TemporaryDirectory(prefix="fp4patch-verify-") as scratch:
        sides = {
            "pristine": Side(before, target, _folder(scratch, "pristine")),
            "patched": Side(after, target, _folder(scratch, "patched"), watched),
        }
        builder = _Builder(Compiler(toolchain, target, runner, kept, headers), toolchain, runner, kept)
        targets = {probe.id: probe.targets(archs, also=also) for probe, _ in probes}
        compiled = [(probe, source, arch) for probe, source in probes for arch in targets[probe.id]]
        tasks = [
            (unit, arch, side)
            for whole in _units(probes)
            for arch in dict.fromkeys(arch for one in targets.values() for arch in one)
            if (unit := [(probe, source) for probe, source in whole if arch in targets[probe.id]])
            # Host code has nothing to be compared with: the pristine side only matters if the patched one fails.
            for side in (["patched"] if unit[0][0].kind is ProbeKind.HOST else sides)
        ]
        built: dict[tuple[str, Arch, str], _Built] = {}
        progress(Step(0, len(tasks), ""))
        with ThreadPoolExecutor(max_workers=max(1, jobs or processors())) as pool:
            try:
                futures: dict[Future[list[_Built]], tuple[_Unit, Arch, str]] = {
                    pool.submit(builder.build_all, unit, arch, sides[side]): (unit, arch, side)
                    for unit, arch, side in tasks
                }
                for done, future in enumerate(as_completed(futures), start=1):
                    unit, arch, side = futures[future]
                    for (probe, _), one in zip(unit, future.result(), strict=True):
                        built[probe.id, arch, side] = one
                    name = unit[0][0].id + (f" and {len(unit) - 1} more" if len(unit) > 1 else "")
                    cached = all(one.cached for one in future.result())
                    progress(Step(done, len(tasks), f"{name} {arch} {side}", cached=cached))
                broken = [
                    (probe, source, arch)
                    for probe, source, arch in compiled
                    if probe.kind is ProbeKind.HOST and built[probe.id, arch, "patched"].error
                ]
                for probe, source, arch in broken:
                    built[probe.id, arch, "pristine"] = builder.build(probe, source, arch, sides["pristine"])
                otherwise = [
                    pool.submit(builder.configured, unit, arch, sides["patched"], flags, built)
                    for whole in _units(probes)
                    if whole[0][0].kind is ProbeKind.SASS and (len(whole) > 1 or every)
                    for arch in configured
                    if (unit := [(probe, source) for probe, source in whole if arch in targets[probe.id]])
                    for flags in CONFIGURATIONS
                ]
                found = tuple(one for future in otherwise for one in future.result())
            except BaseException:
                runner.stop()
                pool.shutdown(cancel_futures=True)
                raise

    results = tuple(
        _result(
            probe,
            arch,
            built.get((probe.id, arch, "pristine"), _Built()),
            built[probe.id, arch, "patched"],
            [rule for rule in rules if concerns(rule, probe, arch)],
        )
        for probe, _, arch in compiled
    )
    return Verification(
        results,
        unjudged(rules, [(probe, arch) for probe, _, arch in compiled], archs, aside, builds=builds),
        {name: one.cubin for name, one in built.items() if one.listing},
        {
            (probe.id, arch): built[probe.id, arch, "patched"].cubin
            for probe, _, arch in compiled
            if probe.kind is ProbeKind.HOST
        },
        found,
        {(probe, arch): one.lines for (probe, arch, side), one in built.items() if one.listing and side == "patched"},
    )


def refusals(
    probe: Probe,
    source: Path,
    arch: Arch,
    views: Sequence[SourceView],
    *,
    target: Target,
    toolchain: Toolchain,
    headers: Mapping[str, Sequence[Path]],
) -> tuple[str, ...]:
    """Return the compiler's message where it refuses a probe, for each view of the tree; empty where it does not."""
    compiler = Compiler(toolchain, target, Runner(toolchain.environ), None, headers)
    with tempfile.TemporaryDirectory(prefix="fp4patch-verify-") as scratch:
        sides = [Side(view, target, _folder(scratch, str(number))) for number, view in enumerate(views)]
        made = [compiler.compile(probe, source, arch, side) for side in sides]
    return tuple(one.log if one.failed and not one.unsupported else "" for one in made)


_Unit = list[tuple[Probe, Path]]
"""Probes that are compiled by one run of the compiler."""


def _units(probes: Sequence[tuple[Probe, Path]]) -> list[_Unit]:
    """Return the probes in their order; those of a patch that are marked ``together`` at the first one's position."""
    units: dict[object, _Unit] = {}
    for probe, source in probes:
        alone = not probe.together or probe.kind is not ProbeKind.SASS
        name: object = probe.id if alone else (probe.patch, probe.together, probe.include, probe.uses)
        units.setdefault(name, []).append((probe, source))
    return list(units.values())


def _same(kernel: str, one: _Built, other: _Built) -> bool:
    assert one.listing
    return sass.same_code(kernel, one.listing, one.cubin, other.cubin)


def _result(probe: Probe, arch: Arch, before: _Built, after: _Built, rules: Sequence[Rule]) -> ProbeResult:
    diff = compare(before.listing, after.listing) if before.listing and after.listing else None
    verdict, checks, error = Verdict.FAIL, tuple[Check, ...](), after.error
    nothing = "without machine code nothing can be judged"
    if after.unsupported:
        verdict = Verdict.UNSUPPORTED
        checks = (Check("this compiler supports the architecture", nothing, verdict, "no"),)
    elif after.error:
        found = "no, and the pristine source neither" if before.error else "no, though the pristine source does"
        checks = (Check("compiles", nothing, verdict, found),)
    elif probe.kind is ProbeKind.HOST:
        verdict = Verdict.PASS
        checks = (Check(_COMPILES, "every file that includes the header compiles it", verdict, "yes"),)
    else:
        assert after.listing is not None
        checks = judge(rules, after.listing, diff)
        verdict, error = overall(check.verdict for check in checks), before.error
    return ProbeResult(
        probe=probe.id,
        title=probe.title,
        arch=arch,
        kind=probe.kind,
        verdict=verdict,
        before=before.listing,
        after=after.listing,
        diff=diff,
        checks=checks,
        error=error,
        cached=after.cached and (before.cached or probe.kind is ProbeKind.HOST),
    )


class _Builder:
    """Compiles, disassembles and parses: one call for each probe, architecture and side."""

    def __init__(self, compiler: Compiler, toolchain: Toolchain, runner: Runner, cache: Cache | None) -> None:
        self._compiler = compiler
        self._toolchain = toolchain
        self._runner = runner
        self._cache = cache

    def configured(
        self, unit: _Unit, arch: Arch, side: Side, flags: tuple[str, ...], usual: Mapping[tuple[str, Arch, str], _Built]
    ) -> list[Configured]:
        """Return the probes compiled with other flags; none if one did not compile with the usual ones."""
        known = {probe.id: usual[probe.id, arch, "patched"] for probe, _ in unit}
        if not all(one.listing for one in known.values()):
            return []
        found = self.build_all(unit, arch, side, flags)
        names = {p.id: sass.kernel_of(p.id, sass.functions(known[p.id].cubin)) for p, _ in unit}
        return [
            Configured(
                probe.id,
                arch,
                flags,
                bool(one.listing) and _same(names[probe.id], known[probe.id], one),
                one.cubin,
                one.listing,
                one.error,
            )
            for (probe, _), one in zip(unit, found, strict=True)
        ]

    def build_all(self, unit: _Unit, arch: Arch, side: Side, more: Sequence[str] = ()) -> list[_Built]:
        """Return the probes of a translation unit; each alone if they do not compile together: none hides others."""
        if len(unit) > 1:
            first, source = unit[0]
            every = replace(first, defines={})
            compiled = self._compiler.compile(every, source, arch, side, together(unit), more)
            if not compiled.failed:
                try:
                    return self._listed(unit, arch, compiled)
                except ProofError:
                    pass  # compiled alone, each reports its own error
        return [self.build(probe, source, arch, side, more) for probe, source in unit]

    def _listed(self, unit: _Unit, arch: Arch, compiled: Compiled) -> list[_Built]:
        cubin = compiled.content
        text = disassemble(cubin, toolchain=self._toolchain, runner=self._runner, cache=self._cache)
        sass.check_whole(text, cubin)
        names = [sass.kernel_of(probe.id, ()) for probe, _ in unit]
        listings = sass.parse_several(text, arch=arch, log=compiled.log, cubin=cubin, kernels=names)
        return [_Built(listings[name], cubin, cached=compiled.cached, lines=compiled.lines.of(name)) for name in names]

    def build(self, probe: Probe, source: Path, arch: Arch, side: Side, more: Sequence[str] = ()) -> _Built:
        compiled = self._compiler.compile(probe, source, arch, side, more=more)
        if compiled.failed:
            return _Built(error=compiled.log, unsupported=compiled.unsupported)
        if probe.kind is ProbeKind.HOST:
            return _Built(cubin=compiled.content, cached=compiled.cached)
        try:
            whole_unit = probe.kind is ProbeKind.UNIT or sass.has_subroutines(compiled.content)
            read = sass.parse_unit if whole_unit else sass.parse
            text = disassemble(compiled.content, toolchain=self._toolchain, runner=self._runner, cache=self._cache)
            sass.check_whole(text, compiled.content)
            listing = read(
                text,
                arch=arch,
                registers=sass.registers(compiled.log, whole_unit=whole_unit),
                code_sha256=sass.code_digest(compiled.content, whole_unit=whole_unit),
            )
        except ProofError as error:
            # One probe that is not understood must not hide what the others came to.
            return _Built(cubin=compiled.content, error=f"{error.message}\n{error.help}", cached=compiled.cached)
        return _Built(listing, compiled.content, cached=compiled.cached, lines=compiled.lines)


def _folder(parent: str, name: str) -> Path:
    folder = Path(parent) / name
    folder.mkdir()
    return folder
