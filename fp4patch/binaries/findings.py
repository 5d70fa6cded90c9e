"""Severity of what ``fp4patch doctor`` finds, and the finding."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fp4patch.core.document import Document


class Level(StrEnum):
    """Severity of a finding. Closed; the worst severity of all findings decides the exit status."""

    GREEN = "green"
    """The state is right, or the thing is absent and not needed."""
    YELLOW = "yellow"
    """It works now, or for some GPUs only. Read the remedy before you build."""
    RED = "red"
    """It fails in the present state."""
    NONE = "not looked at"
    """The thing is absent or was not examined, so nothing is known about it."""


def worst(levels: Iterable[Level]) -> Level:
    """Return RED if any level is RED, else YELLOW if any is YELLOW, else GREEN."""
    found = set(levels)
    return next((level for level in (Level.RED, Level.YELLOW) if level in found), Level.GREEN)


@dataclass(frozen=True)
class Finding(Document):
    """One thing that was checked: its subject, the state that was found and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    """Recommended action; empty if all is well."""
    cause: str = ""
    """Name of the remedy in fp4patch/binaries/remedies.toml; empty if it is of a program's or a build's error."""
    link: str = ""
    """Link to a public discussion of the finding; mostly empty."""
