"""A patch put on the files of a release in memory: exactly, else by git's merge with the text that it was made for."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fp4patch.core.results import Problem
from fp4patch.edits.diff import File, changed
from fp4patch.edits.patch_file import FileChange, Hunk
from fp4patch.sources.git import MARK, merge_file
from fp4patch.stack.merge import merge_change
from fp4patch.stack.presence import sites

Read = Callable[[str], str | None]


class Misfit(NamedTuple):
    """A place at which a patch does not go on."""

    file: str
    hunk: int
    """1-based number of the hunk in its file; 0 for all of it."""
    line: int | None
    """1-based line of the release."""
    reason: str
    ours: tuple[str, ...] = ()
    """The lines of the release."""
    theirs: tuple[str, ...] = ()
    """The lines of the patch."""


class Moved(NamedTuple):
    """A hunk that a merge put in, though its context is not in the release as the patch has it."""

    file: str
    hunk: int
    line: int
    """1-based line of the release at which it goes in."""


@dataclass
class Attempt:
    """What became of a patch on some files."""

    texts: dict[str, str | None] = field(default_factory=dict)
    """The files that it changes, by their path; None for one that it deletes."""
    misfits: list[Misfit] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    merged: bool = False

    @property
    def fits(self) -> bool:
        """True if all of it goes on."""
        return not self.misfits


def attempt(changes: Sequence[FileChange], read: Read, base: Callable[[FileChange], str | None]) -> Attempt:
    """Return what becomes of changes on the files that ``read`` returns. ``base`` knows the text before a change.

    All of them are about these files, as those of a commit are: two files can change their names.
    """
    made = Attempt()
    leave = {change.before for change in changes if change.before != change.after and not change.copied}
    for change in changes:
        _one(change, read, leave, base, made)
    return made


def over(texts: Mapping[str, str | None], below: Read) -> Read:
    """Return a reader of files, of which some have other texts."""
    return lambda path: texts[path] if path in texts else below(path)


def _one(
    change: FileChange,
    read: Read,
    leave: Collection[str | None],
    base: Callable[[FileChange], str | None],
    made: Attempt,
) -> None:
    if change.refused:
        made.misfits.append(Misfit(change.path, 0, None, change.refused.partition(": ")[2]))
        return
    if change.after is None:
        _delete(change, read, made)
        return
    there = read(change.after) if change.after != change.before and change.after not in leave else None
    if change.before is None:
        text = "".join(line for hunk in change.hunks for line in hunk.after)
        if there is not None and there != text:
            made.misfits.append(Misfit(change.after, 0, 1, "the release has a file of this name, with another content"))
        made.texts[change.after] = text
        return
    ours = read(change.before)
    if ours is None:
        reason = "the release has no such file" if there is None else f"the release has it as {change.after} already"
        made.misfits.append(Misfit(change.before, 0, None, reason))
        return
    if not is_text(ours):
        made.misfits.append(Misfit(change.before, 0, None, "the release has no text in UTF-8 there"))
        return
    if there is not None:
        made.misfits.append(Misfit(change.after, 0, None, "the release has a file of the new name"))
        return
    if change.before in leave:
        made.texts.setdefault(change.before, None)
    result = exactly_at_lines(ours, change.hunks)
    if result is None:
        result = _merged(change, ours, base(change), made)
    if result is not None:
        made.texts[change.after] = result


def is_text(text: str) -> bool:
    """Tell whether a text, decoded with escapes, is one that a patch can be about."""
    return re.search("[\0\udc80-\udcff]", text) is None


def _delete(change: FileChange, read: Read, made: Attempt) -> None:
    path = change.before or ""
    text = read(path)
    if text is None:
        made.misfits.append(Misfit(path, 0, None, "the release has no such file"))
    elif text != "".join(line for hunk in change.hunks for line in hunk.before):
        made.misfits.append(Misfit(path, 0, None, "the release has other lines in the file that the patch deletes"))
    made.texts.setdefault(path, None)


def exactly(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Return a text with hunks, each of which fits at one place alone, in their order; None if one does not."""
    lines = lines_of(text)
    result, at = list[str](), 0
    for hunk, places in zip(hunks, sites(lines, hunks), strict=True):
        if len(places) != 1 or places[0] < at:
            return None
        result += (*lines[at : places[0]], *hunk.after)
        at = places[0] + len(hunk.before)
    return "".join((*result, *lines[at:]))


def blob_name(text: str) -> str:
    """Return the name that git gives a content (SHA-1)."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines of a text, with their ends."""
    return tuple(re.findall(r"[^\n]*\n|[^\n]+", text))


