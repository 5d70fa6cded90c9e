"""A patch put on the files of a release in memory: exactly, else by git's merge with the text that it was made for."""

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fp4patch.edits.language import language
from fp4patch.edits.patch_file import FileChange, Hunk
from fp4patch.edits.sources import LANGUAGES
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


def attempt(changes: Iterable[FileChange], read: Read, base: Callable[[FileChange], str | None]) -> Attempt:
    """Return what becomes of changes on the files that ``read`` returns. ``base`` knows the text before a change."""
    made = Attempt()
    for change in changes:
        _one(change, over(made.texts, read), base, made)
    return made


def over(texts: Mapping[str, str | None], below: Read) -> Read:
    """Return a reader of files, of which some have other texts."""
    return lambda path: texts[path] if path in texts else below(path)


def _one(change: FileChange, read: Read, base: Callable[[FileChange], str | None], made: Attempt) -> None:
    if change.refused:
        made.misfits.append(Misfit(change.path, 0, None, change.refused.partition(": ")[2]))
        return
    if change.after is None:
        _delete(change, read, made)
        return
    if change.before is None:
        text = "".join(line for hunk in change.hunks for line in hunk.after)
        there = read(change.after)
        if there is not None and there != text:
            made.misfits.append(Misfit(change.after, 0, 1, "the release has a file of this name, with another content"))
        made.texts[change.after] = text
        return
    ours = read(change.before)
    if ours is None:
        renamed = change.before != change.after and read(change.after) is not None
        reason = f"the release has it as {change.after} already" if renamed else "the release has no such file"
        made.misfits.append(Misfit(change.before, 0, None, reason))
        return
    if change.before != change.after:
        if read(change.after) is not None:
            made.misfits.append(Misfit(change.after, 0, None, "the release has a file of the new name"))
            return
        if not change.copied:
            made.texts[change.before] = None
    is_base = bool(change.blob_before) and blob_name(ours).startswith(change.blob_before)
    result = exactly_at_lines(ours, change.hunks) if is_base else exactly(ours, change.hunks)
    if result is None:
        result = _merged(change, ours, base(change), made)
    if result is not None:
        made.texts[change.after] = result


def _delete(change: FileChange, read: Read, made: Attempt) -> None:
    path = change.before or ""
    text = read(path)
    if text is None:
        made.misfits.append(Misfit(path, 0, None, "the release has no such file"))
    elif text != "".join(line for hunk in change.hunks for line in hunk.before):
        made.misfits.append(Misfit(path, 0, None, "the release has other lines in the file that the patch deletes"))
    made.texts[path] = None


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
    """Return git's merge of a change with the text of a release; None, and why, if there is none."""
    theirs = exactly_at_lines(base, change.hunks) if base is not None else None
    if base is None or theirs is None:
        made.misfits += nearest(change, ours)
        return None
    text, conflicts = merge(base, ours, theirs)
    if conflicts:
        made.misfits += [
            Misfit(change.path, 0, line, "both changed it", mine, other) for line, mine, other in conflicts
        ]
        return None
    try:
        LANGUAGES[language(change.path)].read(text)
    except (SyntaxError, ValueError) as error:
        made.misfits.append(Misfit(change.path, 0, None, f"the merged text cannot be read: {error}"))
        return None
    made.merged = True
    lines = lines_of(ours)
    places = sites(lines, change.hunks)
    done = sites(lines, [hunk.reverse for hunk in change.hunks])
    for number, hunk in enumerate(change.hunks, 1):
        if len(places[number - 1]) != 1 and not done[number - 1]:
            made.moved.append(Moved(change.path, number, _nearest_line(lines, hunk) + 1))
    return text


def exactly_at_lines(base: str, hunks: Sequence[Hunk]) -> str | None:
    """Return the text that a patch was made for with its hunks, each at its own line; None if it is not that text."""
    lines = lines_of(base)
    result, at = list[str](), 0
    for hunk in hunks:
        start = max(0, hunk.line - 1) if hunk.before else hunk.line
        if start < at or lines[start : start + len(hunk.before)] != hunk.before:
            return exactly(base, hunks)
        result += (*lines[at:start], *hunk.after)
        at = start + len(hunk.before)
    return "".join((*result, *lines[at:]))


def merge(base: str, ours: str, theirs: str) -> tuple[str, list[tuple[int, tuple[str, ...], tuple[str, ...]]]]:
    """Return git's merge of two texts, and its conflicts: line in ours (1-based), our lines, their lines."""
    mark = "fp4patch"
    while any(mark in text for text in (base, ours, theirs)):
        mark += "-"
    with tempfile.TemporaryDirectory(prefix="fp4patch-merge-") as folder:
        files = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for file, text in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
        labels = [word for side in ("ours", "base", "theirs") for word in ("-L", f"{mark}:{side}")]
        command = ["git", "merge-file", "-p", "-q", *labels, *map(str, files)]
        said = subprocess.run(command, capture_output=True, check=False, timeout=60)
    text = said.stdout.decode("utf-8", "surrogateescape")
    return text, _conflicts(lines_of(text), mark) if said.returncode else []


def _conflicts(lines: Sequence[str], mark: str) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Return the conflicts of a merge with marks: line in ours (1-based), our lines, their lines."""
    found = []
    ours, theirs, at, side = list[str](), list[str](), 0, ""
    for line in lines:
        if line.startswith(f"<<<<<<< {mark}:ours"):
            side = "ours"
        elif side == "ours" and line.rstrip("\r\n") == "=======":
            side = "theirs"
        elif side and line.startswith(f">>>>>>> {mark}:theirs"):
            found.append((at - len(ours) + 1, tuple(ours), tuple(theirs)))
            ours, theirs, side = [], [], ""
        elif side == "theirs":
            theirs.append(line)
        else:
            at += 1
            if side:
                ours.append(line)
    return found


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
