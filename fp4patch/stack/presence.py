"""Whether a text has a change already: by its exact lines, else token by token in the same function.

Tokens are those of the language, so that comments, blanks and the breaks of lines do not count. A hunk that only takes
away proves nothing by itself, since a text that never had it looks the same.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import NamedTuple

from fp4patch.edits.patch_file import FileChange, Hunk
from fp4patch.stack.stream import Stream, heading_name, stream

_CONTEXT = 12
"""Tokens beside a change that are compared."""
_ENOUGH = 4
"""Different names and literals by which a change is told from others like it; with fewer, more context must agree."""
_NEAR = 400
"""Tokens on both sides that count as one function, where a text has none."""
# Example: @@ -12,7 +12,9 @@ int main() {
_HUNK_HEADING = re.compile(r"^@@ -[\d,]+ \+[\d,]+ @@(.*)$", re.MULTILINE)


class Found(StrEnum):
    """What a text has of a hunk."""

    IN = "in"
    """What the hunk adds is there, and what it takes away is not."""
    GONE = "gone"
    """The hunk only takes away, and that is not there."""
    BEFORE = "before"
    """The text is exactly as before the hunk, at one place."""
    SAME = "same"
    """The hunk changes comments and layout alone, and these are different."""
    ABSENT = "absent"
    """Neither."""


@dataclass(frozen=True)
class HunkFound:
    """What a text has of one hunk, and whether its exact lines say so."""

    found: Found
    exact: bool = False


class _Run(NamedTuple):
    """Tokens that a hunk takes away and adds at one place, and those beside them after the change."""

    removed: tuple[str, ...]
    added: tuple[tuple[str, ...], ...]
    """By statements."""
    before: tuple[str, ...]
    after: tuple[str, ...]
    heading: str
    """Name in the line that git takes for the head of the function; empty if there is none."""
    function: str
    """Name of the function, if the hunk shows its head."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for statement in self.added for word in statement)


def hunks_in(change: FileChange, text: str) -> list[HunkFound]:
    """Return what a text has of each hunk of a change of that file."""
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+", text))
    done = sites(lines, [hunk.reverse for hunk in change.hunks])
    open_ = sites(lines, change.hunks)
    headings = [heading_name(heading) for heading in _HUNK_HEADING.findall(change.text)]
    found = []
    for number, hunk in enumerate(change.hunks):
        if len(open_[number]) == 1:
            # Where the reverse fits too, the hunk's lines are at two places, and nothing says which one is meant.
            found.append(HunkFound(Found.ABSENT if done[number] else Found.BEFORE, exact=True))
        elif len(done[number]) == 1 and not open_[number]:
            adds = any(sign == "+" and line.strip() for sign, line in hunk.rows)
            found.append(HunkFound(Found.IN if adds else Found.GONE, exact=True))
        else:
            heading = headings[number] if number < len(headings) else ""
            found.append(HunkFound(_by_tokens(hunk, stream(text, change.path), change.path, heading)))
    return found


