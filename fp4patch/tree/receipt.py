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
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal

from fp4patch.catalog.outside import OutsidePatch, is_link, is_name, kept
from fp4patch.core.document import SCHEMA
from fp4patch.core.errors import Refused
from fp4patch.core.results import Problem
from fp4patch.core.tree_path import is_inside
from fp4patch.tree import files
from fp4patch.tree.files import STATE_DIR, Tree, sha256
from fp4patch.tree.result import PatchStatus, Remainder

_STRICT = {"extra": "forbid", "strict": True}
"""How pydantic validates a receipt: no other keys, and no value of another type."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GITIGNORE = b"# Made by fp4patch; `fp4patch revert` removes this folder.\n*\n"


@dataclass(frozen=True)
class ReceiptFile:
    """One patched file by the SHA-256 (hex) of its bytes: pristine ones, and those that we wrote."""

    pristine_sha256: str
    written_sha256: str
    mode: int
    """Permission bits before us."""
    patches: tuple[str, ...]
    """Those that changed it, in order: ``cutlass/e2m1-guard 1``."""
    before_sha256: str | None = None
    """The bytes that a change replaces, while it is being made."""
    __pydantic_config__: ClassVar = _STRICT


@dataclass(frozen=True)
class KeptDiff:
    """A unified diff that was applied: its bytes are kept beside the pristine ones."""

    patch: str
    """Id of the patch."""
    link: str
    """Address that it is from."""
    sha256: str
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
    files: dict[str, ReceiptFile]
    diffs: tuple[KeptDiff, ...] = ()
    """Patches that the catalog does not have. Behind them, while files are being replaced, those from before."""
    states: tuple[PatchStatus, ...] = ()
    remainders: tuple[Remainder, ...] = ()
    basis: str = ""
    """Hash of all that states and remainders depend on, beside the files above: as long as it is the same, they are."""
    state: Literal["applying", "applied"] = "applied"
    """Applying: files are being replaced, or a command was interrupted."""
    schema: int = SCHEMA
    __pydantic_config__: ClassVar = _STRICT


def dumps(receipt: Receipt) -> bytes:
    """Return the document: stable order, so equal receipts are equal bytes."""
    return (json.dumps(asdict(receipt), indent=2, sort_keys=True) + "\n").encode()


def loads(data: bytes, where: str) -> Receipt:
    """Return the receipt in a document. Refused if it is of another schema, or not what ``dumps`` writes."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - it takes a while to load

    try:
        document = json.loads(data)
        if isinstance(document, dict) and document.get("schema", SCHEMA) != SCHEMA:
            raise Refused(
                f"{where} was written by fp4patch {document.get('fp4patch', 'of another release')} "
                f"(schema {document['schema']}, this one reads {SCHEMA})",
                help="update fp4patch; or revert with the fp4patch that patched the tree, and apply with this one",
            )
        receipt: Receipt = TypeAdapter(Receipt).validate_json(data.removeprefix(b"\xef\xbb\xbf"))  # as editors leave it
        _check(receipt)
        return receipt
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where} is damaged ({_first_line(error)})", help=_anew(Path(where).parent)) from error


def _first_line(error: Exception) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:3] if "pydantic.dev" not in line)


def _check(receipt: Receipt) -> None:
    """ValueError: a receipt that we do not write."""
    if not receipt.files:
        raise ValueError("no files")  # and then there would be no receipt
    for diff in receipt.diffs:
        target, _, name = diff.patch.partition("/")
        if (
            target != receipt.target
            or not is_name(name)
            or not is_link(diff.link)
            or not _SHA256.fullmatch(diff.sha256)
        ):
            raise ValueError(f"{diff.patch!r} is not a diff that was applied")
    for path, file in receipt.files.items():
        if not is_inside(path):
            raise ValueError(f"{path!r} is not a path inside the tree")
        for hexadecimal in (file.pristine_sha256, file.written_sha256, file.before_sha256 or "0" * 64):
            if not _SHA256.fullmatch(hexadecimal):
                raise ValueError(f"{hexadecimal!r} is not a SHA-256")
        if not 0 <= file.mode <= 0o777:
            raise ValueError(f"{file.mode!r} is not a mode")


