"""The record of the changes of a tree, and the directory in the tree that holds it beside the pristine bytes.

``.fp4patch/`` holds ``receipt.json``, the pristine bytes of each file that it names and the diffs that were applied
(``blobs/<sha256>``), and a ``.gitignore`` that hides the directory. While files are being replaced the receipt's state
is ``applying``: then each file has its pristine bytes, those from before or those that it is to have, and the receipt
has the hash of all three.

A change is prepared in ``next.json``, the receipt that begins it, and ``applied.json``, the one that ends it. The new
bytes of ``NAME`` are in ``.NAME.fp4patch-new`` beside it, where a rename is sure to stay on one file system.
"""

import json
import os
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import TypeAdapter

from fp4patch.catalog.outside import Origin, OutsidePatch, is_link, is_name, kept
from fp4patch.core.document import SCHEMA, Document
from fp4patch.core.errors import Refused
from fp4patch.core.results import State
from fp4patch.core.table import Sha256, must
from fp4patch.core.tree_path import is_inside
from fp4patch.tree import files
from fp4patch.tree.files import STATE_DIR, locate, refuse, sha256

_STRICT = {"extra": "forbid", "strict": True}
"""How pydantic validates a receipt: no other keys, and no value of another type."""
_GITIGNORE = b"# Made by fp4patch; `fp4patch revert` removes this folder.\n*\n"


@dataclass(frozen=True)
class PatchStatus(Document):
    """A patch on this tree."""

    patch: str
    state: State
    because: str
    """Reason, if the state is neither applied nor pristine."""


@dataclass(frozen=True)
class Remainder(Document):
    """A place that contains what a patch searches for and that the patch leaves unchanged."""

    patch: str
    """Id of the patch that leaves the place unchanged."""
    file: str
    line: int
    found: str
    """Text that the patch searches for, or the line that has it."""
    because: str
    """Reason why it remains."""


@dataclass(frozen=True)
class ReceiptFile:
    """One patched file by the SHA-256 (hex) of its bytes: pristine ones, and those that we wrote."""

    pristine_sha256: Sha256 | Literal[""]
    """Empty: a patch created the file."""
    written_sha256: Sha256 | Literal[""]
    """Empty: a patch deleted the file."""
    patches: tuple[str, ...]
    """Those that changed it, in order: ``cutlass/e2m1-guard 1``."""
    before_sha256: Sha256 | Literal[""] = ""
    """The bytes that a change replaces, while it is being made; empty if there was no file."""
    mode: Annotated[int, must(lambda bits: 0 <= bits <= 0o777, "permission bits")] | None = None
    """The pristine permission bits, of a file that a patch deletes or gives others."""
    executable: bool | None = None
    """Whether we made the file executable, or not; None if that is as it was."""
    __pydantic_config__: ClassVar = _STRICT


@dataclass(frozen=True)
class KeptDiff:
    """A unified diff that was applied: its bytes are kept beside the pristine ones."""

    patch: Annotated[str, must(lambda text: is_name(text.partition("/")[2]), "the id of a patch")]
    link: Annotated[str, must(lambda text: not text or is_link(text), "the address that it is from")]
    sha256: Sha256
    """Of the diff that was applied."""
    stack: Annotated[str, must(lambda text: not text or is_name(text), "the name of a stack")] = ""
    """The stack that it is from; empty if it is a directory of its own."""
    stack_sha256: Sha256 | Literal[""] = ""
    """Hash of the names, the files and the order of the stack's patches."""
    file_sha256: Sha256 | Literal[""] = ""
    """Hash of the patch file in the stack."""
    merged: bool = False
    """True if the diff is that of a three-way merge of the file onto this release."""
    __pydantic_config__: ClassVar = _STRICT


