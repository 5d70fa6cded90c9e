"""Give trees their desired states: all of them, or none.

A change is staged for each tree, which collects every problem, then written: first all that needs room or permission
(pristine copies, receipts, the new bytes beside each file), then all receipts begin, then each file is replaced by a
rename, then all receipts end. A command that is killed leaves each file with its old, its pristine or its intended
bytes, and a receipt that knows all three.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote

from fp4patch.core.document import HIDDEN, Document, shown
from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.results import Problem, State
from fp4patch.tree import files
from fp4patch.tree.candidate_files import basis
from fp4patch.tree.files import refuse, sha256, unified
from fp4patch.tree.fold import FoldedFile
from fp4patch.tree.locked import COMPLETION, LockedTree
from fp4patch.tree.receipt import Receipt, ReceiptFile


@dataclass(frozen=True)
class FileResult(Document):
    """One file of a tree."""

    path: str
    patches: tuple[str, ...]
    """Patches with their versions: ``cutlass/e2m1-guard 1``."""
    before: bytes | None = field(metadata=HIDDEN)
    after: bytes | None = field(metadata=HIDDEN)

    @property
    def changed(self) -> bool:
        """True if the file's bytes change."""
        return self.before != self.after

    @property
    @shown()
    def state(self) -> State:
        """State at the end of the command, or of a real run."""
        return State.APPLIED if self.patches else State.PRISTINE

    @property
    @shown()
    def diff(self) -> str:
        """The change as a unified diff, as ``git apply`` accepts it."""
        return unified(self.path, self.before or b"", self.after or b"") if self.changed else ""

    @property
    @shown()
    def before_sha256(self) -> str:
        """Hash of the bytes before; equal to that after if the file does not change."""
        return sha256(self.before)

    @property
    @shown()
    def after_sha256(self) -> str:
        """Hash of the bytes after."""
        return sha256(self.after)


@dataclass(frozen=True)
class Staged:
    """What gives a tree its desired state: each file, the receipts, and every reason to refuse it."""

    tree: LockedTree
    files: Mapping[str, FileResult]
    problems: tuple[Problem, ...] = ()
    begins: Receipt | None = None
    """The receipt while files are being replaced; None if nothing changes, or may be written."""
    ends: Receipt | None = None
    """The receipt of the desired state; None if that is pristine."""
    diffs: tuple[bytes, ...] = ()
    """Diffs that the receipts name."""

    @property
    def changed(self) -> bool:
        """True if a file changes, a receipt goes, or a change that was interrupted is completed."""
        return self.begins is not None and (bool(self.places) or self.tree.interrupted or self.ends is None)

    @cached_property
    def places(self) -> Mapping[str, Path]:
        """Where each file that changes is."""
        root = self.tree.root
        return {path: files.locate(root, path) for path, file in sorted(self.files.items()) if file.changed}


def stage(
    tree: LockedTree,
    desired: Mapping[str, FoldedFile],
    record: Receipt | None = None,
    diffs: Iterable[bytes] = (),
) -> Staged:
    """Return what changes, with every reason to refuse it. Nothing is written.

    Each file that is not ``desired`` gets its pristine bytes. ``record`` is what the receipt is to say, beside its
    files, and ``diffs`` the contents of those that it names. A file that is neither pristine nor what fp4patch wrote,
    or that cannot be replaced, is a problem. Files with problems of their own stay as they are, and nothing is written.
    """
    staged, problems = dict[str, FileResult](), list[Problem]()
    undecided = {path for path, file in desired.items() if file.problems}
    for path in dict.fromkeys([*desired, *tree.on_record]):
        if path not in undecided:
            try:
                staged[path] = _staged_file(tree, path, desired.get(path))
            except Refused as refused:
                problems += refused.problems
    record = record or tree.receipt
    if problems or undecided or record is None:
        return Staged(tree, staged, tuple(problems))
    begun = {
        path: ReceiptFile(sha256(tree.pristine(path)), sha256(file.after), file.patches, sha256(file.before))
        for path, file in staged.items()
        if file.patches or path in tree.on_record
    }
    lasting = {path: replace(file, before_sha256="") for path, file in begun.items() if file.patches}
    ends = None
    if lasting:
        hashes = {path: sha256(file.after) for path, file in staged.items()}
        ends = replace(record, files=lasting, state="applied", basis=basis(tree, hashes))
    begins = None
    if ends != tree.receipt or any(file.changed for file in staged.values()):
        kept = tree.receipt.diffs if tree.receipt else ()
        begins = replace(record, files=begun, diffs=tuple(dict.fromkeys([*record.diffs, *kept])), state="applying")
    return Staged(tree, staged, (), begins, ends, tuple(diffs))


