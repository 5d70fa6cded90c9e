"""Whether a log has a patch: its commit, its pull request, or its subject, and no revert of it behind.

A revert names what it takes back: ``This reverts commit 1b2c3d4``, ``Revert "SUBJECT"``, ``Reverts OWNER/NAME#123``. A
revert of the revert, or the patch once more, puts it back.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from fp4patch.edits.patch_file import Commit
from fp4patch.sources.history import Entry

# Example: [Kernel] Fix the guard of FP4 (#1234)
_SQUASHED = re.compile(r".*\(#(\d{1,9})\)", re.DOTALL)
_MERGED = re.compile(r"Merge pull request #(\d{1,9}) from .*")
_PICKED = re.compile(r"\W*cherry[- ]?pick\b.*", re.IGNORECASE)
_NUMBER = re.compile(r"(?:#|\bPR ?)(\d{1,9})\b")
# Example: This reverts commit 1b2c3d4e5f
_REVERTS = re.compile(r"\b[Tt]his reverts commits? ([0-9a-f]{7,64})")
# Example: Reverts flashinfer-ai/flashinfer#1234
_REVERTS_PULL = re.compile(r"^Reverts [\w./-]*#(\d{1,9})", re.MULTILINE)
# Example: [Core] Revert "Fix the guard of FP4" (#1300)
_REVERT_OF = re.compile(r"""(?:\W*\[[^]]*\])*\W*[Rr]evert(?:ed|ing|s)?\b\W*?["'“](.+?)["'”]?(?:\s*\(#\d+\))*""")
_REVERT = re.compile(r"(?:\W*\[[^]]*\])*\W*revert(?:ed|ing|s)?\b.*", re.IGNORECASE)
_LEAST = 20
"""Characters of a subject that tells a commit from others by itself."""


class By(StrEnum):
    """What identifies a patch in a log."""

    COMMIT = "commit"
    PULL_REQUEST = "pull request"
    SUBJECT = "subject"


@dataclass(frozen=True)
class Landing:
    """A commit of a log that is the patch."""

    entry: Entry
    by: By
    is_sure: bool = True
    """False if the patch has no subject to compare, or the commit is of another pull request: then its text must say
    so too."""
    reverted: Entry | None = None
    """The commit that took it back, if it was not put in again."""


def is_revert(patch: Commit) -> bool:
    """Tell whether a patch says that it takes another one back."""
    return bool(re.search(r"\brevert", patch.subject, re.IGNORECASE) or _REVERTS.search(patch.description))


def landing(patch: Commit, log: Iterable[Entry]) -> Landing | None:
    """Return the last commit of a log, parents first, that is a patch; None if there is none."""
    landed: Landing | None = None
    reverts: list[Entry] = []  # the revert of it, the revert of that, and so on
    for entry in log:
        if by := _is_patch(entry, patch):
            # The same subject with another number is the patch once more behind a revert of it, else perhaps another.
            numbers = {int(number) for number in _NUMBER.findall(entry.subject)}
            other = by is By.SUBJECT and bool(numbers) and patch.pull_request not in {None, *numbers}
            if other and landed and landed.is_sure and not reverts:
                continue
            landed, reverts = Landing(entry, by, bool(patch.subject) and (not other or bool(reverts))), []
        elif landed and _takes_back(entry, reverts[-1] if reverts else landed.entry, patch if not reverts else None):
            reverts.append(entry)
    return replace(landed, reverted=reverts[-1]) if landed and len(reverts) % 2 else landed


def _is_patch(entry: Entry, patch: Commit) -> By | None:
    title, own = _title(patch.subject), _title(entry.subject)
    # The text of a patch can name another commit: the one that brought the fault.
    if patch.commit and entry.commit.startswith(patch.commit) and title == own:
        return By.COMMIT
    if patch.pull_request is not None and patch.pull_request in _numbers(entry):
        # The number alone could be of another repository, or of a pull request that the patch only mentions.
        named = _MERGED.fullmatch(entry.subject) or _PICKED.fullmatch(entry.subject)
        if named or not title or _begins(own, title) or _begins(title, own):
            return By.PULL_REQUEST
    return By.SUBJECT if title == own and len(title) >= _LEAST else None


def _begins(text: str, with_: str) -> bool:
    return text.startswith(with_.rstrip("….")[:40]) and bool(with_)


def _title(subject: str) -> str:
    """Return a subject without the numbers of pull requests behind it, in small letters."""
    return re.sub(r"(?:\s*\(#\d+\))+$", "", subject.strip()).casefold()


def _numbers(entry: Entry) -> set[int]:
    """Return the numbers of the pull requests that a commit is."""
    if _REVERT.fullmatch(entry.subject):
        return {int(match[1])} if (match := _SQUASHED.fullmatch(entry.subject)) else set()
    if _PICKED.fullmatch(entry.subject):
        return {int(number) for number in _NUMBER.findall(entry.subject)}
    match = _SQUASHED.fullmatch(entry.subject) or _MERGED.fullmatch(entry.subject)
    return {int(match[1])} if match else set()


def _takes_back(entry: Entry, other: Entry, patch: Commit | None) -> bool:
    """Tell whether a commit says that it takes another one back, which may be a patch."""
    named = _REVERTS.findall(entry.body)
    if any(other.commit.startswith(name) or (patch and name == patch.commit) for name in named):
        return True
    numbers = _numbers(other) | ({patch.pull_request} if patch and patch.pull_request is not None else set())
    if numbers & {int(number) for number in _REVERTS_PULL.findall(entry.body)}:
        return True
    if quoted := _REVERT_OF.fullmatch(entry.subject):
        title = _title(quoted[1].rstrip("….\"' "))
        return _title(other.subject) == title or (len(title) >= _LEAST and _title(other.subject).startswith(title))
    if _REVERT.fullmatch(entry.subject):
        return bool(numbers & ({int(number) for number in _NUMBER.findall(entry.subject)} - _numbers(entry)))
    return False
