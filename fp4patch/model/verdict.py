"""What a judgement can come to."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a judgement came to. Closed: a thing that was not checked is a failure, never a pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """This toolchain cannot compile for that architecture at all: said, and counted as a failure of the whole."""

    @property
    def failed(self) -> bool:
        """Whether this fails the verdict as a whole."""
        return self is not Verdict.PASS
