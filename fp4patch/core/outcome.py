"""Outcomes of one edit on one text: it applies, has nothing to do, or refuses."""

from dataclasses import dataclass
from typing import Literal

from fp4patch.core.state import State


@dataclass(frozen=True)
class Rewritten:
    """An edit that applies: the new text, and the 1-based lines of the pristine text that it touched."""

    text: str
    lines: tuple[int, ...]
    notes: tuple[str, ...] = ()
    """Notes about this place, beside the fact that it was edited."""
    reversal: str = ""
    """Change to upstream's text, made by others, that this edit takes back. Empty: it takes none back."""


@dataclass(frozen=True)
class NothingToDo:
    """An edit that retired itself."""

    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    because: str
    since: str = ""
    elsewhere: bool = False
    """True if the edit searches for its files and this is not one of them: the result does not apply to this text."""


@dataclass(frozen=True)
class Drift:
    """An edit that refuses, since its anchor is missing or different."""

    expected: str
    found: str
    line: int | None = None
    nearest: str = ""
    help: str = ""


Outcome = Rewritten | NothingToDo | Drift