def _staged_file(tree: LockedTree, path: str, desired: FoldedFile | None) -> FileResult:
    current = tree.current(path)
    after, patches = (desired.desired, desired.patches) if desired else (tree.pristine(path), ())
    if after is None or current == after:
        return FileResult(path, patches, current, current)
    if current is not None and tree.state(path, after) is State.FOREIGN:
        blob = tree.state_directory.blobs / tree.on_record[path].pristine_sha256
        advice = f"`cp {quote(str(blob))} {quote(str(tree.root / path))}` takes the edit away; then run this again. "
        advice += "If the whole tree was replaced by another release, delete its .fp4patch directory"
        found = "a file that was edited since"
        raise refuse(path, "the pristine bytes, or what fp4patch wrote", found, help=advice, state=State.FOREIGN)
    files.must_be_replaceable(tree.root, path)
    return FileResult(path, patches, current, after)


def write(staged: Sequence[Staged]) -> None:
    """Give each tree its staged state; a tree in the pristine state keeps no trace of fp4patch.

    Refused, with every tree as it was, if staging found a problem, if a file was changed since it was read, or if there
    is no room.
    """
    if problems := [problem for change in staged for problem in change.problems]:
        raise Refused(f"{problems[0].found}; nothing was changed", help=problems[0].help, problems=problems)
    changing = [change for change in staged if change.begins]
    try:
        for change in staged:
            change.tree.state_directory.tidy(change.tree.receipt)
        for change in changing:
            _prepare(change)
        _must_be_as_read(changing)
    except BaseException as error:
        for change in changing:
            with suppress(OSError):  # what remains does no harm, and goes with the next change
                change.tree.state_directory.tidy(change.tree.receipt)
        if isinstance(error, OSError):
            raise Refused(f"{_reason(error)}; nothing was changed", help=f"{_REMEDY}, and run this again") from error
        raise
    try:
        for change in changing:
            change.tree.state_directory.begin()
        for change in changing:
            _replace_files(change)
        for change in changing:
            change.tree.state_directory.end(change.ends)
    except OSError as error:
        raise Fp4PatchError(
            f"the change was interrupted: {_reason(error)}", help=f"{_REMEDY}; then {COMPLETION}"
        ) from error


_REMEDY = "make room, or become the user who may write there"


def _prepare(change: Staged) -> None:
    """Write everything that needs room on the disk or permission, and that nothing counts on yet."""
    tree, state = change.tree, change.tree.state_directory
    assert change.begins
    pristine = (tree.pristine(path) for path in change.begins.files)
    state.prepare(change.begins, change.ends, (*(data for data in pristine if data is not None), *change.diffs))
    for path, place in change.places.items():
        files.create(state.temporary(path), change.files[path].after or b"", like=place)


def _must_be_as_read(changing: Sequence[Staged]) -> None:
    """Refused: a file is not what it was when it was read."""
    for change in changing:
        for path in change.places:
            if files.read(change.tree.root, path) != change.files[path].before:
                raise refuse(path, "the bytes that were read a moment ago", "others", help="run the command again")


def _replace_files(change: Staged) -> None:
    for path, place in change.places.items():
        # Never a write into the file: package managers hard-link theirs, and readers have them open.
        files.rename(change.tree.state_directory.temporary(path), place)
    for folder in {place.parent for place in change.places.values()}:
        files.sync(folder)


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
