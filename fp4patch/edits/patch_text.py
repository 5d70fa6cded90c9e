"""Patch files as git writes them: the counterpart of the reader, which reads exactly what was written."""

import re
from collections.abc import Iterable, Iterator

from fp4patch.edits.patch_file import Commit, FileChange, Hunk

_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def patch_text(commit: Commit) -> str:
    """Return a commit as a patch file: a head in the form of DEP-3 with what is known, and the diff."""
    first, *more = [commit.subject, *commit.description.splitlines()]
    description = [f"Description: {first}", *(f" {line}" if line.strip() else " ." for line in more)]
    head = [*(description if first else ()), *([f"Author: {commit.author}"] if commit.author else ())]
    head += [f"Origin: {commit.link}"] if commit.link else []
    return "".join(f"{line}\n" for line in [*head, *(["---"] if head else [])]) + git_diff(commit.changes)


def git_diff(changes: Iterable[FileChange]) -> str:
    """Return changes as ``git diff`` writes them. A binary one is said to be one, without its bytes."""
    return "".join(line for change in changes for line in _lines(change))


def _lines(change: FileChange) -> Iterator[str]:
    old, new = f"a/{change.before or change.path}", f"b/{change.path}"
    yield f"diff --git {_quoted(old)} {_quoted(new)}\n"
    if change.before is None:
        yield f"new file mode {change.mode_after or '100644'}\n"
    elif change.after is None:
        yield f"deleted file mode {change.mode_before or '100644'}\n"
    elif change.mode_before and change.mode_after and change.mode_before != change.mode_after:
        yield f"old mode {change.mode_before}\nnew mode {change.mode_after}\n"
    if change.before and change.after and change.before != change.after:
        word = "copy" if change.copied else "rename"
        yield f"{word} from {_quoted(change.before)}\n{word} to {_quoted(change.after)}\n"
    if change.blob_before or change.blob_after:
        zero = "0" * max(len(change.blob_before), len(change.blob_after))
        mode = f" {change.mode_after}" if change.mode_before == change.mode_after != "" else ""
        yield f"index {change.blob_before or zero}..{change.blob_after or zero}{mode}\n"
    names = ("/dev/null" if change.before is None else old, "/dev/null" if change.after is None else new)
    if change.binary:
        yield f"Binary files {names[0]} and {names[1]} differ\n"
    elif change.hunks:
        yield from (f"{sign} {_quoted(name)}{_end(name)}\n" for sign, name in zip(("---", "+++"), names, strict=True))
        for hunk in change.hunks:
            yield from _hunk(hunk)


def _hunk(hunk: Hunk) -> Iterator[str]:
    yield f"@@ -{_range(hunk.line, len(hunk.before))} +{_range(hunk.line_after, len(hunk.after))} @@\n"
    for sign, line in hunk.rows:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(line: int, count: int) -> str:
    return str(line) if count == 1 else f"{line},{count}"


def _quoted(name: str) -> str:
    if not _SPECIAL.search(name):
        return name
    return '"' + _SPECIAL.sub(lambda sign: _ESCAPES.get(sign[0], f"\\{ord(sign[0]):03o}"), name) + '"'


def _end(name: str) -> str:
    """Return what git puts behind a name with a blank, so that no time stamp is seen in it."""
    return "\t" if " " in name else ""
