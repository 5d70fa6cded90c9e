"""Results of ``list`` and ``show``: the lists, the record of the patches on each release, and one named thing."""

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.document import Document, Report
from fp4patch.core.state import State
from fp4patch.core.verdict import Verdict


@dataclass(frozen=True)
class VariantRow(Document):
    """A variant."""

    name: str
    title: str
    arch: tuple[str, ...]
    """Architectures that it is verified for: ``sm_121a``."""
    patches: tuple[str, ...]
    """Ids of its patches in the order in which they are applied: ``cutlass/e2m1-guard``."""


@dataclass(frozen=True)
class PatchRow(Document):
    """A patch."""

    name: str
    title: str
    version: str
    target: str
    applies: str
    """Upstream releases that it was tried on, a version specifier (PEP 440)."""


@dataclass(frozen=True)
class TargetRow(Document):
    """A target."""

    name: str
    title: str
    versions: tuple[str, ...]
    """Releases with a pinned archive."""
    git: str
    """Upstream repository."""


@dataclass(frozen=True)
class Lists(Report):
    """Variants, patches and targets; absent if only another list was requested."""

    sparse: ClassVar[bool] = True
    variants: tuple[VariantRow, ...] = ()
    patches: tuple[PatchRow, ...] = ()
    targets: tuple[TargetRow, ...] = ()


@dataclass(frozen=True)
class MatrixRow(Document):
    """Result of each patch on one release."""

    target: str
    version: str
    source: str
    """Archive, or repository with its tag."""
    states: dict[str, State]
    """States by patch; ``applied`` where it applies."""
    inside: dict[str, str] = field(default_factory=dict)
    """Release of each tree inside this one, by target."""
    verified: dict[str, Verdict] = field(default_factory=dict)
    """Verdicts by variant, where it was verified."""


@dataclass(frozen=True)
class Untried(Document):
    """A release that no archive holds."""

    target: str
    version: str
    lacks: str
    """Kind of archive that does not exist."""


@dataclass(frozen=True)
class Taken(Document):
    """A patch whose change the newest release of its target has."""

    patch: str
    since: str
    """First release since which every tried one has the change."""
    newest: str
    """Newest release that was tried."""


@dataclass(frozen=True)
class Matrix(Report):
    """Record of ``records/matrix.json``."""

    sparse: ClassVar[bool] = True
    rows: tuple[MatrixRow, ...]
    upstreamed: tuple[Taken, ...] = ()
    """Patches that upstream has taken: they do nothing on later releases."""
    again: dict[str, str] = field(default_factory=dict)
    """Archives that hold a release for which another one is pinned: ``cutlass 4.0.0``."""
    without: tuple[Untried, ...] = ()
    """Releases that no archive holds."""


@dataclass(frozen=True, kw_only=True)
class ShownVariant(Variant, Report):
    """Contents of a variant's TOML file."""

    kind: Literal["variant"] = "variant"


@dataclass(frozen=True, kw_only=True)
class ShownTarget(Target, Report):
    """Contents of a target's TOML file."""

    kind: Literal["target"] = "target"


@dataclass(frozen=True, kw_only=True)
class ShownPatch(Patch, Report):
    """Contents of a patch's TOML file."""

    kind: Literal["patch"] = "patch"
    variants: tuple[str, ...] = ()
    """All variants that contain the patch, whichever of the two names the other."""


Shown = ShownVariant | ShownTarget | ShownPatch


def lists(catalog: Catalog, what: str | None) -> Lists:
    """Return the lists; only one of the three if ``what`` names it."""
    rows = Lists(
        tuple(VariantRow(v.name, v.title, tuple(v.arch), v.patch_ids) for v in catalog.variants.values()),
        tuple(PatchRow(p.id, p.title, p.version, p.target, p.applies) for p in catalog.patches.values()),
        tuple(
            TargetRow(t.name, t.title, tuple(archive.version for archive in t.pinned), t.git)
            for t in catalog.targets.values()
        ),
    )
    return Lists(**{what: getattr(rows, what)}) if what else rows


def named(catalog: Catalog, name: str) -> Shown:
    """Return every field of the variant, patch or target of that name. UsageError: see ``Catalog.named``."""
    thing = catalog.named(name)
    values = {field.name: getattr(thing, field.name) for field in fields(thing)}
    if isinstance(thing, Patch):
        values["variants"] = tuple(v.name for v in catalog.variants.values() if thing.id in v.patch_ids)
        return ShownPatch(**values)
    return ShownVariant(**values) if isinstance(thing, Variant) else ShownTarget(**values)
