"""Results of ``fp4patch apply`` and ``revert``, as values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from fp4patch.commands.diff import unified
from fp4patch.core.document import HIDDEN, Document, Report, key, shown
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
class FileResult(Document):
    """One file of a tree."""

    path: str
    """Path relative to the tree."""
    state: State
    """State at the end of the command, or of a real run."""
    patches: tuple[str, ...]
    """Patches with their versions: ``cutlass/e2m1-guard 1``."""
    before: bytes = field(metadata=HIDDEN)
    after: bytes = field(metadata=HIDDEN)
    diff: str = ""
    """With ``--diff``: a unified diff, as ``git apply`` accepts it."""

    @property
    def changed(self) -> bool:
        """True if the file's bytes change."""
        return self.before != self.after

    @property
    @shown()
    def before_sha256(self) -> str:
        """Hash of the bytes before; equal to that after if the file does not change."""
        return hashlib.sha256(self.before).hexdigest()

    @property
    @shown()
    def after_sha256(self) -> str:
        """Hash of the bytes after."""
        return hashlib.sha256(self.after).hexdigest()

    def unified(self) -> str:
        """Return the changes as a unified diff."""
        return unified(self.path, self.before, self.after)


@dataclass(frozen=True)
class FileOfTree(FileResult):
    """One file of one of the trees: the keys of a file result, and the tree."""

    tree: str = ""


@dataclass(frozen=True)
class ProblemOfTree(Problem):
    """One reason to refuse one of the trees: the keys of a problem, and the tree."""

    tree: str = ""


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
class TreeResult(Document):
    """Result of a command on one tree; of a dry run, the result that a real run would have."""

    root: Path = field(metadata=key("tree"))
    target: str
    version: str
    variant: str
    state: ApplyState
    files: tuple[FileResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Every reason to refuse."""
    retired: tuple[Retired, ...] = field(default=(), metadata=HIDDEN)
    notes: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    """Notes for the user: special cases that an edit met, or an interrupted command that was completed first."""
    remainders: tuple[Remainder, ...] = ()
    """Places that contain what the patches search for and that remain unchanged."""

    @property
    @shown("notes")
    def retired_and_notes(self) -> tuple[str, ...]:
        """Edits with nothing to do and the reason; special cases; an interrupted command that was completed."""
        return (*map(str, self.retired), *self.notes)


@dataclass(frozen=True)
class Applied(Report):
    """Result of a command on all of its trees."""

    verb: Literal["apply", "revert"] = field(metadata=key("command"))
    write: bool = field(metadata=HIDDEN)
    """True if files may be written: not by ``--dry-run``."""
    trees: tuple[TreeResult, ...] = ()
    cost: str = ""
    """Cost of the variant on a target that has the instruction."""

    @property
    @shown()
    def written(self) -> bool:
        """True if files changed: not by ``--dry-run``, not if there was nothing to do."""
        return self.write and self.changed

    @property
    @shown()
    def target(self) -> str | None:
        """Target of the tree; null if there are several trees."""
        return self.trees[0].target if len(self.trees) == 1 else None

    @property
    @shown()
    def version(self) -> str | None:
        """Version of the tree; null if there are several trees."""
        return self.trees[0].version if len(self.trees) == 1 else None

    @property
    @shown()
    def variant(self) -> str:
        """Variant of the trees."""
        return self.trees[0].variant

    @property
    @shown()
    def files(self) -> tuple[FileOfTree, ...]:
        """Files of all trees."""
        return tuple(FileOfTree(**vars(file), tree=str(tree.root)) for tree in self.trees for file in tree.files)

    @property
    @shown()
    def problems(self) -> tuple[ProblemOfTree, ...]:
        """Problems of all trees."""
        return tuple(ProblemOfTree(**vars(one), tree=str(tree.root)) for tree in self.trees for one in tree.problems)

    @property
    def refused(self) -> bool:
        """True if any tree has a problem: one problem refuses the whole command."""
        return self.state is ApplyState.REFUSED

    @property
    def changed(self) -> bool:
        """True if a tree changes, or would change in a real run."""
        return self.state in (ApplyState.APPLIED, ApplyState.REVERTED)

    @property
    @shown()
    def state(self) -> ApplyState:
        """Result for all trees together; one refusal refuses all."""
        states = {tree.state for tree in self.trees}
        order = (ApplyState.REFUSED, ApplyState.APPLIED, ApplyState.REVERTED)
        return next((state for state in order if state in states), ApplyState.UNCHANGED)

    def with_diffs(self) -> Applied:
        """Return the same with a diff in each file."""
        trees = (replace(t, files=tuple(replace(f, diff=f.unified()) for f in t.files)) for t in self.trees)
        return replace(self, trees=tuple(trees))
