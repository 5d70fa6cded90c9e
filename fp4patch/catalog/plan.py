"""Variant × identified tree: which edits each file gets, in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.source_files import CandidateFiles
from fp4patch.catalog.variant import Variant
from fp4patch.core.errors import UsageError
from fp4patch.edits import Edit
from fp4patch.edits.look import Look


@dataclass(frozen=True)
class Planned:
    """One edit of one patch on one file, with the options that the variant sets for the patch."""

    patch: Patch
    edit: Edit
    options: Mapping[str, str]

    def template(self, name: str) -> str:
        """Return the text of a template that is located beside the patch."""
        return (Path(self.patch.directory) / name).read_text(encoding="utf-8")


Read = Callable[[str], bytes | None]
"""The pristine bytes of a file of the tree; None if it cannot be read."""


Passing = Callable[[str, bytes], frozenset[Look]]
"""The quick looks that pass a file of a language, by its bytes."""


@dataclass(frozen=True)
class Plan:
    """Edits of a variant for a tree. An edit that searches for its files is listed at each file that it may change."""

    tree: Identified
    variant: str
    patches: tuple[Patch, ...]
    edits: tuple[Planned, ...]
    """All that search for their files, also one that no file is found for."""
    candidates: CandidateFiles
    """The tree's source files that its patches may be about, but for the trees of other targets in it."""
    read: Read
    """Reads what the diffs make of the pristine bytes."""
    passing: Passing

    @cached_property
    def files(self) -> dict[str, tuple[Planned, ...]]:
        """The edits of each file. An edit that searches for its files is named at each that it may be about."""
        files: dict[str, list[Planned]] = {}
        for planned in self.edits:
            for file in self._files_of(planned.edit):
                files.setdefault(file, []).append(planned)
        return {file: tuple(found) for file, found in files.items()}

    def _files_of(self, edit: Edit) -> Iterator[str]:
        """Yield the files that an edit may be about."""
        looks = frozenset(edit.looks(edit.language))
        for file in self.candidates.matching(edit.search):
            if edit.reads:
                yield file
                continue
            content = self.read(file)
            # The fold reports why a file cannot be read.
            if content is None or not looks.isdisjoint(self.passing(edit.language, content)):
                yield file


def patches_of(
    variant: Variant, tree: Identified, catalog: Catalog
) -> tuple[Sequence[Patch], Mapping[str, Mapping[str, str]]]:
    """Return the variant's patches for that tree, and their options. UsageError if it has nothing for such trees."""
    if tree.target.name not in variant.targets:
        covers = ", ".join(variant.targets)
        raise UsageError(
            f"variant {variant.name} has no patches for {tree.target.name} ({tree.root})", help=f"it is for {covers}"
        )
    return catalog.patches_of(variant, tree.target.name), variant.options_of(tree.target.name)


def edits_of(patches: Sequence[Patch], options: Mapping[str, Mapping[str, str]]) -> tuple[Planned, ...]:
    """Return the edits of these patches, in this order."""
    return tuple(Planned(patch, edit, options.get(patch.name, {})) for patch in patches for edit in patch.edits)
