"""Results of ``fp4patch apply`` and ``revert``, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree.remainder import Remainder


class ApplyState(StrEnum):
    """Result of apply or revert on one tree; of a dry run, the result that a real run would have."""

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
        """True if the file's bytes change."""
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
    """Result of a command on one tree; of a dry run, the result that a real run would have."""

    root: Path
    target: str
    version: str
    variant: str
    state: ApplyState
    files: tuple[FileResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    retired: tuple[Retired, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the user: special cases that an edit met, or an interrupted command that was completed first."""
    remainders: tuple[Remainder, ...] = ()
    """Places that contain what the patches search for and that remain unchanged."""


@dataclass(frozen=True)
class Applied:
    """Result of a command on all of its trees."""

    verb: str
    written: bool
    trees: tuple[TreeResult, ...] = ()
    cost: str = ""
    """Cost of the variant on a target that has the instruction."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every reason to refuse, over all trees."""
        return tuple(problem for tree in self.trees for problem in tree.problems)

    @property
    def refused(self) -> bool:
        """True if any tree has a problem: one problem refuses the whole command."""
        return self.state is ApplyState.REFUSED

    @property
    def changed(self) -> bool:
        """True if a tree changes, or would change in a real run."""
        return self.state in (ApplyState.APPLIED, ApplyState.REVERTED)

    @property
    def state(self) -> ApplyState:
        """State of the command as a whole."""
        states = {tree.state for tree in self.trees}
        order = (ApplyState.REFUSED, ApplyState.APPLIED, ApplyState.REVERTED)
        return next((state for state in order if state in states), ApplyState.UNCHANGED)
