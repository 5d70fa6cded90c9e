"""Findings of ``fp4patch status``: the state of each patch and each file of a tree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fp4patch.core.document import Document, Report, key, shown
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
class FileStatus(Document):
    """A file that fp4patch changed or would change."""

    path: str
    state: State
    patches: tuple[str, ...]


@dataclass(frozen=True)
class PatchStatus(Document):
    """A patch on this tree."""

    patch: str
    state: State
    because: str
    """Reason, if the state is neither applied nor pristine."""


@dataclass(frozen=True)
class TreeStatus(Document):
    """State of a tree from its receipt and its bytes. Without a receipt, every patch of its target is tried on it."""

    root: Path = field(metadata=key("tree"))
    target: str
    version: str
    variant: str
    """Variant that is applied; empty if none."""
    files: tuple[FileStatus, ...]
    """Files that a patch changes, or would change."""
    patches: tuple[PatchStatus, ...]
    notes: tuple[str, ...]
    remainders: tuple[Remainder, ...] = ()
    """Places that the patches left unchanged, as the receipt records them."""

    @property
    @shown()
    def state(self) -> State:
        """The state of its files that needs attention most; without any it is pristine, or reversed.

        A patch of the applied variant that drifted counts too: code that it should have changed is in another file.
        """
        states = {file.state for file in self.files} or {State.PRISTINE}
        counted = {State.REVERSED, State.DRIFTED} if self.variant else {State.REVERSED}
        states |= counted & {patch.state for patch in self.patches}
        return next(state for state in WORST_FIRST if state in states)


@dataclass(frozen=True)
class SeveralTrees(Report):
    """States of several trees."""

    trees: tuple[TreeStatus, ...]


@dataclass(frozen=True)
class OneTree(TreeStatus, Report):
    """State of the only tree: the keys of a tree status are also at the top level."""

    trees: tuple[TreeStatus, ...] = ()


def whole(found: Sequence[TreeStatus]) -> Report:
    """Return the document over some trees."""
    return OneTree(**vars(found[0]), trees=(found[0],)) if len(found) == 1 else SeveralTrees(tuple(found))
