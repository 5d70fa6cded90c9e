"""What a variant comes to in a tree: the state of each patch, and the places that it leaves."""

from dataclasses import dataclass

from fp4patch.core.document import Document
from fp4patch.core.results import State


@dataclass(frozen=True)
class PatchStatus(Document):
    """A patch on this tree."""

    patch: str
    state: State
    because: str
    """Reason, if the state is neither applied nor pristine."""


@dataclass(frozen=True)
class Remainder(Document):
    """A place that contains what a patch searches for and that the patch leaves unchanged."""

    patch: str
    """Id of the patch that leaves the place unchanged."""
    file: str
    line: int
    found: str
    """Text that the patch searches for, or the line that has it."""
    because: str
    """Reason why it remains."""
