"""Patches outside of the catalog: each is one diff, of a directory or of a stack, ahead of a variant's own patches.

A tree keeps the diff of such a patch with its receipt, so that the directory is not needed again.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Reader
from fp4patch.catalog.target import Layout
from fp4patch.core.errors import ManifestError, Refused
from fp4patch.core.lex_error import LexError
from fp4patch.core.results import Problem
from fp4patch.edits import Diff
from fp4patch.edits.patch_file import Commit, FileChange
from fp4patch.edits.patch_file import read as read_patch
from fp4patch.edits.patch_text import patch_text

is_name = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII).fullmatch
is_link = re.compile(r"https?://[!-~]+").fullmatch
_KEYS = frozenset(("name", "target", "version", "title", "reason", "link", "applies", "retire", "edits", "directory"))


@dataclass(frozen=True)
class Origin:
    """Where a patch is from: the stack, and its file in that. Empty: it is a directory of its own."""

    stack: str = ""
    """Name of the stack."""
    stack_sha256: str = ""
    """Hash of the names, the files and the order of its patches."""
    file_sha256: str = ""
    """Hash of the file as it is in the stack."""
    merged: bool = False
    """True if the diff is that of a three-way merge onto this release, and not that of the file."""


@dataclass(frozen=True, kw_only=True)
class OutsidePatch(Patch):
    """A patch that consists of one diff, and that the catalog does not have."""

    file: str
    """Name of the diff in its directory."""
    diff: bytes
    origin: Origin = Origin()
    base: str = ""
    """Release, or commit, that it was made for; empty if nobody says it."""

    @property
    def commit(self) -> Commit:
        """The patch as a commit."""
        changes = tuple(edit.file_change for edit in self.edits if edit.file_change)
        return Commit(subject=self.title, description=self.reason, link=self.link, changes=changes)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the diff changes."""
        return tuple(path for edit in self.edits if edit.file_change for path in edit.file_change.paths)


def read(folder: Path, targets: Collection[str]) -> OutsidePatch:
    """Return the patch of a directory. ManifestError carries every problem of its patch.toml and its diff."""
    folder = folder.resolve()
    reader, path = Reader(folder.parent), folder / "patch.toml"
    patch = reader.read(Patch, path, name=folder.name, directory=str(folder))
    for field in fields(Patch) if patch else ():
        if field.name not in _KEYS and getattr(patch, field.name) != field.default:
            expected = "a diff, and what it is: other edits, probes and rules are for a patch of the catalog"
            reader.wrong(path, (field.name,), expected, "this key")
    for key, holds, expected in (
        ("name", patch and is_name(patch.name), "letters, digits, and . _ -"),
        ("target", patch and patch.target in targets, f"one of {', '.join(targets)}"),
        ("link", patch and is_link(patch.link), "the address that the diff is from"),
        ("edits", patch and [type(edit) for edit in patch.edits] == [Diff], "one edit, whose operation is diff"),
    ):
        if patch and not holds:
            reader.wrong(path, (key,), expected, repr(getattr(patch, key))[:80])
    for edit in patch.edits if patch and not reader.problems else ():
        for key, expected, found in edit.mistakes(folder):
            reader.wrong(path, ("edits", 0, key), expected, found)
    if reader.problems or patch is None:
        raise ManifestError(
            f"{folder} is not a patch that can be applied",
            problems=reader.problems,
            help="`fp4patch new-patch TARGET FILE.diff` makes such a directory of a diff",
        )
    match patch.edits:
        case (Diff() as edit,):
            return _outside(patch, edit, (folder / edit.file).read_bytes())
        case _:
            raise AssertionError("checked above")


def as_name(text: str) -> str:
    """Return the name of a patch for the name of a file."""
    name = re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII)
    return name if is_name(name) else f"p{name}"


def of_commit(commit: Commit, name: str, target: str, *, reason: str, retire: str, origin: Origin) -> OutsidePatch:
    """Return a commit of a patch file as a patch."""
    diff = patch_text(commit).encode()
    edit = Diff(file=f"{name}.patch", sha256=sha256(diff).hexdigest())
    return OutsidePatch(
        name=name,
        target=target,
        title=commit.subject or name,
        reason=reason or commit.description,
        link=commit.link,
        applies=">=0",
        retire=retire,
        edits=edit.of_files(diff),
        file=edit.file,
        diff=diff,
        origin=origin,
    )


def with_changes(patch: OutsidePatch, changes: Sequence[FileChange], *, merged: bool) -> OutsidePatch:
    """Return a patch with the diff of a merge, or of another layout, in the place of its own."""
    diff = patch_text(replace(patch.commit, changes=tuple(changes))).encode()
    edit = Diff(file=patch.file, sha256=sha256(diff).hexdigest())
    return replace(patch, diff=diff, edits=edit.of_files(diff), origin=replace(patch.origin, merged=merged))


def located(patches: Sequence[OutsidePatch], layout: Layout, has: Callable[[str], bool]) -> list[OutsidePatch]:
    """Return patches with the paths that their files have in a tree, of which ``has`` tells whether it has a file.

    Refused: it has neither a file nor a place for it.
    """
    if not layout.names:
        return list(patches)
    problems = [
        Problem(
            "a file that an installed package has",
            f"{path}, which is in upstream's repository alone",
            help="`fp4patch new-patch --stack` leaves out what is not built; else leave the file out, or patch a clone",
            patch=patch.id,
            file=path,
        )
        for patch in patches
        for path in dict.fromkeys(patch.files)
        if not layout.has_place(path) and not has(path)
    ]
    if problems:
        raise Refused("no tree was changed", problems=problems, help="patches name files as upstream's repository does")
    return [
        with_changes(patch, [_in(layout, change) for change in patch.commit.changes], merged=patch.origin.merged)
        for patch in patches
    ]


def _in(layout: Layout, change: FileChange) -> FileChange:
    return replace(
        change, before=change.before and layout.place(change.before), after=change.after and layout.place(change.after)
    )


def kept(id_: str, link: str, diff: bytes, origin: Origin) -> OutsidePatch:
    """Return the patch of which a tree kept the diff. Refused: the diff is not one that was applied."""
    target, _, name = id_.partition("/")
    edit = Diff(file="kept.diff", sha256=sha256(diff).hexdigest())
    try:
        title = read_patch(diff).commits[0].subject or name
        patch = Patch(
            name=name, target=target, title=title, reason=link, link=link, applies=">=0", retire="", edits=(edit,)
        )
        return replace(_outside(patch, edit, diff), origin=origin)
    except LexError as error:
        raise Refused(f"the diff that was kept of {id_!a} is none: {error}", help="look at it") from error


def _outside(patch: Patch, edit: Diff, diff: bytes) -> OutsidePatch:
    values = {field.name: getattr(patch, field.name) for field in fields(patch)}
    return replace(OutsidePatch(**values, file=edit.file, diff=diff), edits=edit.of_files(diff))
