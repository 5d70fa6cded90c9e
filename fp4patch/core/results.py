"""Results of edits and checks: states of files and patches, verdicts, outcomes of one edit, reasons to refuse."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from fp4patch.core.document import Document


class State(StrEnum):
    """State of a file, or of a patch on a tree. The first is the one that needs attention most."""

    FOREIGN = "foreign"
    """The file was edited after apply: refused."""
    DRIFTED = "drifted"
    """The anchor is missing, or its count is wrong: refused."""
    OUTDATED = "outdated"
    """The source is the result of an older version of the patch; apply updates it."""
    APPLIED = "applied"
    """The source is exactly the result of the variant's edits on the pristine source."""
    REVERSED = "reversed"
    """Upstream has it and someone took it out of this tree; apply puts it back."""
    PRISTINE = "pristine"
    """The source is as upstream released it; the patch can be applied."""
    UPSTREAMED = "upstreamed"
    """The source has the change already; the patch retires itself."""
    NOT_NEEDED = "not-needed"
    """This release never had what the patch changes."""

    @property
    def refused(self) -> bool:
        """True if apply must leave the tree unchanged."""
        return self in (State.DRIFTED, State.FOREIGN)


class Verdict(StrEnum):
    """Result of a check. Closed: a thing that was not checked is a failure, never a pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """This toolchain cannot compile for that architecture. It is reported, and the whole fails."""
    NOTHING = "nothing"
    """The patches change nothing in this tree, so that there is nothing to check, and nothing is claimed."""

    @property
    def failed(self) -> bool:
        """True if this verdict makes the whole fail."""
        return self in (Verdict.FAIL, Verdict.UNSUPPORTED)


PassOrFail = Literal[Verdict.PASS, Verdict.FAIL]
"""Verdict on a whole, which is never "unsupported"."""
OnTree = Literal[Verdict.PASS, Verdict.FAIL, Verdict.NOTHING]
"""Verdict on a tree, or on several."""


def verdict_on(holds: object) -> PassOrFail:
    """Return PASS if a condition holds, else FAIL."""
    return Verdict.PASS if holds else Verdict.FAIL


def overall(verdicts: Iterable[Verdict]) -> PassOrFail:
    """Return PASS only if there is a verdict and every one passes. NOTHING does not count."""
    found = [verdict for verdict in verdicts if verdict is not Verdict.NOTHING]
    return verdict_on(found and not any(verdict.failed for verdict in found))


@dataclass(frozen=True)
class Rewritten:
    """An edit that applies: the 1-based lines of the text that it touched."""

    lines: tuple[int, ...]
    reversal: str = ""
    """Change to upstream's text, made by others, that this edit takes back. Empty: it takes none back."""


@dataclass(frozen=True)
class NothingToDo:
    """An edit that retired itself."""

    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    because: str
    since: str = ""
    elsewhere: bool = False
    """True if the edit searches for its files and this is not one of them: the result does not apply to this text."""


@dataclass(frozen=True)
class Drift:
    """An edit that refuses, since its anchor is missing or different."""

    expected: str
    found: str
    line: int | None = None
    nearest: str = ""
    help: str = ""


Outcome = Rewritten | NothingToDo | Drift


@dataclass(frozen=True)
class Problem(Document):
    """One reason to refuse: place, expectation, finding, nearest match and recommended action."""

    expected: str
    found: str
    help: str = ""
    """Recommended action."""
    patch: str = ""
    """Id of the patch; empty if the problem concerns none."""
    file: str = ""
    """Path of the file; empty if the problem concerns none."""
    line: int | None = None
    nearest: str = ""
    """The closest match to the expectation."""
    state: State | None = None
