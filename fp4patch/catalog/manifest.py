"""Reads ``patches/`` and ``variants/`` into the model, and reports every mistake in them at once, by file and key.

The shape of each file is a dataclass of this part; nothing is declared twice.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from fp4patch.catalog.checks import slips
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.probe import Layer, Probe
from fp4patch.catalog.reading import Reader
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant, VariantTarget
from fp4patch.core.errors import ManifestError, Refused, UsageError
from fp4patch.core.store import files_hash
from fp4patch.core.wording import suggested

T = TypeVar("T")
ALONE = "stack"
"""Name of the variant of patches that the catalog does not have, and of no others."""

DATA = ("patches", "variants", "encoders", "records")
"""Directories of the data, below the root of a catalog."""


@dataclass(frozen=True, eq=False)  # one object for each time that the files are read: a key of caches
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

    def patches_of(self, variant: Variant, target: str) -> tuple[Patch, ...]:
        """Return the variant's patches for a target, in the order in which they apply."""
        chosen = variant.targets.get(target)
        return tuple(self.patches[f"{target}/{name}"] for name in chosen.patches) if chosen else ()

    def including(self, outside: Sequence[Patch]) -> "Catalog":
        """Return a catalog whose variants apply these patches too, each ahead of the variant's own.

        It has the variant ``ALONE`` of nothing else. Refused: one has the name of another patch.
        """
        alone = Variant(
            name=ALONE,
            title="the patches of --with alone",
            summary="",
            cost="",
            arch=tuple(dict.fromkeys(arch for variant in self.variants.values() for arch in variant.arch)),
            targets={name: VariantTarget(patches=()) for name in self.targets},
        )
        patches, variants = dict(self.patches), self.variants | {ALONE: alone}
        for patch in reversed(outside):
            if patch.id in patches:
                raise Refused(f"there are two patches {patch.id}", help="give the directory of one another name")
            patches[patch.id] = patch
            for name, variant in variants.items():
                variants[name] = _with_patch(variant, patch, first=True)
        return replace(self, patches=patches, variants=variants)

    def probes_of(self, variant: Variant, target: str) -> tuple[tuple[Probe, Path], ...]:
        """Return the probes, with their sources, of the patches that a variant applies or only watches."""
        patches = self._proven(variant, target)
        return tuple((probe, Path(patch.directory) / probe.source) for patch in patches for probe in patch.probes)

    def layers_of(self, variant: Variant, target: str) -> tuple[tuple[Layer, Path], ...]:
        """Return the layers of these patches, with their sources."""
        patches = self._proven(variant, target)
        return tuple((layer, Path(patch.directory) / layer.source) for patch in patches for layer in patch.layers)

    def _proven(self, variant: Variant, target: str) -> tuple[Patch, ...]:
        """Return the patches that a variant applies, then those that it only watches."""
        chosen = variant.targets.get(target)
        watched = tuple(self.patches[f"{target}/{name}"] for name in chosen.watches) if chosen else ()
        return self.patches_of(variant, target) + watched


def _named(things: dict[str, T], name: str, what: str) -> T:
    try:
        return things[name]
    except KeyError:
        every = f"the {what}s are {', '.join(things)}"
        raise UsageError(f"there is no {what} {name!r}", help=suggested(name, things, every)) from None


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
    reader = Reader(root)
    of_target = _read(reader, Target, "patches/*/target.toml", lambda path: {"name": path.parent.name})
    of_patch = _read(reader, Patch, "patches/*/*/patch.toml", _place_of_patch)
    of_variant = _read(reader, Variant, "variants/*.toml", lambda path: {"name": path.stem})
    targets, patches = {target.name: target for target in of_target}, {patch.id: patch for patch in of_patch}
    variants = {variant.name: variant for variant in of_variant}
    for patch in of_patch:
        for name in variants.keys() & {*patch.variants}:
            variants[name] = _with_patch(variants[name], patch, first=False)
    for file, keys, expected, found in slips(targets, patches, variants) if not reader.problems else ():
        reader.wrong(root / file, keys, expected, found)
    if not (targets and patches and variants):
        help_ = "FP4PATCH_DATA names a directory with patches/, variants/ and encoders/; unset, fp4patch takes its own"
        reader.wrong(root, (), "targets, patches and variants", "not all of them", help_)
    if reader.problems:
        help_ = "docs/extending.md explains the layout, and has a table of all keys"
        raise ManifestError("the catalog is not valid", problems=reader.problems, help=help_)
    completed = {name: patch.completed(targets[patch.target]) for name, patch in patches.items()}
    return Catalog(root, targets, completed, variants)


def _read(reader: Reader, kind: type[T], files: str, place: Callable[[Path], dict[str, str]]) -> list[T]:
    """Return the valid ones of these files as values; ``place`` returns the keys that the place of a file states."""
    read = [reader.read(kind, path, **place(path)) for path in sorted(reader.root.glob(files))]
    return [value for value in read if value is not None]


def _place_of_patch(path: Path) -> dict[str, str]:
    return {"name": path.parent.name, "target": path.parent.parent.name, "directory": str(path.parent)}


def _with_patch(variant: Variant, patch: Patch, *, first: bool) -> Variant:
    """Return the variant with one more patch, ahead of those that it names or behind them, and with its rules."""
    chosen = variant.targets.get(patch.target, VariantTarget(patches=()))
    names = (patch.name, *chosen.patches) if first else (*chosen.patches, patch.name)
    targets = variant.targets | {patch.target: replace(chosen, patches=names)}
    return replace(variant, targets=targets, rules=variant.rules + patch.rules)
