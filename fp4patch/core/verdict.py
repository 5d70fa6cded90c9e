"""Results of a check."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal


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
