"""The edit ``diff``: a patch file, whose context must be exact, and of which a part is never applied.

It changes, creates, deletes, renames and copies files, and sets whether they can be executed. git applies a hunk at the
place that is nearest to its line number. Here the lines of a hunk must occur once in the file; if they occur more
often, one place must be at the line number of the hunk.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, Outcome, Rewritten, State
from fp4patch.core.table import FileBeside, Glob, Sha256, must
from fp4patch.edits.lines import LineCut, Lines, spliced
from fp4patch.edits.operation import Mistake, Operation
from fp4patch.edits.patch_file import FileChange, Hunk, read
from fp4patch.edits.refusal import Refusal

_ADVICE = "take the diff for the release that you patch, or leave it out; `apply --merge` tries a three-way merge"


@dataclass(frozen=True, kw_only=True)
class Diff(Operation):
    """A patch file beside ``patch.toml``: each of its files is an edit, and all of them apply, or none.

    Diffs come ahead of all other edits. A diff has nothing to do in a tree that has all of its changes.
    """

    op: Literal["diff"] = "diff"
    search: tuple[Glob, ...] = ()
    """The files of the diff, which need not be written."""
    file: Annotated[FileBeside, must(lambda name: "/" not in name, "a file in the directory of patch.toml")]
    """The diff, as git writes it."""
    sha256: Sha256
    """SHA-256 of the file."""

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield the reason why the diff cannot be one of a patch."""
        content = (folder / self.file).read_bytes()
        if (digest := sha256(content).hexdigest()) != self.sha256:
            yield Mistake("sha256", f"that of {self.file}, {digest}", self.sha256)
        try:
            self.of_files(content)
        except LexError as error:
            yield Mistake("file", error.message, f"{self.file}:{error.line}")

    def expanded(self, folder: Path, /) -> tuple["Diff", ...]:
        """Return the edit of each file."""
        return self.of_files((folder / self.file).read_bytes())

    def of_files(self, content: bytes) -> tuple["FileDiff", ...]:
        """Return the edit of each file. LexError: the diff is not one that can be applied."""
        return tuple(
            FileDiff(search=change.paths, file=self.file, sha256=self.sha256, whole=change)
            for change in supported(content)
        )


@dataclass(frozen=True, kw_only=True)
class FileDiff(Diff):
    """What a diff does to one file."""

    whole: FileChange

    @property
    def file_change(self) -> FileChange:
        """The change."""
        return self.whole

    @property
    def language(self) -> str:
        """None: the lines of a diff are in any language."""
        return "other"

    @property
    def reads(self) -> tuple[str, ...]:
        """None by a glob: a diff names its files."""
        return ()

    def expanded(self, _folder: Path, /) -> tuple["FileDiff", ...]:
        """Return itself."""
        return (self,)


@dataclass(frozen=True)
class File:
    """A file of a tree."""

    text: str
    executable: bool = False


class Changed(NamedTuple):
    """What the changes of a diff make of a tree, and what each of them came to, in their order."""

    files: Mapping[str, File | None]
    """The files that differ, None for one that is not there any more: of all changes that apply."""
    outcomes: tuple[Outcome, ...]


def changed(changes: Sequence[FileChange], read_file: Callable[[str], File | None]) -> Changed:
    """Return what the changes of one diff make of a tree, of which ``read_file`` returns a file; None: there is none.

    Each of them is tried, so that all refusals are known. A change that the tree has is NothingToDo.
    """
    files: dict[str, File | None] = {}
    outcomes: list[Outcome] = []
    leave = {change.before for change in changes if change.before != change.after and not change.copied}
    for change in changes:
        try:
            made, lines = _made(change, read_file, leave)
        except Refusal as refusal:
            is_in = _is_in(change, read_file)
            outcomes.append(NothingToDo(State.UPSTREAMED, "the source has this change") if is_in else refusal.drift)
            continue
        if change.before and not change.copied and change.before != change.after:
            files.setdefault(change.before, None)
        if change.after:
            files[change.after] = made
        outcomes.append(Rewritten(lines))
    return Changed(files, tuple(outcomes))