class StateDirectory:
    """The ``.fp4patch`` directory of one tree. Who writes holds the tree's lock.

    What is in it is input from an untrusted tree: each file must be a regular one, and it may name only files that
    ``may_change`` allows.
    """

    def __init__(self, tree: Tree, may_change: Callable[[Path, str], bool]) -> None:
        self.tree = tree
        self.folder = tree.root / STATE_DIR
        self.blobs = self.folder / "blobs"
        self._may_change = may_change
        for folder in (self.folder, self.blobs):
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                # A link here would lead what we write out of the tree.
                raise Refused(f"{folder} is not a directory of fp4patch's making", help="look at it, and move it away")

    # --- reading ---

    def receipt(self) -> Receipt | None:
        """Return what was done to the tree; None if nothing was. Refused if the document is damaged."""
        return self._document("receipt.json")

    def blob(self, sha: str) -> bytes:
        """Return pristine bytes, checked. Refused if they are missing or damaged."""
        data = self._read(self.blobs / sha)
        if data is None or sha256(data) != sha:
            found = "gone" if data is None else "damaged"
            raise _refuse(self.blobs / sha, "a pristine copy, as it was kept", found, _anew(self.folder))
        return data

    def outside(self, receipt: Receipt | None) -> tuple[OutsidePatch, ...]:
        """Return the patches of which the tree keeps the diffs. Refused: one is missing or damaged."""
        diffs = receipt.diffs if receipt else ()
        return tuple(kept(diff.patch, diff.link, self.blob(diff.sha256)) for diff in diffs)

    def _document(self, name: str) -> Receipt | None:
        path = self.folder / name
        data = self._read(path)
        if data is None:
            return None
        receipt = loads(data, str(path))
        of_diffs = {file for patch in self.outside(receipt) for file in patch.files}
        for file in receipt.files:
            if file not in of_diffs and not self._may_change(self.tree.root, file):
                raise Refused(
                    f"{path} names {file!a}, a file that no patch of this fp4patch is about",
                    help=f"if another fp4patch wrote it, revert the tree with that one; else {_anew(self.folder)}",
                )
        return receipt

    def _read(self, path: Path) -> bytes | None:
        """Return the bytes of a file of ours, never through a symlink; None if there is none."""
        try:
            content = files.read_file(path)
        except OSError as error:
            mine = "run fp4patch as the user who patched the tree"
            help_ = mine if isinstance(error, PermissionError) else "look at it, and move it away"
            raise _refuse(path, "a file to read", str(error.strerror), help_) from error
        return content[0] if content else None

    # --- writing, in this order ---

    def prepare(self, begins: Receipt, ends: Receipt | None, blobs: Iterable[bytes]) -> None:
        """Write all that a change needs here, and that can fail for want of room. Nothing counts yet."""
        files.make_folder(self.folder)
        if self._read(self.folder / ".gitignore") != _GITIGNORE:
            files.create(self.folder / ".gitignore", _GITIGNORE)
        files.create(self.folder / "next.json", dumps(begins))
        if ends:
            files.create(self.folder / "applied.json", dumps(ends))
        files.make_folder(self.blobs)
        for data in blobs:
            path = self.blobs / sha256(data)
            if self._read(path) != data:
                files.create(path, data)
        for folder in (self.blobs, self.folder, self.tree.root):
            files.sync(folder)

    def begin(self) -> None:
        """From here the change counts: what is interrupted is completed or reverted by the next command."""
        files.rename(self.folder / "next.json", self.folder / "receipt.json")
        files.sync(self.folder)

    def end(self, ends: Receipt | None) -> None:
        """Mark the receipt as applied, or remove it; then remove what it does not need."""
        if ends:
            files.rename(self.folder / "applied.json", self.folder / "receipt.json")
        self._remove_blobs(ends)
        if ends is None:
            files.remove(self.folder / "receipt.json")
            self._remove_folder()

    def tidy(self, receipt: Receipt | None) -> None:
        """Remove what an interrupted command left that the receipt does not need."""
        with suppress(Refused):
            prepared = self._document("next.json")
            for path in {**(prepared.files if prepared else {}), **(receipt.files if receipt else {})}:
                with suppress(Refused):
                    files.remove(self.temporary(path))
        for name in ("next.json", "applied.json"):
            files.remove(self.folder / name)
        self._remove_blobs(receipt)
        if receipt is None and self.folder.is_dir():
            self._remove_folder()

    def temporary(self, path: str) -> Path:
        """Return the place of the new bytes of a file."""
        place = self.tree.locate(path)
        return place.with_name(f".{place.name}.fp4patch-new")

    def _remove_blobs(self, receipt: Receipt | None) -> None:
        needed = {file.pristine_sha256 for file in receipt.files.values()} if receipt else set()
        needed |= {diff.sha256 for diff in receipt.diffs} if receipt else set()
        names = os.listdir(self.blobs) if self.blobs.is_dir() else []  # noqa: PTH208 - their names alone are needed
        for name in names:
            if _SHA256.fullmatch(name) and name not in needed:
                files.remove(self.blobs / name)

    def _remove_folder(self) -> None:
        """Remove the directory, unless others put something there: it goes with it, and with its own remains."""
        with suppress(OSError):
            files.remove(self.blobs)
        if set(os.listdir(self.folder)) <= {".gitignore"}:  # noqa: PTH208 - as above
            files.remove(self.folder / ".gitignore")
            files.remove(self.folder)


def _anew(folder: Path) -> str:
    return f"put back a pristine tree (git checkout, or fetch it again), and delete {folder}"


def _refuse(path: Path, expected: str, found: str, help: str) -> Refused:  # noqa: A002
    problem = Problem(expected=expected, found=found, help=help, file=str(path))
    return Refused(f"{path}: expected {expected}, found {found}", help=help, problems=[problem])
