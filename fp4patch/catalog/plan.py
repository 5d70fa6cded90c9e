"""Variant × identified tree: which edits each file gets, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.errors import UsageError
from fp4patch.model import Edit, Patch, Variant


@dataclass(frozen=True)
class Planned:
    """One edit of one patch on one file, with the options that the variant sets for the patch."""

    patch: Patch
    edit: Edit
    options: Mapping[str, str]

    def template(self, name: str) -> str:
        """The text of a template that lies beside the patch."""
        return (Path(self.patch.directory) / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Plan:
    """What a variant wants of a tree."""

    tree: Identified
    variant: str
    patches: tuple[Patch, ...]
    files: dict[str, tuple[Planned, ...]]


def plan(variant: Variant, tree: Identified, catalog: Catalog) -> Plan:
    """The variant's edits for that tree, file by file. UsageError if the variant has nothing for such trees."""
    chosen = variant.targets.get(tree.target.name)
    if chosen is None:
        covers = ", ".join(variant.targets)
        raise UsageError(
            f"variant {variant.name} has no patches for {tree.target.name} ({tree.root})", help=f"it is for {covers}"
        )
    return plan_patches(variant.name, catalog.patches_of(variant, tree.target.name), chosen.options, tree)


def plan_patches(
    name: str, patches: Sequence[Patch], options: Mapping[str, Mapping[str, str]], tree: Identified
) -> Plan:
    """The edits of these patches, in this order."""
    files: dict[str, list[Planned]] = {}
    for patch in patches:
        for edit in patch.edits:
            for file in files_of(edit, tree.root):
                files.setdefault(file, []).append(Planned(patch, edit, options.get(patch.name, {})))
    return Plan(tree, name, tuple(patches), {file: tuple(edits) for file, edits in files.items()})


def files_of(edit: Edit, root: Path) -> tuple[str, ...]:
    """The files, relative to the tree, that an edit is about."""
    return (edit.file,)
