"""One reason to refuse, as every part of fp4patch states it."""

from dataclasses import dataclass

from fp4patch.core.document import Document
from fp4patch.core.state import State


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