@dataclass(frozen=True)
class Receipt:
    """Record of the changes of a tree. ``files`` has each file that differs from its pristine bytes because of us."""

    fp4patch: str
    target: str
    version: str
    variant: str
    patches: tuple[str, ...]
    """All of the variant's, with their versions, also those that had nothing to do: ``cutlass/e2m1-guard 1``."""
    files: Annotated[dict[Annotated[str, must(is_inside, "a path inside the tree")], ReceiptFile], must(bool, "a file")]
    diffs: tuple[KeptDiff, ...] = ()
    """Patches that the catalog does not have. Behind them, while files are being replaced, those from before."""
    folders: tuple[Annotated[str, must(is_inside, "a path inside the tree")], ...] = ()
    """Directories that we made for new files, and remove when they are empty."""
    states: tuple[PatchStatus, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    basis: str = ""
    """Hash of all that states and remainders depend on: as long as it is the same, they are."""
    state: Literal["applying", "applied"] = "applied"
    """Applying: files are being replaced, or a command was interrupted."""
    schema: Literal[1] = SCHEMA
    __pydantic_config__: ClassVar = _STRICT


def dumps(receipt: Receipt) -> bytes:
    """Return the document: stable order, so equal receipts are equal bytes."""
    return (json.dumps(asdict(receipt), indent=2, sort_keys=True) + "\n").encode()


def loads(data: bytes, path: Path) -> Receipt:
    """Return the receipt in a document. Refused if it is not what ``dumps`` of this fp4patch writes."""
    try:
        return TypeAdapter(Receipt).validate_json(data)
    except ValueError as error:
        reason = " ".join(line.strip() for line in str(error).splitlines()[:3] if "pydantic.dev" not in line)
        raise Refused(
            f"{path} is damaged, or of another release of fp4patch ({reason})",
            help=f"revert the tree with the fp4patch that patched it; else {_anew(path.parent)}",
        ) from error


class StateDirectory:
    """The ``.fp4patch`` directory of one tree. Who writes holds the tree's lock.

    What is in it is input from an untrusted tree: each file must be a regular one, and it may name only files that
    ``may_change`` allows.
    """

    def __init__(self, root: Path, may_change: Callable[[str], bool]) -> None:
        self.root = root
        self.folder = root / STATE_DIR
        self.blobs = self.folder / "blobs"
        self._may_change = may_change
        for folder in (self.folder, self.blobs):
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                # A link here would lead what we write out of the tree.
                raise Refused(f"{folder} is not a directory of fp4patch's making", help="look at it, and move it away")

    # --- reading ---

    def receipt(self, name: str = "receipt.json") -> Receipt | None:
        """Return what was done to the tree; None if nothing was. Refused if the document is damaged."""
        path = self.folder / name
        data = self._read(path)
        if data is None:
            return None
        receipt = loads(data, path)
        of_diffs = {file for patch in self.outside(receipt) for file in patch.files}
        holding = (folder for folder in receipt.folders if any(file.startswith(f"{folder}/") for file in receipt.files))
        allowed = {*of_diffs, *holding}
        for file in (*receipt.files, *receipt.folders):
            if file not in allowed and not self._may_change(file):
                raise Refused(
                    f"{path} names {file!a}, a file that no patch of this fp4patch is about",
                    help=f"if another fp4patch wrote it, revert the tree with that one; else {_anew(self.folder)}",
                )
        return receipt

    def blob(self, sha: str) -> bytes:
        """Return pristine bytes, checked. Refused if they are missing or damaged."""
        data = self._read(self.blobs / sha)
        if data is None or sha256(data) != sha:
            found = "gone" if data is None else "damaged"
            raise refuse(str(self.blobs / sha), "a pristine copy, as it was kept", found, help=_anew(self.folder))
        return data

    def outside(self, receipt: Receipt) -> tuple[OutsidePatch, ...]:
        """Return the patches of which the tree keeps the diffs. Refused: one is missing or damaged."""
        return tuple(
            kept(
                diff.patch,
                diff.link,
                self.blob(diff.sha256),
                Origin(diff.stack, diff.stack_sha256, diff.file_sha256, diff.merged),
            )
            for diff in receipt.diffs
        )

    def _read(self, path: Path) -> bytes | None:
        """Return the bytes of a file of ours, never through a symlink; None if there is none."""
        try:
            return files.read_file(path)
        except OSError as error:
            advice = "run fp4patch as the user who patched the tree; or look at it, and move it away"
            raise refuse(str(path), "a file to read", str(error.strerror), help=advice) from error

    # --- writing, in this order ---

    def prepare(self, begins: Receipt, ends: Receipt | None, blobs: Iterable[bytes]) -> None:
        """Write all that a change needs here, and that can fail for want of room. Nothing counts yet."""
        files.make_folder(self.folder)
        files.make_folder(self.blobs)
        contents = {self.blobs / sha256(data): data for data in blobs}
        contents |= {self.folder / ".gitignore": _GITIGNORE, self.folder / "next.json": dumps(begins)}
        if ends:
            contents[self.folder / "applied.json"] = dumps(ends)
        for path, data in contents.items():
            if self._read(path) != data:
                files.create(path, data)
        for folder in (self.blobs, self.folder, self.root):
            files.sync(folder)

    def begin(self) -> None:
        """From here the change counts: what is interrupted is completed or reverted by the next command."""
        files.rename(self.folder / "next.json", self.folder / "receipt.json")
        files.sync(self.folder)

    def end(self, ends: Receipt | None) -> None:
        """Mark the receipt as applied, or remove it; then remove what it does not need."""
        if ends:
            files.rename(self.folder / "applied.json", self.folder / "receipt.json")
        else:
            files.remove(self.folder / "receipt.json")
        self.tidy(ends)

    def tidy(self, receipt: Receipt | None) -> None:
        """Remove what an interrupted command left that the receipt does not need; without one, all that is ours."""
        with suppress(Refused):
            for begun in (self.receipt("next.json"), receipt):
                for name in begun.files if begun else ():
                    files.remove(self.temporary(name))
            self.remove_folders(self.left_folders(receipt))
        needed = {file.pristine_sha256 for file in receipt.files.values()} if receipt else set()
        needed |= {diff.sha256 for diff in receipt.diffs} if receipt else set()
        unneeded = [blob for blob in self.blobs.glob("*") if blob.name not in needed]
        for path in (self.folder / "next.json", self.folder / "applied.json", *unneeded):
            files.remove(path)
        if receipt is None and self.folder.is_dir():
            with suppress(OSError):  # others put something there
                for path in (self.blobs, self.folder / ".gitignore", self.folder):
                    files.remove(path)

    def left_folders(self, receipt: Receipt | None) -> Set[str]:
        """Return directories that a command made that was interrupted before it counted: tidying removes them."""
        begun = self.receipt("next.json")
        return set(begun.folders if begun else ()) - set(receipt.folders if receipt else ())

    def remove_folders(self, folders: Iterable[str]) -> None:
        """Remove directories that we made, as far as they are empty."""
        for folder in sorted(folders, reverse=True):  # the inner ones first
            with suppress(Refused):
                files.remove_folder(locate(self.root, folder))

    def temporary(self, path: str) -> Path:
        """Return the place of the new bytes of a file."""
        place = locate(self.root, path)
        return place.with_name(f".{place.name}.fp4patch-new")


def _anew(folder: Path) -> str:
    return f"put back a pristine tree (git checkout, or fetch it again), and delete {folder}"
