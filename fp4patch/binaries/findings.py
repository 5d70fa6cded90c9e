"""Severity of what ``fp4patch doctor`` finds, and the finding."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, shown


class Level(StrEnum):
    """Severity of a finding. Closed; the worst severity of all findings decides the exit status."""

    GREEN = "green"
    """The state is right, or the thing is absent and not needed."""
    YELLOW = "yellow"
    """It works now, or for some GPUs only. Read the remedy before you build."""
    RED = "red"
    """It fails in the present state."""
    NONE = "not-judged"
    """The thing is absent or was not examined, so nothing is known about it."""


def worst(levels: Iterable[Level]) -> Level:
    """Return RED if any level is RED, else YELLOW if any is YELLOW, else GREEN if any is, else NONE."""
    found = set(levels)
    return next((level for level in (Level.RED, Level.YELLOW, Level.GREEN) if level in found), Level.NONE)


ANSWERS = {Level.GREEN: "yes", Level.YELLOW: "reservation", Level.RED: "no", Level.NONE: "not-judged"}
"""The answer to "does FP4 work on this GPU", for each level."""


@dataclass(frozen=True)
class Answer(Document):
    """Answer for one GPU: whether FP4 works on it, with the evidence and one next step."""

    gpu: Arch
    level: Level
    verdict: str
    """What holds, in a few words: ``FP4 in hardware (192 conversions, 448 matrix instructions)``."""
    evidence: tuple[str, ...] = ()
    """Facts that the answer rests on, the most important one first; each reservation is one of them."""
    todo: str = ""
    """The one next step; empty if none is needed."""
    reservations: int = 0
    """Number of reservations among the evidence."""

    @property
    @shown()
    def answer(self) -> str:
        """``yes``, ``reservation``, ``no`` or ``not-judged``."""
        return ANSWERS[self.level]

    @property
    @shown()
    def because(self) -> str:
        """The evidence in one line."""
        return "; ".join(self.evidence)


@dataclass(frozen=True)
class Finding(Document):
    """One thing that was checked: its subject, the state that was found and, unless all is well, one line of remedy."""

    level: Level
    subject: str
    found: str
    remedy: str = ""
    """Recommended action; empty if all is well."""
    cause: str = ""
    """Name of the remedy in remedies.toml, or title of the message in messages.toml; empty for other errors."""
    link: str = ""
    """Link to a public discussion of the finding; mostly empty."""
