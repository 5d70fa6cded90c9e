"""Reads ``patches/`` and ``variants/`` into the model, and reports every mistake in them at once, by file and key.

The shape of each file is a dataclass of this part; nothing is declared twice.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import Probe
from fp4patch.catalog.target import Target
from fp4patch.catalog.values import keep, name_of, recall
from fp4patch.catalog.variant import Variant
from fp4patch.core.errors import ManifestError, UsageError
from fp4patch.core.problem import Problem
from fp4patch.core.store import files_hash

T = TypeVar("T")

DATA = ("patches", "variants", "encoders", "records")
"""Directories of the data, below the root of a catalog."""

FORMAT = 1
"""Version of the data's form. Data without the file ``FORMAT_FILE`` is not checked: it need not hold records."""
FORMAT_FILE = "records/format"


@dataclass(frozen=True)
class Catalog:
    """All that can be applied. Keys are names: ``cutlass``, ``cutlass/e2m1-guard``, ``next2``."""

    root: Path
    targets: dict[str, Target]
    patches: dict[str, Patch]
    variants: dict[str, Variant]

    def variant(self, name: str) -> Variant:
        """Return the variant of that name; UsageError names the ones there are."""
        return _named(self.variants, name, "variant")

    def target(self, name: str) -> Target:
        """Return the target of that name; UsageError names the ones there are."""
        return _named(self.targets, name, "target")

    def named(self, name: str) -> Variant | Patch | Target:
        """Return the variant, patch or target of that name.

        A patch may be named without its target. UsageError if nothing or more than one thing has that name.
        """
        found: list[Variant | Patch | Target] = [v for v in self.variants.values() if v.name == name]
        found += [t for t in self.targets.values() if t.name == name]
        found += [p for p in self.patches.values() if name in (p.id, p.name)]
        if not found:
            raise UsageError(f"there is nothing named {name!r}", help="`fp4patch list` shows what there is")
        if len(found) > 1:
            names = ", ".join(thing.id if isinstance(thing, Patch) else thing.name for thing in found)
            raise UsageError(f"{name!r} names more than one thing", help=f"name one of {names}")
        return found[0]

    def patches_of(self, variant: Variant, target: str) -> tuple[Patch, ...]:
        """Return the variant's patches for a target, in the order in which they apply."""
        chosen = variant.targets.get(target)
        return tuple(self.patches[f"{target}/{name}"] for name in chosen.patches) if chosen else ()

    def probes_of(self, variant: Variant, target: str) -> tuple[tuple[Probe, Path], ...]:
        """Return the probes, with their sources, of the patches that a variant applies or only watches."""
        chosen = variant.targets.get(target)
        watched = tuple(self.patches[f"{target}/{name}"] for name in chosen.watches) if chosen else ()
        return tuple(
            (probe, Path(patch.directory) / probe.source)
            for patch in self.patches_of(variant, target) + watched
            for probe in patch.probes
        )


def _named(things: dict[str, T], name: str, what: str) -> T:
    try:
        return things[name]
    except KeyError:
        raise UsageError(f"there is no {what} {name!r}", help=f"the {what}s are {', '.join(things)}") from None


def data_root() -> Path:
    """Return the directory that holds the directories ``DATA``: inside the wheel, or the checkout's top."""
    if chosen := os.environ.get("FP4PATCH_DATA"):
        return Path(chosen)
    package = Path(__file__).resolve().parent.parent
    return package / "data" if (package / "data" / "variants").is_dir() else package.parent


def load(root: Path | None = None) -> Catalog:
    """Read everything below ``root`` (default: :func:`data_root`), once. ManifestError carries every problem found."""
    return _load(root or data_root())


def forget() -> None:
    """Read files anew at the next :func:`load`, since they were changed."""
    _load.cache_clear()
    files_hash.cache_clear()


@cache
def _load(root: Path) -> Catalog:
    """Validate the files, unless the very same ones were found valid before."""
    _check_format(root)
    try:
        name = name_of(root)
    except OSError:  # the validation reports what cannot be read
        return _validated(root)
    known = recall(name)
    if isinstance(known, tuple) and len(known) == 3:
        return Catalog(root, *known)
    catalog = _validated(root)
    keep(name, (catalog.targets, catalog.patches, catalog.variants))
    return catalog


def _check_format(root: Path) -> None:
    """Raise ManifestError if the data is of a form that this fp4patch does not read."""
    try:
        written = (root / FORMAT_FILE).read_bytes().decode(errors="replace").strip()
    except OSError:
        return
    if written != str(FORMAT):
        raise ManifestError(
            f"the data in {root} has format {written[:20]!r}, and this fp4patch reads format {FORMAT}",
            help="take program and data of one release: unset FP4PATCH_DATA, or update the older one",
        )


def _validated(root: Path) -> Catalog:
    from fp4patch.catalog.checks import check_coverage, check_patch, check_target, check_variant, misnamed  # noqa: PLC0415 - needed once
    from fp4patch.catalog.reading import Reader  # noqa: PLC0415 - pydantic takes a while to load

    reader = Reader(root)
    targets, patches, variants = {}, {}, {}
    for path in sorted(root.glob("patches/*/target.toml")):
        if target := reader.read(Target, path):
            targets[target.name] = target
            reader.add(*misnamed(path, root, {path.parent.name: target.name}))
    for path in sorted(root.glob("patches/*/*/patch.toml")):
        if patch := reader.read(Patch, path):
            names = {path.parent.name: patch.name, path.parent.parent.name: patch.target}
            reader.add(*misnamed(path, root, names), *check_patch(patch, path, root))
            probes = tuple(replace(probe, patch=patch.id) for probe in patch.probes)
            patches[patch.id] = replace(patch, directory=str(path.parent), probes=probes)
    for path in sorted(root.glob("variants/*.toml")):
        if variant := reader.read(Variant, path):
            reader.add(*misnamed(path, root, {path.stem: variant.name}))
            variants[variant.name] = _with_options(variant, patches)
    for path in sorted({*root.glob("variants/*/**/*.toml")} - reader.extended):
        reader.add(Problem("a variant that extends this file", "none", file=str(path.relative_to(root))))
    if not reader.problems:
        reader.add(*(problem for patch in patches.values() for problem in check_coverage(patch, patches.values())))
        reader.add(*(p for variant in variants.values() for p in check_variant(variant, targets, patches)))
        reader.add(*(p for target in targets.values() for p in check_target(target, targets, variants)))
    if not (targets and patches and variants):
        help_ = "FP4PATCH_DATA names a directory with patches/, variants/ and encoders/; unset, fp4patch takes its own"
        reader.add(Problem("targets, patches and variants", f"not all of them below {root}", help_))
    if reader.problems:
        help_ = "docs/extending.md explains the layout, and has a table of all keys"
        raise ManifestError("the catalog is not valid", problems=reader.problems, help=help_)
    return Catalog(root, targets, patches, variants)


def _with_options(variant: Variant, patches: Mapping[str, Patch]) -> Variant:
    """Return the variant with its own options set for each of its patches that takes options."""
    if not variant.options:
        return variant
    targets = {}
    for target, chosen in variant.targets.items():
        found = {name: patches.get(f"{target}/{name}") for name in chosen.patches}
        taking = [name for name, patch in found.items() if patch and patch.takes_options]
        set_here = {name: variant.options | chosen.options.get(name, {}) for name in taking}
        targets[target] = replace(chosen, options=chosen.options | set_here)
    return replace(variant, targets=targets)
