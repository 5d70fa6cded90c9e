"""The edit ``diff``: a unified diff as git writes it. Its context must be exact, and a part of it is never applied.

git applies a hunk at the place that is nearest to its line number. Here the lines of a hunk must occur once in the
file; if they occur more often, one place must be at the line number of the hunk.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import FileBeside, Glob, Sha256, must
from fp4patch.core.tree_path import is_inside, is_source
from fp4patch.edits.lines import LineCut, Lines
from fp4patch.edits.operation import Change, Mistake, Operation, Template
from fp4patch.edits.refusal import Refusal

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*\n")
_SIGNATURE = re.compile(r"^-- \n[0-9][\w.() -]*\n+\Z", re.MULTILINE)
"""The end of a mail of ``git format-patch``."""
_ADVICE = "take the diff for the release that you patch, or leave it out"


@dataclass(frozen=True)
class Hunk:
    """Lines of a file, with their ends, before a change and after it."""

    line: int
    """1-based number of the first line before the change, and of the first one after it in ``line_after``."""
    line_after: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    begins_file: bool
    """True if no context is above the change: then it is at the beginning of the file."""
    ends_file: bool
    """True if no context is below the change: then it is at the end of the file."""

    @property
    def reverse(self) -> "Hunk":
        """The hunk that takes this one back."""
        return Hunk(self.line_after, self.line, self.after, self.before, self.begins_file, self.ends_file)

    def sites(self, lines: Sequence[str], start: int) -> list[int]:
        """Return the places (0-based) from ``start`` on that have the lines before the change."""
        last = len(lines) - len(self.before)
        return [
            place
            for place in range(start, last + 1)
            if tuple(lines[place : place + len(self.before)]) == self.before
            and not (self.begins_file and place > 0)
            and not (self.ends_file and place < last)
        ]


@dataclass(frozen=True)
class FileSection:
    """The part of a diff that is about one file."""

    path: str
    line: int
    """1-based number of its first line in the diff."""
    text: str
    hunks: tuple[Hunk, ...]
    unsupported: str
    """Line by which it does more than to change lines of a source file, or less; empty if it does just that."""


def sections(diff: str) -> tuple[FileSection, ...]:
    """Return the parts of a diff, one for each file. LexError: it is not a diff as git writes it."""
    preamble, *parts = re.split(r"^(?=diff --git )", _SIGNATURE.sub("", diff), flags=re.MULTILINE)
    if not parts:
        raise LexError("expected `diff --git a/FILE b/FILE`, with which git begins the part of each file", 1)
    line, found = 1 + preamble.count("\n"), dict[str, FileSection]()
    for part in parts:
        section = _section(part, line)
        if section.path in found:
            raise LexError(f"{section.path} occurs twice: several commits, of which the diff is one for all", line)
        found[section.path] = section
        line += part.count("\n")
    return tuple(found.values())


def _section(part: str, line: int) -> FileSection:
    top, *parts = re.split(r"^(?=@@ )", part, flags=re.MULTILINE)
    first, *head = top.splitlines()
    path = first.rpartition(" b/")[2]
    name = re.escape(path)
    plain = re.compile(rf"index \w+\.\.\w+(?: 100\d+)?|--- a/{name}\t?|\+\+\+ b/{name}\t?")
    if first != f"diff --git a/{path} b/{path}" or not parts:
        return FileSection(path, line, part, (), head[-1] if head else first)
    if odd := next((row for row in head if not plain.fullmatch(row)), ""):
        return FileSection(path, line, part, (), odd)
    hunks, at = [], line + top.count("\n")
    for text in parts:
        hunk = _hunk(text)
        if not hunk:
            raise LexError(f"expected a hunk with the lines that its head counts, found {text[:60]!a}", at)
        hunks.append(hunk)
        at += text.count("\n")
    return FileSection(path, line, part, tuple(hunks), "")


def _hunk(text: str) -> Hunk | None:
    """Return a hunk; None if its lines are not those that its head counts."""
    rows = re.findall(r".*\n", text.replace("\n\\ No newline at end of file\n", "\0\n"))
    head, body = _HUNK.fullmatch(rows[0]), rows[1:]
    before, after = (
        tuple((row if row == "\n" else row[1:]).replace("\0\n", "") for row in body if row[0] in signs)
        for signs in (" \n-", " \n+")  # some mailers take the blank of an empty line away
    )
    counts = head and [int(head[2] or 1), int(head[4] or 1)]
    if not head or counts != [len(before), len(after)] or not all(row[0] in " \n-+" for row in body):
        return None
    signs = [row[0] in "-+" for row in body] or [True]
    return Hunk(int(head[1]), int(head[3]), before, after, signs[0], signs[-1])


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
            FileDiff(search=(section.path,), file=self.file, sha256=self.sha256, hunks=section.hunks)
            for section in supported(content)
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


def supported(content: bytes) -> tuple[FileSection, ...]:
    """Return the parts of a diff. LexError: it does more than to change lines of source files, or is no diff."""
    found = sections(decoded(content))
    for section in found:
        if section.unsupported:
            raise LexError(
                f"expected changes of lines alone in {section.path!a}, found {section.unsupported!a}", section.line
            )
        path = PurePosixPath(section.path)
        if not is_inside(section.path) or any(part.startswith(".") for part in path.parts):
            raise LexError(f"expected a file inside the tree that is not hidden, found {section.path!a}", section.line)
        if not section.path.isprintable() or set(section.path) & set("*?[\\") or not is_source(path.name):
            raise LexError(f"expected a source file, with a plain name, found {section.path!a}", section.line)
    return found


def decoded(content: bytes) -> str:
    """Return a diff as text. LexError: it is not UTF-8, or ends within a line."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LexError("expected UTF-8", content.count(b"\n", 0, error.start) + 1) from error
    if "\0" in text or not text.endswith("\n"):
        raise LexError("expected whole lines of text", text.count("\n") + 1)
    return text


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
