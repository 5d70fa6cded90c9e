"""Opening of trees by every command: the files that it may write, and those that a receipt may name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.catalog.scope import Scope
from fp4patch.tree.transaction import OnWait, Transaction


def reading(roots: Sequence[Path], on_wait: OnWait) -> Transaction:
    """Lock trees to look at them. Nothing in them is written, not even to put an interrupted command in order."""
    return Transaction(roots, on_wait, writes=False, scope=Scope(load()))


def changing(roots: Sequence[Path], on_wait: OnWait) -> Transaction:
    """Lock trees to change them; what an interrupted command left there is put in order first."""
    return Transaction(roots, on_wait, scope=Scope(load()))
