"""Findings of ``fp4patch status``: the state of each patch and each file of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fp4patch.core.state import State
from fp4patch.tree.remainder import Remainder

WORST_FIRST = (
    State.FOREIGN,
    State.DRIFTED,
    State.OUTDATED,
    State.APPLIED,
    State.REVERSED,
    State.PRISTINE,
    State.UPSTREAMED,
    State.NOT_NEEDED,
)


@dataclass(frozen=True)
class FileStatus:
    """A file that fp4patch changed or would change."""

    path: str
    state: State
    patches: tuple[str, ...]


@dataclass(frozen=True)
class PatchStatus:
    """A patch on this tree, with a reason if its state is neither applied nor pristine."""

    patch: str
    state: State
    because: str


@dataclass(frozen=True)
class TreeStatus:
    """State of a tree from its receipt and its bytes. Without a receipt, every patch of its target is tried on it."""

    root: Path
    target: str
    version: str
    variant: str
    files: tuple[FileStatus, ...]
    patches: tuple[PatchStatus, ...]
    notes: tuple[str, ...]
    remainders: tuple[Remainder, ...] = ()
    """Places that the patches left unchanged, as the receipt records them."""

    @property
    def state(self) -> State:
        """The state of its files that needs attention most; without any it is pristine, or reversed.

        A patch of the applied variant that drifted counts too: code that it should have changed is in another file.
        """
        states = {file.state for file in self.files} or {State.PRISTINE}
        counted = {State.REVERSED, State.DRIFTED} if self.variant else {State.REVERSED}
        states |= counted & {patch.state for patch in self.patches}
        return next(state for state in WORST_FIRST if state in states)
