"""Give trees their desired states: all of them, or none.

A change is staged for each tree, which collects every problem, then written: first all that needs room or permission
(pristine copies, receipts, the new bytes beside each file), then all receipts begin, then each file is replaced by a
rename, then all receipts end. A command that is killed leaves each file with its old, its pristine or its intended
bytes, and a receipt that knows all three.
"""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from fp4patch.catalog.outside import OutsidePatch
from fp4patch.core.document import HIDDEN, Document, shown
from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.results import Problem, State
from fp4patch.core.tree_path import is_source
from fp4patch.tree import files
from fp4patch.tree.files import allowed, refuse, sha256, unified
from fp4patch.tree.fold import FoldedFile, FoldedTree
from fp4patch.tree.locked import COMPLETION, LockedTree
from fp4patch.tree.receipt import Receipt, ReceiptFile
from fp4patch.tree.scan import basis, source_hashes


@dataclass(frozen=True)
class FileResult(Document):
    """One file of a tree."""

    path: str
    patches: tuple[str, ...]
    """Patches with their versions: ``cutlass/e2m1-guard 1``."""
    before: bytes | None = field(metadata=HIDDEN)
    after: bytes | None = field(metadata=HIDDEN)
    mode: int | None = field(default=None, metadata=HIDDEN)
    """Permission bits that it gets; None: those that it has."""
    pristine_mode: int | None = field(default=None, metadata=HIDDEN)
    """Those that it had without us, where we give it others or delete it."""
    executable: bool | None = field(default=None, metadata=HIDDEN)
    """Whether we make it executable, or not."""

    @property
    def changed(self) -> bool:
        """True if the file's bytes or permission bits change."""
        return self.before != self.after or self.mode is not None

    @property
    @shown()
    def state(self) -> State:
        """State at the end of the command, or of a real run."""
        return State.APPLIED if self.patches else State.PRISTINE

    @property
    @shown()
    def diff(self) -> str:
        """The change as a unified diff, as ``git apply`` accepts it."""
        return self._head + unified(self.path, self.before or b"", self.after or b"") if self.changed else ""

    @property
    def _head(self) -> str:
        """What git says of a file that comes, goes, or gets other mode bits."""
        bits = "100755" if self.executable else "100644"
        names, other = f"diff --git a/{self.path} b/{self.path}\n", "100644" if self.executable else "100755"
        if self.before is None:
            return f"{names}new file mode {bits}\n"
        if self.after is None:
            return f"{names}deleted file mode 100644\n"
        return f"{names}old mode {other}\nnew mode {bits}\n" if self.mode is not None else ""


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

    @property
    def folders_to_remove(self) -> Set[str]:
        """Directories that we made, and that no file needs any more."""
        begun, lasting = (set(receipt.folders) if receipt else set() for receipt in (self.begins, self.ends))
        return begun - lasting

    @cached_property
    def places(self) -> Mapping[str, Path]:
        """Where each file that changes is."""
        root = self.tree.root
        return {path: files.locate(root, path) for path, file in sorted(self.files.items()) if file.changed}


def stage(tree: LockedTree, folds: FoldedTree, record: Receipt) -> Staged:
    """Return what a fold changes, with every reason to refuse it. Nothing is written.

    ``record`` is what the receipt is to say, beside its files. A file that is neither pristine nor what fp4patch wrote,
    or that cannot be replaced, is a problem.
    """
    staged, problems = dict[str, FileResult](), list(folds.problems)
    for path, file in folds.files.items():
        try:
            if not file.problems:
                staged[path] = _staged_file(tree, path, file)
        except Refused as refused:
            problems += refused.problems
    problems += _in_the_way(tree, staged)
    if problems:
        return Staged(tree, staged, tuple(problems))
    begun = {
        path: ReceiptFile(
            sha256(tree.pristine(path)),
            sha256(file.after),
            file.patches,
            sha256(file.before),
            file.pristine_mode,
            file.executable,
        )
        for path, file in staged.items()
        if file.patches or (path in tree.on_record and file.after is not None)
    }
    # A file that is to go keeps its entry until the end; one that is gone, as upstream's is, has nothing to keep.
    going = [path for path in staged if path in tree.on_record.keys() - begun.keys()]
    begun |= {
        path: ReceiptFile("", "", ()) if staged[path].before is None else replace(tree.on_record[path], patches=())
        for path in going
    }
    made = _missing_folders(tree, staged)
    folders = tuple(sorted({*made, *(tree.receipt.folders if tree.receipt else ())}))
    lasting = {path: replace(file, before_sha256="") for path, file in begun.items() if file.patches}
    ends = None
    if lasting:
        hashes = {
            path: sha256(file.after)
            for path, file in staged.items()
            if path in lasting or (file.after is not None and is_source(path.rpartition("/")[2]))
        }
        sources = folds.scan.hashes if folds.scan else source_hashes(tree)
        needed = tuple(folder for folder in folders if any(path.startswith(f"{folder}/") for path in lasting))
        there = {path: digest for path, digest in sources.items() if path not in staged or path in hashes}
        ends = replace(record, files=lasting, folders=needed, state="applied", basis=basis(there, hashes))
    begins = None
    if ends != tree.receipt or any(file.changed for file in staged.values()):
        kept = tree.receipt.diffs if tree.receipt else ()
        named = tuple(dict.fromkeys([*record.diffs, *kept]))
        begins = replace(record, files=begun, folders=folders, diffs=named, state="applying")
    diffs = tuple(patch.diff for patch in folds.patches if isinstance(patch, OutsidePatch))
    return Staged(tree, staged, (), begins, ends, diffs)


