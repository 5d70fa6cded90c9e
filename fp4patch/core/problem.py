"""One reason to refuse, as every part of fp4patch states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fp4patch.core.state import State


@dataclass(frozen=True)
class Problem:
    """One reason to refuse: place, expectation, finding, nearest match and recommended action."""

    expected: str
    found: str
    help: str = ""
    patch: str = ""
    file: str = ""
    line: int | None = None
    nearest: str = ""
    state: State | None = None
