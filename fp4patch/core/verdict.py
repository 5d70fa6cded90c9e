"""Results of a check."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Verdict(StrEnum):
    """Result of a check. Closed: a thing that was not checked is a failure, never a pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """This toolchain cannot compile for that architecture. It is reported, and the whole fails."""

    @property
    def failed(self) -> bool:
        """True if this verdict makes the whole fail."""
        return self is not Verdict.PASS


PassOrFail = Literal[Verdict.PASS, Verdict.FAIL]
"""Verdict on a whole, which is never "unsupported"."""
