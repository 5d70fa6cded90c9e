"""Give trees their desired states: all of them, or none.

A change is staged for each tree, which collects every problem, then written: first all that needs room or permission
(pristine copies, receipts, the new bytes beside each file), then all receipts begin, then each file is replaced by a
rename, then all receipts end. A command that is killed leaves each file with its old, its pristine or its intended
bytes, and a receipt that knows all three.
"""

import errno
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from fp4patch.core.errors import Fp4PatchError, Refused
from fp4patch.core.results import Problem, State
from fp4patch.tree import files
from fp4patch.tree.files import refuse, sha256
from fp4patch.tree.locked import COMPLETION, LockedTree
from fp4patch.tree.receipt import Receipt, ReceiptFile


class DesiredFile(NamedTuple):
    """Bytes that a file is to have, and the patches that make them. ``data`` None: the file stays absent."""

    data: bytes | None
    patches: tuple[str, ...]


@dataclass(frozen=True)
class StagedFile:
    """One file of a staged state."""

    before: bytes | None
    after: bytes | None

    @property
    def changed(self) -> bool:
        """True if the file's bytes change."""
        return self.before != self.after


@dataclass(frozen=True)
class Staged:
    """What gives a tree its desired state: each file, the receipts, and every reason to refuse it."""

    tree: LockedTree
    files: Mapping[str, StagedFile]
    problems: tuple[Problem, ...]
    begins: Receipt | None = None
    """The receipt while files are being replaced; None if nothing changes, or may be written."""
    ends: Receipt | None = None
    """The receipt of the desired state; None if that is pristine."""
    diffs: tuple[bytes, ...] = ()
    """Diffs that the receipts name."""

    @property
    def changed(self) -> bool:
        """True if a file changes, or a change that was interrupted is completed."""
        return self.begins is not None and (bool(self.places) or self.tree.interrupted)

    @cached_property
    def places(self) -> Mapping[str, Path]:
        """Where each file that changes is."""
        return {path: self.tree.tree.locate(path) for path, file in sorted(self.files.items()) if file.changed}


def stage(
    tree: LockedTree,
    desired: Mapping[str, DesiredFile],
    record: Receipt | None = None,
    undecided: Collection[str] = (),
    diffs: Iterable[bytes] = (),
) -> Staged:
    """Return what changes, with every reason to refuse it. Nothing is written.

    Each file that is not ``desired`` gets its pristine bytes. ``record`` is what the receipt is to say, beside its
    files, and ``diffs`` the contents of those that it names. ``undecided`` files, whose edits refuse, stay as they are,
    and nothing is written.

    A file that is neither pristine nor what fp4patch wrote is foreign; a file that cannot be replaced, or that is
    missing, is a problem too.
    """
    staged, problems = dict[str, StagedFile](), list[Problem]()
    for path in dict.fromkeys([*desired, *tree.on_record]):
        if path not in undecided:
            try:
                staged[path] = _staged_file(tree, path, desired.get(path))
            except Refused as refused:
                if not refused.problems:  # the state of the tree itself is refused, not one file
                    raise
                problems += refused.problems
    record = record or tree.receipt
    if problems or undecided or record is None:
        return Staged(tree, staged, tuple(problems))
    files = {
        path: ReceiptFile(
            sha256(pristine),
            sha256(file.after),
            _mode(tree, path),
            desired[path].patches if path in desired else (),
            sha256(file.before),
        )
        for path, file in staged.items()
        if file.after is not None and (pristine := tree.pristine(path)) is not None
    }
    patched = {p: file for p, file in files.items() if file.patches and file.written_sha256 != file.pristine_sha256}
    ends = None
    if patched:
        lasting = {path: replace(file, before_sha256=None) for path, file in patched.items()}
        ends = replace(record, files=lasting, state="applied")
    begins = None
    if ends != tree.receipt or any(file.changed for file in staged.values()):
        begun = {path: file for path, file in files.items() if path in tree.on_record or path in patched}
        kept = tree.receipt.diffs if tree.receipt else ()
        every = tuple(dict.fromkeys([*record.diffs, *kept]))
        begins = replace(record, files=begun, diffs=every, state="applying")
    return Staged(tree, staged, (), begins, ends, tuple(diffs))


