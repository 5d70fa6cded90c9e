"""The edit ``diff``: a unified diff as git writes it. Its context must be exact, and a part of it is never applied.

git applies a hunk at the place that is nearest to its line number. Here the lines of a hunk must occur once in the
file; if they occur more often, one place must be at the line number of the hunk.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import FileBeside, Glob, Sha256, must
from fp4patch.core.tree_path import is_source
from fp4patch.edits.lines import LineCut, Lines
from fp4patch.edits.operation import Change, Mistake, Operation, Template
from fp4patch.edits.patch_file import FileChange, Hunk, read
from fp4patch.edits.refusal import Refusal

_ADVICE = "take the diff for the release that you patch, or leave it out"


@dataclass(frozen=True, kw_only=True)
class Diff(Operation):
    """A unified diff beside ``patch.toml``: each of its files is an edit, and all of them apply, or none.

    The diff has nothing to do in a tree that has all of its changes: there the reverse would apply. Each file must be
    a source file of the tree, and keep its name.
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
            FileDiff(search=(change.path,), file=self.file, sha256=self.sha256, hunks=change.hunks)
            for change in supported(content)
        )


@dataclass(frozen=True, kw_only=True)
class FileDiff(Diff):
    """The changes of one file of a diff."""

    hunks: tuple[Hunk, ...]

    @property
    def language(self) -> str:
        """None: the lines of a diff are in any language."""
        return "other"

    @property
    def named_file(self) -> str:
        """The file."""
        return self.search[0]

    def expanded(self, _folder: Path, /) -> tuple["FileDiff", ...]:
        """Return itself."""
        return (self,)

    def change(self, source: Lines, _template: Template, _options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return the change by all hunks; NothingToDo if the reverse applies. A text to which both apply is refused."""
        lines = source.lines
        places, done = _places(lines, self.hunks), _places(lines, [hunk.reverse for hunk in self.hunks])
        if isinstance(done, list):
            if isinstance(places, list):
                raise Refusal("the text before the change, or the text after it", "both", places[0] + 1, advice=_ADVICE)
            return NothingToDo(State.UPSTREAMED, "the source has this change")
        if not isinstance(places, list):
            raise places
        cuts = [
            LineCut(place, place + len(hunk.before), hunk.after) for hunk, place in zip(self.hunks, places, strict=True)
        ]
        return Change(cuts, tuple(place + 1 for place in places))


def supported(content: bytes) -> tuple[FileChange, ...]:
    """Return the changes of a diff. LexError: it does more than to change lines of source files, or is no diff."""
    patch_file = read(content)
    if len(patch_file.commits) > 1:
        raise LexError("expected one diff, found several commits", patch_file.commits[1].line)
    for change in patch_file.changes:
        path = PurePosixPath(change.path)
        if reason := change.refused or _more_than_lines(change):
            raise LexError(reason, change.line)
        if (
            any(part.startswith(".") for part in path.parts)
            or set(change.path) & set("*?[")
            or not is_source(path.name)
        ):
            raise LexError(f"expected a source file, not hidden, with a plain name, found {change.path!a}", change.line)
    return patch_file.changes


def _more_than_lines(change: FileChange) -> str:
    """Return what a change does beside changing lines, or instead of it; empty if it does just that."""
    kinds = {
        "a new file": change.before is None,
        "a deleted file": change.after is None,
        "a copy": change.copied,
        "a rename": change.before != change.after,
        "another mode": change.changes_mode,
        "no hunk": not change.hunks,
    }
    found = next((kind for kind, holds in kinds.items() if holds), "")
    return found and f"{change.path!a}: expected changes of lines alone, found {found}"


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


def _nearest(lines: Sequence[str], hunk: Hunk) -> tuple[int | None, str]:
    """Return the line of the place that has most lines of a hunk, and the first line that differs there."""

    def same(place: int) -> int:
        return sum(
            mine == theirs for mine, theirs in zip(lines[place : place + len(hunk.before)], hunk.before, strict=False)
        )

    place = max(range(len(lines)), key=same, default=0)
    for at, expected in enumerate(hunk.before, place):
        if at < len(lines) and lines[at] != expected:
            return at + 1, f"{lines[at].strip()!r} where {expected.strip()!r} was expected"
    return place + 1 if lines else None, ""
