"""What ``fp4patch apply`` and ``revert`` did to files and trees, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fp4patch.model.problem import Problem
from fp4patch.model.remainder import Remainder
from fp4patch.model.state import State


class ApplyState(StrEnum):
    """What apply or revert did to a tree, or would do."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REVERTED = "reverted"
    REFUSED = "refused"


@dataclass(frozen=True)
class FileResult:
    """One file of a tree: the state it is in when the command is done, and its bytes before and after."""

    path: str
    state: State
    patches: tuple[str, ...]
    before: bytes
    after: bytes

    @property
    def changed(self) -> bool:
        """Whether its bytes change."""
        return self.before != self.after


@dataclass(frozen=True)
class Retired:
    """An edit that has nothing to do in this tree: upstreamed or not-needed, since which release, and why."""

    patch: str
    state: State
    since: str
    because: str

    def __str__(self) -> str:
        since = f" since {self.since}" if self.since else ""
        return f"{self.patch}: {self.state}{since}: {self.because}"


@dataclass(frozen=True)
class TreeResult:
    """What a command did to one tree, or would do."""

    root: Path
    target: str
    version: str
    variant: str
    state: ApplyState
    files: tuple[FileResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    retired: tuple[Retired, ...] = ()
    notes: tuple[str, ...] = ()
    """What a user should know: what an edit met on its way, an interrupted command that was finished."""
    remainders: tuple[Remainder, ...] = ()
    """Places that have what the patches look for and that stay as they are."""


@dataclass(frozen=True)
class Applied:
    """What a command did to all its trees."""

    verb: str
    written: bool
    trees: tuple[TreeResult, ...] = ()
    cost: str = ""
    """What the variant costs on a target that has the instruction."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every reason to refuse, of every tree."""
        return tuple(problem for tree in self.trees for problem in tree.problems)

    @property
    def refused(self) -> bool:
        """One problem anywhere refuses everything."""
        return self.state is ApplyState.REFUSED

    @property
    def changed(self) -> bool:
        """Whether a tree changes, or would."""
        return self.state in (ApplyState.APPLIED, ApplyState.REVERTED)

    @property
    def state(self) -> ApplyState:
        """What the command came to as a whole."""
        states = {tree.state for tree in self.trees}
        order = (ApplyState.REFUSED, ApplyState.APPLIED, ApplyState.REVERTED)
        return next((state for state in order if state in states), ApplyState.UNCHANGED)
