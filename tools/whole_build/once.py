#!/usr/bin/env -S python3 -IS
"""Run each compilation once, also where two builds ask for it at the same time.

A compiler launcher: named ``ccache`` on PATH, it takes the place of the compiler cache in the stages of the Dockerfile.
``ONCE`` is the directory of the object files and of ``times.jsonl``, which gets a line for each compilation. With
``ONCE_EMPTY`` set, object files are empty, so that all steps of a build are tried in minutes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


OUTPUTS = ("-o", "-MF")
"""Options whose values are the files that a compilation writes."""


def main(words: list[str]) -> int:
    """Execute the compilation, or copy its result if it was executed before; return its exit status."""
    kept = Path(os.environ.get("ONCE", "/var/cache/compiler/once"))
    if not words or words[0].startswith("-"):
        sys.stdout.write(f"compiled once: {len(list(kept.glob('*.done')))} object files\n")
        return 0
    if "-c" not in words or "-o" not in words or "CMakeFiles/CMakeScratch" in str(Path.cwd()):
        os.execvp(words[0], words)  # noqa: S606 - the compiler itself
    kept.mkdir(parents=True, exist_ok=True)
    key = kept / hashlib.sha256("\0".join([str(Path.cwd()), *words]).encode()).hexdigest()
    files = {option: Path(words[words.index(option) + 1]) for option in OUTPUTS if option in words}
    with key.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if key.with_suffix(".done").exists():
            for option, path in files.items():
                shutil.copyfile(f"{key}{option}", path)
            return 0
        start = time.time()
        status = subprocess.call(_empty(words, files) if "ONCE_EMPTY" in os.environ else words)
        if status == 0:
            for option, path in files.items():
                shutil.copyfile(path, f"{key}{option}")
            key.with_suffix(".done").touch()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = {
            "object": str(files["-o"]),
            "source": words[words.index("-c") + 1],
            "status": status,
            "start": start,
            "wall": time.time() - start,
            "cpu": used.ru_utime + used.ru_stime,
            "mib": used.ru_maxrss // 1024,
        }
        with (kept / "times.jsonl").open("a") as times:
            times.write(json.dumps(line) + "\n")
    return status


def _empty(words: list[str], files: Mapping[str, Path]) -> list[str]:
    """Return the command of an empty object file; write the list of its dependencies."""
    if "-MF" in files:
        files["-MF"].write_text(f"{files['-o']}: {words[words.index('-c') + 1]}\n")
    return ["g++", "-fPIC", "-x", "c++", "-c", "/dev/null", "-o", str(files["-o"])]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
