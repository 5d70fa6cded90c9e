"""Compile every probe from two views of a tree, and parse the machine code."""

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner, processors
from fp4patch.core.progress import Step
from fp4patch.proof import machine_code
from fp4patch.proof.probe import Compilation, Compiler, together
from fp4patch.proof.result import is_same
from fp4patch.proof.source_lines import SourceLines
from fp4patch.proof.subject import Means, Subject, Unit
from fp4patch.proof.turns import Turns
from fp4patch.proof.view import Side, SideName
from fp4patch.sass.error import SassError
from fp4patch.sass.text import functions

SIDES: tuple[SideName, ...] = ("pristine", "patched")


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
class Pair:
    """One probe for one architecture, compiled from both sides."""

    probe: Probe
    arch: Arch
    before: Compilation
    """Of the pristine side; an empty one of host code, which has none: there is nothing to compare."""
    after: Compilation
    """Of the patched side."""

    @property
    def identical(self) -> bool:
        """True if there is code on both sides, and not one byte of it differs."""
        return is_same(self.before.listing, self.after.listing)


@dataclass(frozen=True)
class CompiledProbes:
    """Everything that was compiled for a subject."""

    pairs: tuple[Pair, ...]
    """Probe by probe, each with the architectures in the requested order."""
    configured: tuple[Configured, ...] = ()
    """The patched probes, compiled with other flags."""

    @property
    def cubins(self) -> dict[tuple[str, Arch, str], bytes]:
        """Disassembled cubins by probe, architecture and side."""
        return {
            (pair.probe.id, pair.arch, side): made.content
            for pair in self.pairs
            for side, made in (("pristine", pair.before), ("patched", pair.after))
            if made.listing
        }

    @property
    def lines(self) -> dict[tuple[str, Arch], SourceLines]:
        """Lines of the patched probes in the changed files, by probe and architecture; of changed code, those of the
        kernels that are executed."""
        return {(pair.probe.id, pair.arch): _lines(pair) for pair in self.pairs if not pair.after.error}


def _lines(pair: Pair) -> SourceLines:
    probe, lines = pair.probe, pair.after.lines
    if pair.identical or probe.kind is not ProbeKind.UNIT:
        return lines
    own = probe.quantizes and machine_code.kernel_of(probe.id, functions(pair.after.content))
    return lines.of(own or (probe.launches.kernels if probe.launches else "*"))


def compile_probes(subject: Subject, means: Means) -> CompiledProbes:
    """Compile each probe for each architecture from both views, and parse the code.

    A probe that does not compile or whose code is not understood is a result with an error. An exception,
    KeyboardInterrupt too, ends every compiler that still runs.
    """
    runner, target = Runner(subject.toolchain.environ), subject.tree.target
    with tempfile.TemporaryDirectory(prefix="fp4patch-verify-") as scratch:
        sides = {
            "pristine": Side(subject.pristine, target, Path(scratch, "pristine")),
            "patched": Side(subject.patched, target, Path(scratch, "patched"), subject.changed),
        }
        builder = _Builder(Compiler(subject.toolchain, target, runner, means.store, subject.headers))
        with ThreadPoolExecutor(max_workers=max(1, means.jobs or processors())) as pool:
            try:
                return _compiled(subject, means, builder, sides, pool)
            except BaseException:
                runner.stop()
                pool.shutdown(cancel_futures=True)
                raise


def _compiled(
    subject: Subject, means: Means, builder: "_Builder", sides: Mapping[str, Side], pool: ThreadPoolExecutor
) -> CompiledProbes:
    probes, units = subject.probes, subject.probes.units()
    # Where no header was changed, as by a patch of the build, the code of one side is that of both.
    is_changed = sides["pristine"].digest != sides["patched"].digest
    groups = tuple((side,) for side in SIDES) if is_changed else (SIDES,)
    futures: dict[Future[list[Compilation]], tuple[Unit, Arch, tuple[SideName, ...]]] = {
        pool.submit(builder.build, unit, arch, sides[group[-1]]): (unit, arch, group)
        for unit, arch in units
        for group in (groups if unit[0][0].kind is not ProbeKind.HOST else (SIDES[1:],))
    }
    built: dict[tuple[str, Arch, str], Compilation] = {}
    means.progress(Step(0, len(futures), "compiling"))
    for done, future in enumerate(as_completed(futures), start=1):
        unit, arch, group = futures[future]
        made = {probe.id: result for (probe, _), result in zip(unit, future.result(), strict=True)}
        built |= {(probe, arch, side): result for side in group for probe, result in made.items()}
        name = unit[0][0].id + (f" and {len(unit) - 1} more" if len(unit) > 1 else "")
        means.progress(Step(done, len(futures), f"compiling {name} {arch} {' and '.join(group)}"))
    otherwise = [
        pool.submit(builder.configured, unit, arch, sides["patched"], flags, built)
        for unit, arch in units
        if unit[0][0].kind is ProbeKind.SASS
        if probes.every or (is_changed and unit[0][0].together and not unit[0][0].flags)
        if arch in probes.configured
        for flags in CONFIGURATIONS
    ]
    pairs = tuple(
        Pair(probe, arch, *(built.get((probe.id, arch, side), Compilation()) for side in SIDES))
        for probe, arch in probes.pairs
    )
    return CompiledProbes(pairs, tuple(made for future in otherwise for made in future.result()))


@dataclass(frozen=True)
class _Builder:
    """Compiles, disassembles and parses: one call for each translation unit, architecture and side."""

    compiler: Compiler
    reading: Turns = field(default_factory=Turns)
    """What is read once and kept, each of many threads would read for itself."""

    def configured(
        self,
        unit: Unit,
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

    def build(self, unit: Unit, arch: Arch, side: Side, more: Sequence[str] = ()) -> list[Compilation]:
        """Return the probes of a translation unit; those that the assembler does not refuse, or one half and the other,
        if they do not compile: none hides others."""
        probe, source = unit[0]
        text = together(unit) if len(unit) > 1 else ""
        first = replace(probe, defines=probe.flags) if text else probe
        built = self.compiler.compile(first, source, arch, side, text, more)
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
        compiler = self.compiler
        text = machine_code.disassemble(
            built.content,
            toolchain=compiler.toolchain,
            runner=compiler.runner,
            store=compiler.store,
        )
        with self.reading.of(text):
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