def _staged_file(tree: LockedTree, path: str, file: FoldedFile) -> FileResult:
    current = tree.current(path)
    mode, pristine_mode = _modes(tree, path, file)
    if current == file.desired and mode is None:
        return FileResult(path, file.patches, current, current, None, pristine_mode, file.executable)
    if current is not None and current != file.desired and tree.state(path, file.desired) is State.FOREIGN:
        origin = tree.origin(path)
        found, advice = "a file that was edited since", origin.help if origin else ""
        raise refuse(path, "the pristine bytes, or what fp4patch wrote", found, help=advice, state=State.FOREIGN)
    files.must_be_replaceable(tree.root, path)
    return FileResult(path, file.patches, current, file.desired, mode, pristine_mode, file.executable)


def _modes(tree: LockedTree, path: str, file: FoldedFile) -> tuple[int | None, int | None]:
    """Return the permission bits that a file is to get, None if it has them; and the pristine ones, if others matter.

    Of a file that is there, only the bits that make it executable change. One that is made gets no more than this
    process gives to any file.
    """
    recorded = tree.on_record.get(path)
    now = tree.mode(path)
    pristine = tree.pristine_mode(path)
    matter = file.executable is not None or file.desired is None or (recorded and recorded.mode is not None)
    if not matter:
        return None, None
    if file.desired is None:
        return None, pristine
    base = now if now is not None else allowed(0o666 if pristine is None else pristine)
    if file.executable is None:
        bits = (base if pristine is None or now is None else pristine) & 0o111
    else:
        bits = (base & 0o444) >> 2 if file.executable else 0
    wanted = (base & ~0o111) | bits
    return wanted if wanted != now else None, pristine


def _missing_folders(tree: LockedTree, staged: Mapping[str, FileResult]) -> Iterator[str]:
    """Yield the directories that are not there, or will not be once the tree is tidied, and that new files need."""
    left: Set[str] = set()
    with suppress(Refused):  # a damaged document of a command that never counted
        left = tree.state_directory.left_folders(tree.receipt)
    for path, file in staged.items():
        for folder in PurePosixPath(path).parents if file.after is not None and file.before is None else ():
            if folder.name and (folder.as_posix() in left or not os.path.lexists(tree.root / folder)):
                yield folder.as_posix()


def _in_the_way(tree: LockedTree, staged: Mapping[str, FileResult]) -> Iterator[Problem]:
    """Yield a problem for each new file in a directory whose name a file has, or is to have."""
    for path, file in staged.items():
        for folder in PurePosixPath(path).parents if file.after is not None and file.before is None else ():
            other = staged.get(folder.as_posix())
            if (tree.root / folder).is_file() or (other and other.after is not None):
                yield from refuse(path, "a directory to make it in", f"the file {folder}").problems


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
            raise Refused(f"{error}; nothing was changed", help=f"{_REMEDY}, and run this again") from error
        raise
    try:
        for change in changing:
            change.tree.state_directory.begin()
        for change in changing:
            _replace_files(change)
        for change in changing:
            change.tree.state_directory.end(change.ends)
    except OSError as error:
        raise Fp4PatchError(f"the change was interrupted: {error}", help=f"{_REMEDY}; then {COMPLETION}") from error


_REMEDY = "make room, or become the user who may write there"


def _prepare(change: Staged) -> None:
    """Write everything that needs room on the disk or permission, and that nothing counts on yet."""
    tree, state = change.tree, change.tree.state_directory
    assert change.begins
    pristine = [data for path in change.begins.files if (data := tree.pristine(path)) is not None]
    state.prepare(change.begins, change.ends, (*pristine, *change.diffs))
    for folder in sorted(change.begins.folders):
        if any(path.startswith(f"{folder}/") and change.files[path].after is not None for path in change.places):
            files.make_folder(tree.root / folder)
            files.sync((tree.root / folder).parent)
    for path, place in change.places.items():
        file = change.files[path]
        if file.after is not None:
            files.create(state.temporary(path), file.after, like=place, permissions=file.mode)


def _must_be_as_read(changing: Sequence[Staged]) -> None:
    """Refused: a file is not what it was when it was read."""
    for change in changing:
        for path in change.places:
            if files.read(change.tree.root, path) != change.files[path].before:
                raise refuse(path, "the bytes that were read a moment ago", "others", help="run the command again")


def _replace_files(change: Staged) -> None:
    for path, place in change.places.items():
        # Never a write into the file: package managers hard-link theirs, and readers have them open.
        if change.files[path].after is None:
            files.remove(place)
        else:
            files.rename(change.tree.state_directory.temporary(path), place)
    for folder in {place.parent for place in change.places.values()}:
        files.sync(folder)
    change.tree.state_directory.remove_folders(change.folders_to_remove)
