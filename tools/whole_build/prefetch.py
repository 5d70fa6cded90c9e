"""Compile all object files of a build through its launcher, the longest first, as soon as CMake has configured it.

    python prefetch.py 'BUILD*' JOBS SECONDS.json DRAINED

``SECONDS.json`` has the processor time of each object file; one that it does not have counts as a minute. The longest
compilation decides the time of a build on many cores, so it starts first, at a higher priority than all others. The
file ``DRAINED`` is made when the last compilation has started: the build itself can then begin, and only waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

LEFT_OUT = "/hopper/"
"""FlashAttention 3 is configured, and by the patch no target of the wheel."""


class Compilation(NamedTuple):
    """A command of the build, with its expected processor time in seconds."""

    seconds: float
    object: str
    source: str
    command: str
    directory: str


def compilations(pattern: str, known: dict[str, float]) -> list[Compilation]:
    """Return the commands of a build that is configured, the longest first; none if it is not yet."""
    found = []
    for build in Path(pattern).parent.glob(Path(pattern).name):
        if not (build / "compile_commands.json").is_file() or not (build / "build.ninja").is_file():
            continue
        listing = subprocess.run(
            ["/bin/sh", "-c", 'ninja -C "$0" -t compdb', build], capture_output=True, text=True, check=False
        )
        start = listing.stdout.find("[")
        for command in json.loads(listing.stdout[start:]) if listing.returncode == 0 and start >= 0 else ():
            words = command["command"].split()
            if "-c" in words and "-o" in words and LEFT_OUT not in command["file"]:
                name = words[words.index("-o") + 1]
                seconds = known.get(name.rpartition("CMakeFiles/")[2], 60)
                found.append(Compilation(seconds, name, command["file"], command["command"], command["directory"]))
    return sorted(found, reverse=True)


def main(pattern: str, jobs: str, seconds: str, drained: str) -> int:
    """Wait for the build, and compile; return 1 if a compilation failed."""
    known = json.loads(Path(seconds).read_text(encoding="utf-8"))
    while not (queue := compilations(pattern, known)):
        time.sleep(0.2)
    began = time.monotonic()
    waiting = len(queue)
    Path(f"{drained}.total").write_text(str(waiting), encoding="utf-8")
    _say(f"{waiting} compilations, {jobs} at a time, first {queue[0].source}")

    def compile_one(one: Compilation) -> int:
        nonlocal waiting
        Path(one.directory, one.object).parent.mkdir(parents=True, exist_ok=True)
        waiting -= 1
        if not waiting:
            Path(drained).touch()
            _say(f"the last one started after {time.monotonic() - began:.0f} s")
        priority = "" if one is queue[0] else "nice -n 5 "
        run = subprocess.run(
            ["/bin/sh", "-c", priority + one.command],
            cwd=one.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode or one is queue[0]:
            errors = run.stderr[-1500:] if run.returncode else ""
            _say(f"status {run.returncode} after {time.monotonic() - began:.0f} s: {one.source} {errors}")
        return run.returncode

    with ThreadPoolExecutor(int(jobs)) as pool:
        failed = sum(1 for status in pool.map(compile_one, queue) if status)
    _say(f"all after {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


def _say(text: str) -> None:
    sys.stdout.write(f"prefetch: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
