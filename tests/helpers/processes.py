"""Checks whether processes that a test started still run."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def running(words: bytes, file: str = "cmdline") -> dict[int, str]:
    """Return processes and their commands: those in whose command, where NUL bytes part the arguments, the words are.

    Or in whose ``environ``.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if words in (folder / file).read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = command.decode(errors="replace")
    return found


def becomes(condition: Callable[[], object], seconds: float = 60) -> bool:
    """Return whether the condition holds within this time."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(holds)


def ends(pid: int) -> bool:
    """Return whether the process ends soon: the kernel delivers a signal with some delay."""
    return becomes(lambda: not alive(pid), 5)


def wait_for(path: Path) -> int:
    for _ in range(500):
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was never written")
