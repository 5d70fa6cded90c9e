"""Measure the run times of commands on this machine, and write the table of docs/times.md.

    python docs/times.py [--repeats 5] [--cold 2] [--trees-only]

Wall time of whole processes, the best of so many runs: other work on the machine only ever adds. ``--cold`` is how
often a verify with nothing compiled yet is measured. The trees come from the package index and are copied first.
``--trees-only`` measures only apply, status and revert, and prints the table instead of writing the page.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import made_part

from fp4patch.catalog.manifest import load
from fp4patch.report import progress
from fp4patch.sources.cache import cache_dir
from fp4patch.sources.fetch import fetch

PAGE = Path(__file__).parent / "times.md"
TREES = (("cutlass", "4.2.1", "next3"), ("vllm", "0.33.0", "next3"))


def timed(*words: str | Path, cache: Path | None = None) -> float:
    """Return the seconds of one command, which must succeed; ``cache`` is the directory of compilations."""
    environ = os.environ | ({"FP4PATCH_CACHE": str(cache)} if cache else {})
    command = [sys.executable, "-m", "fp4patch", *map(str, words)]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environ)
    return time.perf_counter() - began


def shortest(measured: Iterable[float]) -> str:
    """Return the shortest time, in seconds."""
    seconds = min(measured)
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def of_tree(target: str, version: str, variant: str, scratch: Path, repeats: int, cold: int) -> list[tuple[str, str]]:
    """Return the rows of one tree: each command, and its seconds."""
    pristine = scratch / f"{target}-{version}"
    fetch(load().target(target), version, pristine, progress=progress.silent)
    tree = scratch / target

    def fresh_apply() -> float:
        """Make a tree that this machine has no cached results of."""
        shutil.rmtree(tree, ignore_errors=True)
        shutil.rmtree(cache_dir() / "folds", ignore_errors=True)
        shutil.copytree(pristine, tree, symlinks=True)
        return timed("apply", "--variant", variant, tree)

    def applied_revert() -> float:
        timed("apply", "--variant", variant, tree)
        return timed("revert", tree)

    apply = partial(timed, "apply", "--variant", variant, tree)
    rows = [
        ("apply", shortest(fresh_apply() for _ in range(repeats))),
        ("apply, with nothing left to do", shortest(apply() for _ in range(repeats))),
        ("status", shortest(timed("status", tree) for _ in range(repeats))),
        ("revert", shortest(applied_revert() for _ in range(repeats))),
    ]
    if not cold:
        return rows
    apply()
    verify = partial(timed, "verify", "--variant", variant, tree)
    caches = [Path(tempfile.mkdtemp(dir=scratch)) for _ in range(cold)]
    for option, first in (("--no-execute", "nothing cached"), ("--execute", "compiled before, not executed")):
        rows.append((f"verify {option}, {first}", shortest(verify(option, cache=cache) for cache in caches)))
        again = shortest(verify(option, cache=caches[0]) for _ in range(repeats))
        rows.append((f"verify {option}, everything cached", again))
    return rows


def main() -> None:
    """Measure, and write between the page's marks."""
    parser = argparse.ArgumentParser(description="How long commands take.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold", type=int, default=2)
    parser.add_argument("--trees-only", action="store_true")
    asked = parser.parse_args()
    lines = [f"Seconds, on {os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}.", ""]
    lines += ["| command | seconds |", "|---|---|"]
    for word in ("--version", "list"):
        lines.append(f"| `fp4patch {word}` | {shortest(timed(word) for _ in range(asked.repeats))} |")
    with tempfile.TemporaryDirectory() as scratch:
        if not os.environ.get("FP4PATCH_CACHE"):  # downloads stay where they are; what is measured starts from nothing
            archives = cache_dir() / "archives"
            os.environ["FP4PATCH_CACHE"] = str(Path(scratch) / "cache")
            (Path(scratch) / "cache").mkdir()
            if archives.is_dir():
                (Path(scratch) / "cache/archives").symlink_to(archives)
        found = [
            of_tree(*names, Path(scratch), asked.repeats, 0 if asked.trees_only else asked.cold) for names in TREES
        ]
    lines += ["", f"| command | {' | '.join(' '.join(names) for names in TREES)} |", "|---" * (1 + len(TREES)) + "|"]
    lines += [f"| {rows[0][0]} | {' | '.join(seconds for _, seconds in rows)} |" for rows in zip(*found, strict=True)]
    if asked.trees_only:
        sys.stdout.write("\n".join(lines) + "\n")
        return
    made_part.write(PAGE, "times.py", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
