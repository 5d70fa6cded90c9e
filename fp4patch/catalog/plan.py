"""Variant × identified tree: which edits each file gets, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.whole import Whole
from fp4patch.errors import UsageError
from fp4patch.model.edit import AddOperand, DropOperand, Edit, Insert, WrapAsm
from fp4patch.model.patch import Patch
from fp4patch.model.variant import Variant


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
    """What a variant wants of a tree. An edit that searches for its files stands at each file that it may be about."""

    tree: Identified
    variant: str
    patches: tuple[Patch, ...]
    files: dict[str, tuple[Planned, ...]]
    edits: tuple[Planned, ...]
    """All of them, also one that no file is found for."""
    whole: Whole
    """All source files of the tree, but for the trees of other targets in it."""


Read = Callable[[str], bytes | None]
"""The pristine bytes of a file of the tree; None if it cannot be read."""


def plan(variant: Variant, tree: Identified, catalog: Catalog, read: Read) -> Plan:
    """The variant's edits for that tree, file by file. UsageError if the variant has nothing for such trees."""
    chosen = variant.targets.get(tree.target.name)
    if chosen is None:
        covers = ", ".join(variant.targets)
        raise UsageError(
            f"variant {variant.name} has no patches for {tree.target.name} ({tree.root})", help=f"it is for {covers}"
        )
    return plan_patches(variant.name, catalog.patches_of(variant, tree.target.name), chosen.options, tree, read)


def plan_patches(
    name: str, patches: Sequence[Patch], options: Mapping[str, Mapping[str, str]], tree: Identified, read: Read
) -> Plan:
    """The edits of these patches, in this order. Refused: a folder to search may not be read."""
    edits = tuple(Planned(patch, edit, options.get(patch.name, {})) for patch in patches for edit in patch.edits)
    whole = Whole(tree.root, (tree.root / place for part in tree.target.contains for place in part.at))
    files: dict[str, list[Planned]] = {}
    for planned in edits:
        for file in _files_of(planned.edit, whole, read):
            files.setdefault(file, []).append(planned)
    return Plan(tree, name, tuple(patches), {file: tuple(found) for file, found in files.items()}, edits, whole)


def _files_of(edit: Edit, whole: Whole, read: Read) -> Iterator[str]:
    """The files, relative to the tree, that an edit may be about: the one that it names, or those that it finds."""
    if isinstance(edit, AddOperand | DropOperand | Insert):
        yield edit.file
        return
    for file in whole.matching(edit.search):
        content = read(file)
        if content is None or may_be_about(edit, content):  # the fold says why it cannot be read
            yield file


def may_be_about(edit: Edit, content: bytes) -> bool:
    """A quick look that passes every file the edit is about, and few others: most files need no reading as tokens."""
    if isinstance(edit, WrapAsm):
        return mentions(content) or any(name.encode() in content for name in edit.callers)
    return True


def mentions(content: bytes) -> bool:
    """Tell quickly whether a file may hold an instruction of E2M1. A literal may be cut anywhere, even in the name."""
    return _MENTION.search(content) is not None


_CUT = rb"(?:[\"\s\\]|//[^\n]*+|/\*.*?\*/)*+"
_MENTION = re.compile(_CUT.join(re.escape(letter) for letter in (b"e", b"2", b"m", b"1", b"x")), re.DOTALL)
