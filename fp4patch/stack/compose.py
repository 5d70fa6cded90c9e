"""Several commits, one after another, as one change: that is what a release has of a pull request, or has not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import Commit, FileChange, Hunk


def composed(commits: Sequence[Commit]) -> Commit:
    """Return commits as one. LexError: one does not fit the lines that those before it leave."""
    there: dict[str, FileChange] = {}  # by the path after all of them
    gone: dict[str, FileChange] = {}  # by the path before all of them
    for commit in commits:
        # All changes of a commit are about the files before it: two can change their names.
        left = {change.before for change in commit.changes if not change.copied}
        now = {path: change for path, change in there.items() if path not in left}
        for change in commit.changes:
            earlier = there.get(change.before) if change.before is not None else gone.pop(change.path, None)
            made = _both(earlier, change) if earlier else change
            if made.after is not None:
                now[made.after] = made
            elif made.before is not None and not made.copied:
                gone[made.before] = made
        there = now
    return replace(commits[0], changes=(*gone.values(), *there.values()))


def _both(first: FileChange, then: FileChange) -> FileChange:
    """Return two changes of a file as one; with no path, where the second deletes what the first one makes."""
    both = replace(
        then,
        before=first.before,
        mode_before=first.mode_before,
        mode_after=then.mode_after or ("" if then.after is None else first.mode_after),
        blob_before=first.blob_before,
        copied=first.before is not None and (first.copied or then.copied),
        text="",
    )
    if first.binary or then.binary or (first.before is None and then.after is None):
        return replace(both, binary=True, hunks=())
    if first.after is None:
        rows = [("-", line) for hunk in first.hunks for line in hunk.before]
        rows += [("+", line) for hunk in then.hunks for line in hunk.after]
        return replace(both, hunks=(Hunk(1, 1, tuple(rows)),) if rows else ())
    return replace(both, hunks=tuple(_hunks(first.hunks, then.hunks, then)))


def _hunks(first: Sequence[Hunk], then: Sequence[Hunk], where: FileChange) -> Iterator[Hunk]:
    """Yield the hunks of both. Lines between the two are counted as the first leaves them."""
    between: dict[int, str] = {}
    for start, side in (*((h.line_after, h.after) for h in first), *((h.line, h.before) for h in then)):
        for number, line in enumerate(side, start):
            if between.setdefault(number, line) != line:
                raise LexError(f"expected the lines that the commit before leaves in {where.path!a}", where.line)
    earlier = later = 0
    for begin, end in _spans(first, then):
        # An empty side of a hunk stands behind the line that its head names.
        undone = [h.reverse for h in first if _within(h, begin, end, back=True)]
        done = [h for h in then if _within(h, begin, end, back=False)]
        lines = [between[number] for number in range(begin, end)]
        before, after = _with(lines, begin, undone), _with(lines, begin, done)
        if before != after:
            yield Hunk(begin - earlier if before else begin - earlier - 1, begin + later, tuple(_rows(before, after)))
        earlier += len(lines) - len(before)
        later += len(after) - len(lines)


def _start(line: int, lines: Sequence[str]) -> int:
    return line if lines else line + 1


def _within(hunk: Hunk, begin: int, end: int, *, back: bool) -> bool:
    lines = hunk.after if back else hunk.before
    start = _start(hunk.line_after if back else hunk.line, lines)
    return begin <= start and start + len(lines) <= end


def _spans(first: Sequence[Hunk], then: Sequence[Hunk]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines that hunks of either are about, joined where they touch."""
    sides = [(h.line_after, h.after) for h in first] + [(h.line, h.before) for h in then]
    ranges = sorted((start := _start(line, lines), start + len(lines)) for line, lines in sides)
    joined = list[tuple[int, int]]()
    for start, stop in ranges:
        begin, end = joined.pop() if joined and start <= joined[-1][1] else (start, stop)
        joined.append((begin, max(end, stop)))
    yield from joined


def _with(lines: Sequence[str], begin: int, hunks: Sequence[Hunk]) -> list[str]:
    """Return lines, the first of which has a number, with hunks."""
    result, at = list[str](), 0
    for hunk in hunks:
        start = _start(hunk.line, hunk.before) - begin
        result += (*lines[at:start], *hunk.after)
        at = start + len(hunk.before)
    return [*result, *lines[at:]]


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in before[i:j])
        else:
            yield from (("-", line) for line in before[i:j])
            yield from (("+", line) for line in after[k:m])
