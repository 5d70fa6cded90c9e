"""What ``verify`` looks at: a tree in two states, its probes and what must hold, read before anything is compiled."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import Layer, Probe, ProbeKind
from fp4patch.catalog.rule import Rule
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Refused
from fp4patch.core.progress import OnProgress, silent
from fp4patch.core.results import NothingToDo
from fp4patch.core.store import Store
from fp4patch.edits.operation import Condition
from fp4patch.proof.counts import Records
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SourceView
from fp4patch.tree.evaluate import evaluate
from fp4patch.tree.fold import fold_tree
from fp4patch.tree.locking import locked

Unit = list[tuple[Probe, Path]]
"""Probes that are compiled by one run of the compiler, each with its source file."""


@dataclass(frozen=True, kw_only=True)
class Probes:
    """The probes of a tree, and the targets for which they are compiled."""

    ran: Sequence[tuple[Probe, Path]]
    """Those that have something to show, each with its source file."""
    aside: Sequence[tuple[Probe, str]] = ()
    """Those that have nothing to show on this tree, each with the reason."""
    archs: Sequence[Arch]
    """The targets of the verification."""
    own_targets: bool = False
    """Probes are compiled for the targets that they name in ``also``, too."""
    configured: Sequence[Arch] = ()
    """Targets for which the patched probes are compiled with each of CONFIGURATIONS: those of changed headers that are
    compiled together and have no macro for the headers, or, of ``every`` probe, all of them."""
    every: bool = False

    @property
    def pairs(self) -> tuple[tuple[Probe, Arch], ...]:
        """Probe by probe, each with its targets in the requested order."""
        return tuple((probe, arch) for probe, _ in self.ran for arch in self._targets(probe))

    def units(self) -> list[tuple[Unit, Arch]]:
        """Return the probes in their order, with each target; those that are marked ``together`` at the first one's
        position."""
        units: dict[tuple[object, Arch], Unit] = {}
        for probe, source in self.ran:
            alone = not probe.together or probe.kind is not ProbeKind.SASS
            name: object = probe.id if alone else (probe.together, probe.include, probe.uses, *probe.flags.items())
            for arch in self._targets(probe):
                units.setdefault((name, arch), []).append((probe, source))
        return [(unit, arch) for (_, arch), unit in units.items()]

    def _targets(self, probe: Probe) -> tuple[Arch, ...]:
        return probe.targets(self.archs, also=self.own_targets)


class Idle(NamedTuple):
    """An edit with a condition that changes nothing in a file that it is about, as its patch says of the text."""

    path: str
    content: bytes
    """The file as upstream released it."""
    patch: Patch
    condition: Condition
    why: NothingToDo


@dataclass(frozen=True, kw_only=True)
class Folded:
    """The tree with its pristine bytes, and what the variant and the diffs that the tree keeps make of these."""

    pristine: SourceView
    written: Mapping[str, bytes | None]
    with_diffs: Mapping[str, bytes | None] = field(default_factory=dict)
    """The pristine bytes with the diffs alone, which need no check."""
    applied: tuple[str, ...] = ()
    """Patches that changed something, with their versions."""
    authors: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Patches of the variant, with their versions, that changed each file."""
    idle: Sequence[Idle] = ()
    diffs: Mapping[str, int] = field(default_factory=dict)
    """Number of files that each diff changed."""
    states: Mapping[str, Mapping[str, bytes | None]] = field(default_factory=dict)
    """The files after each diff and those before it, by its id, in the order of the diffs."""
    exported: bool = False
    """True if the tree has the commits of an export, and upstream's names in the place of fp4patch's."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is verified. Nothing of it changes meanwhile."""

    tree: Identified
    folded: Folded
    variant: Variant
    patches: Sequence[Patch] = ()
    probes: Probes
    layers: Sequence[tuple[Layer, Path]] = ()
    """Programs to execute, each with its source file; none unless they were asked for."""
    layers_aside: Sequence[tuple[Probe, str]] = ()
    """Those that this tree, or this command, does not have what they take, each with the reason."""
    toolchain: Toolchain
    headers: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """Include directories of what probes use in earnest, by name."""
    records: Records = field(default_factory=dict)
    """The variant's counts."""

    @property
    def pristine(self) -> SourceView:
        """The tree as upstream released it."""
        return self.folded.pristine

    @property
    def patched(self) -> SourceView:
        """The tree as it is."""
        return SourceView(self.tree.root)

    @property
    def written(self) -> Mapping[str, bytes | None]:
        """Contents of the files that are, or were to be, changed."""
        return self.folded.written

    @property
    def changed(self) -> list[str]:
        """Files that are there and are not as upstream released them: their lines are compared with those compiled."""
        old = self.pristine.overlay
        return [path for path, new in self.written.items() if new is not None and new != old[path]]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The variant's rules about this target."""
        return tuple(rule for rule in self.variant.rules if rule.speaks_of(self.tree.target.name))


