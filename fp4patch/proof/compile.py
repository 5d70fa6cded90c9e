"""Compile every probe from two views of a tree, and parse the machine code."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import Store
from fp4patch.proof import machine_code
from fp4patch.proof.probe import Compilation, Compiler, together
from fp4patch.proof.source_lines import SourceLines
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side, SideName, SourceView
from fp4patch.sass.error import SassError
from fp4patch.sass.text import functions

SIDES: tuple[SideName, ...] = ("pristine", "patched")


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """What to compile, from which two views of a tree, and with what."""

    before: SourceView
    after: SourceView
    target: Target
    probes: Sequence[tuple[Probe, Path]]
    """Probes, each with its source file."""
    archs: Sequence[Arch]
    toolchain: Toolchain
    headers: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """Include directories of what probes use in earnest, by name."""
    own_targets: bool = False
    """Probes are compiled for the targets that they name in ``also``, too."""
    configured: Sequence[Arch] = ()
    """Targets for which the patched probes are compiled with each of CONFIGURATIONS: those of changed headers that are
    compiled together and have no macro for the headers, or with ``configure_all`` every one."""
    configure_all: bool = False
    watched: Sequence[str] = ()
    """Files of the tree of which the result has the lines that were compiled."""
    jobs: int | None = None
    """Compilers that run at a time; None: one for each processor that this process may use."""
    store: Store
    """Results of unchanged compilations."""
    progress: OnProgress = silent
    """Called in this thread."""


@dataclass(frozen=True)
class Configured:
    """A patched probe as a build with other flags compiles it."""

    probe: str
    arch: Arch
    flags: tuple[str, ...]
    same: bool
    """Its code is the same as with the usual flags."""
    built: Compilation


FAST = "-use_fast_math"
_ARM64 = ("-Xcicc", "--unsigned_chars", "-Xcudafe", "--unsigned_chars", "-Xcompiler", "-funsigned-char")
"""Makes ``char`` unsigned, as it is where the host is arm64: with GB10."""
CONFIGURATIONS = (("-DNDEBUG", "-std=c++20", *_ARM64), ("-rdc=true",), (FAST,), ("-O1",))
"""Flags that builds set, and that must not change what a conversion gives."""


@dataclass(frozen=True)
class CompiledProbes:
    """Everything that was compiled for a request."""

    request: CompileRequest
    pairs: tuple[tuple[Probe, Arch], ...]
    """Probe by probe, each with the architectures in the requested order."""
    built: Mapping[tuple[str, Arch, str], Compilation]
    """By probe, architecture and side. Host code has no pristine side: there is nothing to compare."""
    configured: tuple[Configured, ...] = ()
    """The patched probes, compiled with other flags."""

    def side(self, probe: str, arch: Arch, side: SideName) -> Compilation:
        """Return one side; an empty one where it was not compiled."""
        return self.built.get((probe, arch, side), Compilation())

    @property
    def cubins(self) -> dict[tuple[str, Arch, str], bytes]:
        """Disassembled cubins by probe, architecture and side."""
        return {name: built.content for name, built in self.built.items() if built.listing}

    @property
    def lines(self) -> dict[tuple[str, Arch], SourceLines]:
        """Lines of the patched probes in the watched files, by probe and architecture."""
        patched = ((probe, arch, built) for (probe, arch, side), built in self.built.items() if side == "patched")
        return {(probe, arch): built.lines for probe, arch, built in patched if not built.error}


def compile_probes(request: CompileRequest) -> CompiledProbes:
    """Compile each probe for each architecture from both views, and parse the code.

    A probe that does not compile or whose code is not understood is a result with an error. An exception,
    KeyboardInterrupt too, ends every compiler that still runs.
    """
    runner = Runner(request.toolchain.environ)
    with tempfile.TemporaryDirectory(prefix="fp4patch-verify-") as scratch:
        sides = {
            "pristine": Side(request.before, request.target, Path(scratch, "pristine")),
            "patched": Side(request.after, request.target, Path(scratch, "patched"), request.watched),
        }
        builder = _Builder(request.toolchain, request.target, runner, request.store, request.headers)
        with ThreadPoolExecutor(max_workers=max(1, request.jobs or processors())) as pool:
            try:
                return _compiled(request, builder, sides, pool)
            except BaseException:
                runner.stop()
                pool.shutdown(cancel_futures=True)
                raise


def _compiled(
    request: CompileRequest, builder: _Builder, sides: Mapping[str, Side], pool: ThreadPoolExecutor
) -> CompiledProbes:
    units = _units(request)
    # Where no header was changed, as by a patch of the build, the code of one side is that of both.
    is_changed = sides["pristine"].digest != sides["patched"].digest
    groups = tuple((side,) for side in SIDES) if is_changed else (SIDES,)
    futures: dict[Future[list[Compilation]], tuple[_Unit, Arch, tuple[SideName, ...]]] = {
        pool.submit(builder.build, unit, arch, sides[group[-1]]): (unit, arch, group)
        for unit, arch in units
        for group in (groups if unit[0][0].kind is not ProbeKind.HOST else (SIDES[1:],))
    }
    built: dict[tuple[str, Arch, str], Compilation] = {}
    request.progress(Step(0, len(futures), "compiling"))
    for done, future in enumerate(as_completed(futures), start=1):
        unit, arch, group = futures[future]
        made = {probe.id: result for (probe, _), result in zip(unit, future.result(), strict=True)}
        built |= {(probe, arch, side): result for side in group for probe, result in made.items()}
        name = unit[0][0].id + (f" and {len(unit) - 1} more" if len(unit) > 1 else "")
        request.progress(Step(done, len(futures), f"compiling {name} {arch} {' and '.join(group)}"))
    otherwise = [
        pool.submit(builder.configured, unit, arch, sides["patched"], flags, built)
        for unit, arch in units
        if unit[0][0].kind is ProbeKind.SASS
        if request.configure_all or (is_changed and unit[0][0].together and not unit[0][0].flags)
        if arch in request.configured
        for flags in CONFIGURATIONS
    ]
    pairs = tuple((probe, arch) for probe, _ in request.probes for arch in _targets(request, probe))
    return CompiledProbes(request, pairs, built, tuple(made for future in otherwise for made in future.result()))


_Unit = list[tuple[Probe, Path]]
"""Probes that are compiled by one run of the compiler."""


def _targets(request: CompileRequest, probe: Probe) -> tuple[Arch, ...]:
    return probe.targets(request.archs, also=request.own_targets)


def _units(request: CompileRequest) -> list[tuple[_Unit, Arch]]:
    """Return the probes in their order, with each target; those that are marked ``together`` at the first one's
    position."""
    units: dict[tuple[object, Arch], _Unit] = {}
    for probe, source in request.probes:
        alone = not probe.together or probe.kind is not ProbeKind.SASS
        name: object = probe.id if alone else (probe.together, probe.include, probe.uses, *probe.flags.items())
        for arch in _targets(request, probe):
            units.setdefault((name, arch), []).append((probe, source))
    return [(unit, arch) for (_, arch), unit in units.items()]


class _Builder(Compiler):
    """Compiles, disassembles and parses: one call for each translation unit, architecture and side."""

    def configured(
        self,
        unit: _Unit,
        arch: Arch,
        side: Side,
        flags: tuple[str, ...],
        usual: Mapping[tuple[str, Arch, str], Compilation],
    ) -> list[Configured]:
        """Return the probes compiled with other flags; none if one did not compile with the usual ones."""
        known = [usual[probe.id, arch, "patched"] for probe, _ in unit]
        if not all(made.listing for made in known):
            return []
        others = self.build(unit, arch, side, flags)
        return [
            Configured(probe.id, arch, flags, _is_same(probe, made, other), other)
            for (probe, _), made, other in zip(unit, known, others, strict=True)
        ]

    def build(self, unit: _Unit, arch: Arch, side: Side, more: Sequence[str] = ()) -> list[Compilation]:
        """Return the probes of a translation unit; those that the assembler does not refuse, or one half and the other,
        if they do not compile: none hides others."""
        probe, source = unit[0]
        text = together(unit) if len(unit) > 1 else ""
        built = self.compile(replace(probe, defines=probe.flags) if text else probe, source, arch, side, text, more)
        try:
            if not built.error:
                return self._read([probe for probe, _ in unit], built)
        except (ProofError, SassError) as error:
            # One probe that is not understood must not hide what the others came to.
            built = replace(built, error=f"{error.message}\n{error.help}")
        names = [machine_code.kernel_of(probe.id, ()) for probe, _ in unit]
        if not built.refused.keys().isdisjoint(names):
            rest = [one for one, name in zip(unit, names, strict=True) if name not in built.refused]
            others = iter(self.build(rest, arch, side, more) if rest else ())
            each = (built.refused.get(name) for name in names)
            return [replace(built, error=error, refused={}) if error else next(others) for error in each]
        middle = len(unit) // 2
        halves = (unit[:middle], unit[middle:]) if middle else ()
        return [result for half in halves for result in self.build(half, arch, side, more)] or [built]

    def _read(self, probes: Sequence[Probe], built: Compilation) -> list[Compilation]:
        """Return the probes of an object file with their listings."""
        if probes[0].kind is ProbeKind.HOST:
            return [built]
        text = machine_code.disassemble(built.content, toolchain=self.toolchain, runner=self.runner, store=self.store)
        with self._lock:
            if len(probes) == 1:
                if probes[0].kind is not ProbeKind.UNIT:
                    machine_code.must_have_one_kernel(built.content)
                return [replace(built, listing=machine_code.unit_listing(text, built.content))]
            names = [machine_code.kernel_of(probe.id, ()) for probe in probes]
            listings = machine_code.kernel_listings(text, built.content, names)
        return [
            replace(built, listing=listing, lines=built.lines.of(name))
            for name, listing in zip(names, listings, strict=True)
        ]


def _is_same(probe: Probe, usual: Compilation, other: Compilation) -> bool:
    """Return whether a probe's kernel has the same code and constants in two object files."""
    if not (usual.listing and other.listing):
        return False
    kernel = machine_code.kernel_of(probe.id, functions(usual.content))
    codes = usual.content, other.content
    return len({machine_code.code_digest(code, kernel, usual.listing.instructions) for code in codes}) == 1
