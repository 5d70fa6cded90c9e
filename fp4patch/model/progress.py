"""How far a long command is, as the part that works tells the part that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """How far a command is: compilations or sweeps done, and which one was the last."""

    done: int
    total: int
    what: str
    """``cutlass/e2m1-x8 sm_121a patched``; empty before the first."""
    cached: bool


OnProgress = Callable[[Step], None]
