"""Progress of a long command, as reported to the code that displays it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Progress of a command: the number of compilations, sweeps or bytes done, and the last of them."""

    done: int
    total: int | None
    """Number to do; None if it is not known."""
    what: str
    """Name of the last step: ``cutlass/e2m1-x8 sm_121a patched``. Empty before the first."""


OnProgress = Callable[[Step], None]


def silent(_step: Step) -> None:
    """Show nothing."""
