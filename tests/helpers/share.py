"""Shares of the longest tests: another one with each commit, the same one for everybody who runs it.

``FP4PATCH_SEED`` chooses the share; a run prints it in its first lines, and it is the commit's hash by default.
"""

import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SEED = "FP4PATCH_SEED"


@cache
def seed() -> str:
    """Return what chooses the shares."""
    if chosen := os.environ.get(SEED):
        return chosen
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no commit"


def share(items: Sequence[T], number: int, what: str) -> list[T]:
    """Return some of the items, in their order. ``what`` names the test, so that two of them choose differently."""
    chosen = random.Random(f"{seed()} {what}").sample(range(len(items)), min(number, len(items)))
    return [items[index] for index in sorted(chosen)]


def first(what: str) -> int:
    """Return the first number of the seeds that a test of made-up inputs goes through."""
    return random.Random(f"{seed()} {what}").randrange(1 << 32)
