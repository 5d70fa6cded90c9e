"""States of a file, or of a patch on a tree."""

from enum import StrEnum


class State(StrEnum):
    """State of a file, or of a patch on a tree. Closed; each state decides whether an apply can continue."""

    PRISTINE = "pristine"
    """The source is as upstream released it; the patch can be applied."""
    APPLIED = "applied"
    """The source is exactly the result of the variant's edits on the pristine source."""
    OUTDATED = "outdated"
    """The source is the result of an older version of the patch; apply updates it."""
    UPSTREAMED = "upstreamed"
    """The source has the change already; the patch retires itself."""
    NOT_NEEDED = "not-needed"
    """This release never had what the patch changes."""
    REVERSED = "reversed"
    """Upstream has it and someone took it out of this tree; apply puts it back."""
    DRIFTED = "drifted"
    """The anchor is missing, or its count is wrong: refused."""
    FOREIGN = "foreign"
    """The file was edited after apply: refused."""

    @property
    def refused(self) -> bool:
        """True if apply must leave the tree unchanged."""
        return self in (State.DRIFTED, State.FOREIGN)
