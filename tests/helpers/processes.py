"""Checks whether processes that a test started still run."""

from __future__ import annotations

import time
from pathlib import Path


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def ends(pid: int) -> bool:
    """Return whether the process ends soon: the kernel delivers a signal with some delay."""
    for _ in range(250):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def wait_for(path: Path) -> int:
    for _ in range(500):
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was never written")