def sites(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[list[int]]:
    """Return the places (0-based) at which a text has the lines before each hunk.

    Each is searched by its rarest line: :meth:`Hunk.sites` tries all places, for one hunk.
    """
    where: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        where.setdefault(line, []).append(at)
    found = []
    for hunk in hunks:
        before = hunk.before
        if not before:
            found.append([0] if not lines else [])
            continue
        rarest = min(range(len(before)), key=lambda at: len(where.get(before[at], ())))
        starts = [at - rarest for at in where.get(before[rarest], ()) if at >= rarest]
        found.append([start for start in starts if hunk.is_at(lines, start)])
    return found


def _by_tokens(hunk: Hunk, text: Stream, path: str, heading: str) -> Found:
    """Tell what a text has of a hunk, token by token."""
    after = stream("".join(hunk.after), path)
    runs = list(_runs(hunk, stream("".join(hunk.before), path), after, heading))
    if not runs:
        return Found.SAME
    found = {_run_in(text, run, after) for run in runs}
    if Found.ABSENT in found:
        return Found.ABSENT
    return Found.IN if Found.IN in found else Found.GONE


def _runs(hunk: Hunk, before: Stream, after: Stream, heading: str) -> Iterator[_Run]:
    """Yield the places at which the tokens of a hunk differ before and after it."""
    ends = [0]
    for statement in after.statements:
        ends.append(ends[-1] + len(statement))
    matcher = SequenceMatcher(None, before.statements, after.statements, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        removed = tuple(word for statement in before.statements[i:j] for word in statement)
        first, last = ends[k], ends[m]
        if kind == "equal" or removed == after.words[first:last]:
            continue
        line = after.lines[first] if first < len(after.lines) else len(hunk.after)
        yield _Run(
            removed,
            after.statements[k:m],
            after.words[max(0, first - _CONTEXT) : first],
            after.words[last : last + _CONTEXT],
            after.heading_at(line) or heading,
            after.head_at(line),
        )


def _run_in(text: Stream, run: _Run, after: Stream) -> Found:
    """Tell what a text has of one place of a hunk."""
    words = run.words
    if not words:
        beside = (*run.before, *run.after)
        alone = min(len(run.before), len(run.after)) >= 4 and len(list(text.find(beside))) == 1
        return Found.GONE if alone else Found.ABSENT
    # A statement that only loses tokens looks the same in a text that never had them.
    there = Found.GONE if _is_within(words, run.removed) else Found.IN
    places = ([(begin, begin + len(words))] for begin in text.find(words))
    if any(_holds(text, run, after, place) for place in places):
        return there
    if len(run.added) > 1 and _weight(words) >= _ENOUGH:
        apart = (_statements(text, run, seed) for seed in text.find(max(run.added, key=_weight)))
        if any(place and _holds(text, run, after, place) for place in apart):
            return there
    return Found.ABSENT


def _statements(text: Stream, run: _Run, seed: int) -> list[tuple[int, int]]:
    """Return the places of the statements of a run, in their order, in the function of a token; none if one lacks."""
    at, end = _function(text, seed, seed + 2 * len(run.words))
    places = []
    for statement in run.added:
        begin = next(text.find(statement, at, end), None)
        if begin is None:
            return []
        at = begin + len(statement)
        places.append((begin, at))
    return places


def _holds(text: Stream, run: _Run, after: Stream, places: Sequence[tuple[int, int]]) -> bool:
    """Tell whether what is at these places is what the run adds: in its function, beside the same."""
    begin, end = places[0][0], places[-1][1]
    head = text.head_at(text.lines[begin])
    if run.function and head and head != run.function:
        return False
    if run.heading and text.heading_at(text.lines[begin]) != run.heading:
        return False
    above = _alike(reversed(run.before), reversed(text.words[max(0, begin - _CONTEXT) : begin]))
    below = _alike(run.after, text.words[end : end + _CONTEXT])
    weight = _weight(run.words)
    if weight >= _ENOUGH:
        beside = above >= min(4, len(run.before)) or below >= min(4, len(run.after))
    else:
        need = 8 if weight < 2 else 5
        beside = above >= min(need, len(run.before)) and below >= min(need, len(run.after)) and above + below >= need
    return beside and _is_gone(text, run, after, begin, end)


def _is_gone(text: Stream, run: _Run, after: Stream, begin: int, end: int) -> bool:
    """Tell whether what a change takes away is not in the function of a place."""
    if not run.removed:
        return True
    if next(after.find(run.removed), None) is not None:  # the hunk's result has it too: what is beside it decides
        return next(text.find((*run.before[-6:], *run.removed, *run.after[:6])), None) is None
    return next(text.find(run.removed, *_function(text, begin, end)), None) is None


def _function(text: Stream, begin: int, end: int) -> tuple[int, int]:
    """Return first and last token of the function that a place is in."""
    function = text.function_at(begin)
    return function[:2] if function else (max(0, begin - _NEAR), min(len(text.words), end + _NEAR))


def _alike(these: Iterable[str], those: Iterable[str]) -> int:
    """Return how many items two sequences have in common from their beginning on."""
    number = 0
    for mine, theirs in zip(these, those, strict=False):
        if mine != theirs:
            break
        number += 1
    return number


def _is_within(these: Sequence[str], those: Sequence[str]) -> bool:
    """Tell whether a sequence is what remains of another one, in its order."""
    rest = iter(those)
    return all(word in rest for word in these)


def _weight(words: Sequence[str]) -> int:
    """Return the number of different names and literals among tokens."""
    return len({word for word in words if word[0].isalnum() or word[0] in "_\"'"})
