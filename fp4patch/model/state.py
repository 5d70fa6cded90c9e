"""The states that a file, or a patch on a tree, can be in."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What a file, or a patch on a tree, is in. Closed: each knows whether an apply may go on."""

    PRISTINE = "pristine"
    """As upstream released it; the patch could be applied."""
    APPLIED = "applied"
    """Exactly what the variant's edits make of the pristine source."""
    OUTDATED = "outdated"
    """What an older version of the patch made; apply brings it up to date."""
    UPSTREAMED = "upstreamed"
    """The source has the change already: the patch retires itself."""
    NOT_NEEDED = "not-needed"
    """This release never had what the patch changes."""
    REVERSED = "reversed"
    """Upstream has it and someone took it out of this tree; apply puts it back."""
    DRIFTED = "drifted"
    """The anchor is not there, or not as often as it must be: refused."""
    FOREIGN = "foreign"
    """Somebody edited the file since: refused."""

    @property
    def refused(self) -> bool:
        """Whether apply must leave the tree alone."""
        return self in (State.DRIFTED, State.FOREIGN)