def _staged_file(tree: LockedTree, path: str, desired: DesiredFile | None) -> StagedFile:
    current = tree.current(path)
    after = tree.pristine(path) if desired is None else desired.data
    if after is None or current == after:
        return StagedFile(current, current)
    if current is not None and tree.state(path, after) is State.FOREIGN:
        raise refuse(
            path,
            "the pristine bytes, or what fp4patch wrote",
            "a file that was edited since",
            advice=f"`{_restores(tree, path)}` takes the edit away; then run this again. If the whole tree was "
            "replaced by another release, delete its .fp4patch directory",
            state=State.FOREIGN,
        )
    if problem := tree.tree.writable_problem(path):
        raise Refused(f"{path}: found {problem.found}", help=problem.help, problems=[problem])
    if current is None and path not in tree.on_record:  # patches make no files
        raise refuse(path, "a file to change", "none")
    return StagedFile(current, after)


def _restores(tree: LockedTree, path: str) -> str:
    """Return the command that gives a file its pristine bytes."""
    if path not in tree.on_record:
        return f"git -C {quote(str(tree.root))} checkout -- {quote(path)}"
    blob = tree.state_directory.blobs / tree.on_record[path].pristine_sha256
    return f"cp {quote(str(blob))} {quote(str(tree.root / path))}"


def _mode(tree: LockedTree, path: str) -> int:
    """Return the permission bits to put on record."""
    recorded, file = tree.on_record.get(path), tree.file(path)
    return recorded.mode if recorded else file.mode & 0o777 if file else 0o644


def write(staged: Sequence[Staged]) -> None:
    """Give each tree its staged state; a tree in the pristine state keeps no trace of fp4patch.

    Refused, with every tree as it was, if staging found a problem, if a file was changed since it was read or cannot be
    replaced, or if there is no room.
    """
    problems = [problem for change in staged for problem in change.problems]
    if problems:
        first = problems[0]
        raise Refused(f"{first.file}: found {first.found}; nothing was changed", help=first.help, problems=problems)
    changing = [change for change in staged if change.begins]
    places = [place for change in changing for place in change.places.values()]
    if len(set(places)) != len(places):
        raise Refused("two of these trees hold the same file", help="name each tree once")
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
            raise Refused(
                f"{_reason(error)}; nothing was changed", help=f"{_remedy(error)}, and run the command again"
            ) from error
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
            f"the change was interrupted: {_reason(error)}",
            help=f"{_remedy(error)}; then {COMPLETION}",
        ) from error


def _prepare(change: Staged) -> None:
    """Write everything that needs room on the disk or permission, and that nothing counts on yet."""
    tree, state = change.tree, change.tree.state_directory
    assert change.begins
    pristine = (tree.pristine(path) for path in change.begins.files)
    state.prepare(change.begins, change.ends, (*(data for data in pristine if data is not None), *change.diffs))
    for path, place in change.places.items():
        data = change.files[path].after
        assert data is not None
        # A receipt is input: it may not have a file made that more users may write than usual.
        mode = tree.on_record[path].mode & 0o755 if path in tree.on_record else 0o644
        files.create(state.temporary(path), data, like=place, mode=mode)


def _must_be_as_read(changing: Sequence[Staged]) -> None:
    """Refused: a file is not what it was when it was read."""
    problems = [
        Problem("the bytes that were read a moment ago", "others", "run the command again", file=path)
        for change in changing
        for path in change.places
        if (now := change.tree.tree.read(path)) is None or now.data != change.files[path].before
        if now is not None or change.files[path].before is not None
    ]
    if problems:
        first = problems[0]
        raise Refused(
            f"{first.file} was edited while we looked at it; nothing was changed", help=first.help, problems=problems
        )


def _replace_files(change: Staged) -> None:
    for path, place in change.places.items():
        # Never a write into the file: package managers hard-link theirs, and readers have them open.
        files.rename(change.tree.state_directory.temporary(path), place)
    for folder in {place.parent for place in change.places.values()}:
        files.sync(folder)


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "become the user who may write there"
    return "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "remove the cause"


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