def _made(
    change: FileChange, read_file: Callable[[str], File | None], leave: Collection[str | None] = ()
) -> tuple[File | None, tuple[int, ...]]:
    """Return the file after a change, and its lines that change. Refusal: the tree is not as before the change."""
    found = File("") if change.before is None else read_file(change.before)
    if found is None:
        raise Refusal("the file that the diff changes", f"no {change.before}", advice=_ADVICE)
    if change.after not in (None, change.before, *leave) and read_file(change.after or "") is not None:
        raise Refusal("no file, since the diff makes one", change.after or "", advice=_ADVICE)
    lines = Lines(found.text).lines
    places = _places(lines, change.hunks)
    if not isinstance(places, list):
        raise places
    if change.hunks and isinstance(_places(lines, [hunk.reverse for hunk in change.hunks]), list):
        raise Refusal("the text before the change, or the text after it", "both", places[0] + 1, advice=_ADVICE)
    cuts = [
        LineCut(place, place + len(hunk.before), hunk.after) for hunk, place in zip(change.hunks, places, strict=True)
    ]
    text = spliced(Lines(found.text), cuts).text
    if change.after is None:
        if text:
            raise Refusal("a file of which nothing is left, since the diff deletes it", "more lines", advice=_ADVICE)
        return None, (1,)
    executable = change.mode_after == "100755" if change.sets_mode else found.executable
    if change.before == change.after and (text, executable) == (found.text, found.executable):
        raise Refusal("a file with other mode bits", "those that the diff sets", advice=_ADVICE)
    return File(text, executable), tuple(place + 1 for place in places) or (1,)


def _is_in(change: FileChange, read_file: Callable[[str], File | None]) -> bool:
    """Tell whether the tree is as after a change: then the reverse would apply."""
    if change.after is None:
        return read_file(change.before or "") is None
    found = read_file(change.after)
    moved = change.before not in (None, change.after) and not change.copied
    if found is None or (moved and read_file(change.before or "") is not None):
        return False
    if not change.hunks and change.copied:
        original = read_file(change.before or "")
        return original is None or original.text == found.text
    if not change.hunks:
        return change.before != change.after or found.executable == (change.mode_after == "100755")
    lines, reverse = Lines(found.text).lines, [hunk.reverse for hunk in change.hunks]
    whole = change.before is not None or len(reverse[0].before) == len(lines)
    is_before = isinstance(_places(lines, change.hunks), list)
    return whole and not is_before and isinstance(_places(lines, reverse), list)


def supported(content: bytes, strip: int | None = None) -> tuple[FileChange, ...]:
    """Return the changes of a diff. LexError: one of them can go into no tree, or it is no diff of one commit."""
    patch_file = read(content, strip)
    if len(patch_file.commits) > 1:
        raise LexError("expected one diff, found several commits", patch_file.commits[1].line)
    for change in patch_file.changes:
        if change.refused:
            raise LexError(change.refused, change.line)
    return patch_file.changes


def _places(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[int] | Refusal:
    """Return the place (0-based) of each hunk, or why there is none for all of them."""
    places: list[int] = []
    start = 0
    for number, hunk in enumerate(hunks, 1):
        sites = hunk.sites(lines, start)
        if len(sites) > 1:
            sites = [place for place in sites if place == hunk.line - 1] or sites
        if len(sites) != 1:
            expected = f"1 place with the lines of hunk {number} (line {hunk.line} of the diff's own source)"
            return Refusal(expected, str(len(sites)), *_nearest(lines, hunk), advice=_ADVICE)
        places.append(sites[0])
        start = sites[0] + len(hunk.before)
    return places


def _ends(lines: Sequence[str]) -> str:
    """Return how lines end."""
    if any(line.endswith("\r\n") for line in lines):
        return "CRLF"
    return "LF" if "".join(lines[-1:]).endswith("\n") else "no newline at the end of the file"


def _nearest(lines: Sequence[str], hunk: Hunk) -> tuple[int | None, str]:
    """Return the line of the place that has most lines of a hunk, and the first line that differs there."""

    def same(place: int) -> int:
        return sum(
            mine == theirs for mine, theirs in zip(lines[place : place + len(hunk.before)], hunk.before, strict=False)
        )

    bare = [line.rstrip("\r\n") for line in lines]
    wanted = [line.rstrip("\r\n") for line in hunk.before]
    for at in range(len(lines) - len(wanted) + 1):
        there = lines[at : at + len(wanted)]
        if bare[at : at + len(wanted)] == wanted and tuple(there) != hunk.before:
            return at + 1, f"the same lines with {_ends(there)}, and with {_ends(hunk.before)} in the diff"
    place = max(range(len(lines)), key=same, default=0)
    for at, expected in enumerate(hunk.before, place):
        if at < len(lines) and lines[at] != expected:
            return at + 1, f"{lines[at].strip()!r} where {expected.strip()!r} was expected"
    return place + 1 if lines else None, ""