def _merged(change: FileChange, ours: str, base: str | None, made: Attempt) -> str | None:
    """Return the merge of a change with the text of a release; None, and why, if there is none."""
    path = change.path
    alone = replace(change, before=path, after=path, copied=False, mode_before="", mode_after="")
    result = merge_change(alone, {path: File(ours)}.get, base)
    if isinstance(result, Problem):
        theirs = exactly_at_lines(base, change.hunks) if base is not None else None
        conflicts = merge(base, ours, theirs)[1] if base is not None and theirs is not None else []
        both = [Misfit(path, 0, line, "both changed it", mine, other) for line, mine, other in conflicts]
        unread = [Misfit(path, 0, result.line, f"expected {result.expected}, found {result.found}")]
        made.misfits += nearest(change, ours) if theirs is None else both or unread
        return None
    made.merged = True
    lines = lines_of(ours)
    done = sites(lines, [hunk.reverse for hunk in change.hunks])
    for number, (hunk, places) in enumerate(zip(change.hunks, sites(lines, change.hunks), strict=True), 1):
        if len(places) != 1 and not done[number - 1]:
            made.moved.append(Moved(path, number, _nearest_line(lines, hunk) + 1))
    if result is None:
        return ours
    file = changed([result], {path: File(ours)}.get).files[path]
    return file.text if file else None


def exactly_at_lines(text: str, hunks: Sequence[Hunk]) -> str | None:
    """Return a text with hunks, all of which are at their own lines, or else each at one place alone; None if not."""
    lines = lines_of(text)
    result, at = list[str](), 0
    for hunk in hunks:
        start = hunk.line - 1 if hunk.before else hunk.line
        if start < at or not hunk.is_at(lines, start):
            return exactly(text, hunks)
        result += (*lines[at:start], *hunk.after)
        at = start + len(hunk.before)
    return "".join((*result, *lines[at:]))


def merge(base: str, ours: str, theirs: str) -> tuple[str, list[tuple[int, tuple[str, ...], tuple[str, ...]]]]:
    """Return git's merge of two texts, and its conflicts: line in ours (1-based), our lines, their lines."""
    sides = (text.encode("utf-8", "surrogateescape") for text in (base, ours, theirs))
    merged, conflicts = merge_file(*sides)
    text = merged.decode("utf-8", "surrogateescape")
    return text, list(_conflicts(lines_of(text))) if conflicts else []


def _conflicts(lines: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Yield the conflicts of a merge with marks: line in ours (1-based), our lines, their lines."""
    sides: dict[str, list[str]] = {}
    at, side = 0, ""
    for line in lines:
        sign = line[:1] if line[:MARK] == line[:1] * MARK else ""
        if sign == "<":
            sides, side = {"<": [], "=": []}, "<"
        elif sign == "=" and side:
            side = "="
        elif sign == ">" and side:
            yield at - len(sides["<"]) + 1, tuple(sides["<"]), tuple(sides["="])
            side = ""
        else:
            at += side != "="
            sides.setdefault(side, []).append(line)


def nearest(change: FileChange, text: str) -> list[Misfit]:
    """Return the hunks that have no place in a text, or several, with the lines that are nearest."""
    lines = lines_of(text)
    found = []
    for number, (hunk, places) in enumerate(zip(change.hunks, sites(lines, change.hunks), strict=True), 1):
        if len(places) == 1:
            continue
        if places:
            listed = ", ".join(str(place + 1) for place in places[:4])
            found.append(Misfit(change.path, number, places[0] + 1, f"its lines are at {len(places)} places: {listed}"))
            continue
        place = _nearest_line(lines, hunk)
        ours = lines[place : place + len(hunk.before)]
        differing = [at for at, line in enumerate(hunk.before) if ours[at : at + 1] != (line,)]
        first = differing[0] if differing else 0
        mine, theirs = ours[first : first + 1], hunk.before[first : first + 1]
        found.append(Misfit(change.path, number, place + first + 1, "its lines are not there", mine, theirs))
    return found or [Misfit(change.path, 0, None, "its hunks are there in another order")]


def _nearest_line(lines: Sequence[str], hunk: Hunk) -> int:
    """Return the place (0-based) of a text that has most lines of a hunk, each at its own distance from the first."""
    votes: dict[int, int] = {}
    where: dict[str, list[int]] = {}
    wanted = set(hunk.before)
    for at, line in enumerate(lines):
        if line in wanted:
            where.setdefault(line, []).append(at)
    for offset, line in enumerate(hunk.before):
        rows = where.get(line, [])
        for at in rows if len(rows) <= 50 and line.strip() else ():  # what is everywhere says nothing
            votes[at - offset] = votes.get(at - offset, 0) + 1
    stated = min(max(0, hunk.line - 1), max(0, len(lines) - 1))
    best = max(votes, key=lambda place: (votes[place], -abs(place - stated)), default=stated)
    return max(0, best)