@dataclass(frozen=True, kw_only=True)
class Means:
    """What the work is done with. It decides how long it takes, and nothing of the result."""

    store: Store
    """Results of unchanged compilations and executions."""
    jobs: int | None = None
    """Compilers, or threads of a sweep, at a time; None: one for each processor that this process may use."""
    progress: OnProgress = silent
    """Called in the thread that verifies."""


def named(patch: Patch) -> str:
    """Return a patch with its version: ``cutlass/e2m1-guard 1``."""
    return f"{patch.id} {patch.version}"


def fold(tree: Identified, catalog: Catalog, variant: Variant) -> Folded:
    """Return what the variant makes of the tree. Refused: the tree is not in that state."""
    with locked([tree]) as (held,):
        catalog, outside = catalog.including(held.outside), held.outside
        folds, _ = evaluate(held, catalog.variant(variant.name), catalog)
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
        scanned = fold_tree(held, "", outside, {}).scan if outside else None
        states = {
            patch.id: {path: done.desired for path, done in fold_tree(held, "", outside[:n], {}, scanned).files.items()}
            for n, patch in enumerate(outside, 1)
        }
        of_diffs = states[outside[-1].id] if outside else {}
        checked = [patch for patch in folds.patches if patch.conditions]
        tried = folds
        if folds.scan is None and checked:  # its receipt names what was changed alone
            tried = fold_tree(held, "", checked, variant.options_of(tree.target.name))
        idle = [
            Idle(path, held.pristine(path) or b"", step.patch, condition, outcome)
            for path, done in tried.files.items()
            for step, outcome in done.outcomes
            if isinstance(outcome, NothingToDo) and (condition := step.edit.checked_condition)
        ]
        exported = bool(held.recovered and held.recovered.commits)
    authors = {path: {*done.patches} for path, done in folds.files.items()}
    changed = {name: sum(name in by for by in authors.values()) for name in map(named, folds.patches)}
    diffs = {named(patch): patch.id for patch in outside}
    return Folded(
        pristine=SourceView(tree.root, overlay),
        written={path: done.desired for path, done in folds.files.items()},
        with_diffs=overlay | {path: text for path, text in of_diffs.items() if text is not None},
        applied=tuple(name for name, files in changed.items() if files),
        idle=idle,
        authors={path: by - diffs.keys() for path, by in authors.items() if by},
        diffs={diffs[name]: files for name, files in changed.items() if files and name in diffs},
        states=states,
        exported=exported,
    )


def must_be_unchanged(subject: Subject) -> None:
    """Refused if another program wrote these files since: then the compiled sources are not known."""
    with locked([subject.tree]) as (held,):
        changed = [path for path, content in subject.written.items() if held.current(path) != content]
    if changed:
        raise Refused(
            f"{subject.tree.root} was changed while it was being verified: {', '.join(changed)}",
            help="verify it again when no other process changes it",
        )
