"""Refusal of an edit from nested calls: an exception carries the drift out, and the edit returns it as a value."""

from fp4patch.core.results import Drift

UNKNOWN_SHAPE = (
    "the patch does not recognize this shape of the source; `fp4patch show` names the releases it was tried on"
)

ADDED = """the source has the change of this patch: take it as upstream released it, or leave the patch out (if \
fp4patch made it, its .fp4patch directory is gone: `git clean -x` takes that away)"""

OTHERWISE = ("a result that reads as intended", "one that reads otherwise")
"""What is expected of a result, and what is found."""


class Refusal(Exception):  # noqa: N818 - not an error: an outcome on its way out
    """An edit refuses, and why."""

    def __init__(
        self, expected: str, found: str, line: int | None = None, nearest: str = "", advice: str = UNKNOWN_SHAPE
    ) -> None:
        super().__init__(expected)
        self.drift = Drift(expected, found, line, nearest, advice)
