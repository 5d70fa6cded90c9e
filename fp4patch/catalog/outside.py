"""Patches of directories outside of the catalog: each is one unified diff, applied ahead of a variant's own patches.

A tree keeps the diff of such a patch with its receipt, so that the directory is not needed again.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Reader
from fp4patch.core.errors import ManifestError, Refused
from fp4patch.core.lex_error import LexError
from fp4patch.edits import Diff

is_name = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII).fullmatch
is_link = re.compile(r"https?://[!-~]+").fullmatch
_KEYS = frozenset(("name", "target", "version", "title", "reason", "link", "applies", "retire", "edits", "directory"))


@dataclass(frozen=True, kw_only=True)
class OutsidePatch(Patch):
    """A patch that consists of one unified diff, and that the catalog does not have."""

    file: str
    """Name of the diff in its directory."""
    diff: bytes

    @property
    def contents(self) -> dict[str, bytes]:
        """The files of its directory, by name."""
        return {"patch.toml": (Path(self.directory) / "patch.toml").read_bytes(), self.file: self.diff}

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the diff changes."""
        return tuple(edit.named_file for edit in self.edits)


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


def kept(id_: str, link: str, diff: bytes) -> OutsidePatch:
    """Return the patch of which a tree kept the diff. Refused: the diff is not one that was applied."""
    target, _, name = id_.partition("/")
    edit = Diff(file="kept.diff", sha256=sha256(diff).hexdigest())
    patch = Patch(name=name, target=target, title=name, reason=link, link=link, applies=">=0", retire="", edits=(edit,))
    try:
        return _outside(patch, edit, diff)
    except LexError as error:
        raise Refused(f"the diff that was kept of {id_!a} is none: {error}", help="look at it") from error


def _outside(patch: Patch, edit: Diff, diff: bytes) -> OutsidePatch:
    values = {field.name: getattr(patch, field.name) for field in fields(patch)}
    return replace(OutsidePatch(**values, file=edit.file, diff=diff), edits=edit.of_files(diff))
