"""The patches of a stack as a plan has them: each file is one, with all of its commits."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

from fp4patch.catalog.manifest import Catalog
from fp4patch.core.errors import Refused
from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import Commit, read
from fp4patch.stack.compose import composed
from fp4patch.stack.plan import Patch
from fp4patch.stack.read import StackPatch, read_stack


def patches_of(stack: Path, catalog: Catalog) -> list[Patch]:
    """Return the patches of a directory in their order, or that of one file. ManifestError carries every problem."""
    if stack.is_file():
        try:
            return [_patch(stack.stem, list(read(stack.read_bytes()).commits))]
        except LexError as error:
            raise Refused(
                f"{stack} is no patch file: {error}", help="name a patch, or a directory of patches"
            ) from error
    made, found = list[Patch](), read_stack(stack, catalog.targets)
    for _, group in groupby(found.patches, lambda patch: patch.file):
        patches = list(group)
        try:
            made.append(_of_stack(patches))
        except LexError:  # commits that do not follow each other
            made += [_of_stack([patch]) for patch in patches]
    return [replace(patch, target=found.target) for patch in made]


def _of_stack(patches: list[StackPatch]) -> Patch:
    first = patches[0]
    name = first.name if len(patches) == 1 else Path(first.file).stem
    return _patch(name, [patch.commit for patch in patches], first.link, first.notes.base)


def _patch(name: str, commits: list[Commit], link: str = "", base: str = "") -> Patch:
    commit = composed(commits)
    return Patch(name, commit.subject, link or commit.link, base, commit=commit)
