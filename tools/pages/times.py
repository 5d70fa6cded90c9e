"""Measure how long commands take on this machine, and write the tables of docs/times.md.

    python -m tools.regenerate times [--repeats 5] [--cold 2]
    python -m tools.regenerate times --trees-only [--repeats 5]

``--trees-only`` measures apply, status and revert of whole source trees, in processor time (user and system) of one
process, and writes the minimum of the runs; other work on the machine hardly changes it. Without the option, the tool
measures verify, in elapsed time of whole processes, and writes the minimum of the runs. ``--cold`` is the number of
runs with nothing cached. The trees come from the package index and are copied first.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.core import progress
from fp4patch.core.cache import cache_dir
from fp4patch.sources.fetch import fetch
from tools.pages import _made_part as made_part

PAGE = Path(__file__).parents[2] / "docs" / "times.md"
TREES = (("cutlass", "4.2.1"), ("cutlass", "4.8.0"), ("vllm", "0.22.1"), ("vllm", "0.33.0"), ("flashinfer", "0.7.2"))
VERIFIED = (("cutlass", "4.2.1"), ("vllm", "0.33.0"))
VARIANT = "next3"
SEARCH = r"cvt.*e2m1x|SM121|12\.0a"


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


def spent(*command: str | Path, cwd: Path | None = None) -> float:
    """Processor time of one command, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(list(map(str, command)), check=True, capture_output=True, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_tree(target: str, version: str, scratch: Path, repeats: int) -> list[tuple[str, str]]:
    """Return the rows of one tree: each command, and its processor time."""
    tree = pristine(target, version, scratch)
    copy = scratch / "copy"
    fp4patch = partial(spent, sys.executable, "-m", "fp4patch")

    def fresh_apply() -> float:
        """Apply to a tree that this machine has no cached results of."""
        for gone in (copy, cache_dir() / "folds", cache_dir() / "trees"):
            shutil.rmtree(gone, ignore_errors=True)
        shutil.copytree(tree, copy, symlinks=True)
        return fp4patch("apply", "--variant", VARIANT, copy)

    def applied_revert() -> float:
        fp4patch("apply", "--variant", VARIANT, copy)
        return fp4patch("revert", copy)

    rows = [("`apply`, the first", shortest(fresh_apply() for _ in range(repeats)))]
    rows += [("`apply` again", shortest(fp4patch("apply", "--variant", VARIANT, copy) for _ in range(repeats)))]
    rows += [("`status`", shortest(fp4patch("status", copy) for _ in range(repeats)))]
    rows += [("`revert`", shortest(applied_revert() for _ in range(repeats)))]
    rows += [
        ("`status` of the pristine tree, the second", shortest(fp4patch("status", copy) for _ in range(repeats + 1)))
    ]
    rows += [
        (
            f"`grep -rlE '{SEARCH}'`".replace("|", "\\|"),
            shortest(spent(shutil.which("grep") or "grep", "-rlE", SEARCH, copy) for _ in range(repeats)),
        )
    ]
    names = ["-c", "user.name=fp4patch", "-c", "user.email=fp4patch@example.org"]
    git = shutil.which("git") or "git"
    for words in (("init", "-q"), ("add", "-A", "-f", "."), (*names, "commit", "-qm", "pristine"), ("status",)):
        subprocess.run([git, *words], cwd=copy, check=True, capture_output=True)
    rows += [("`git status`", shortest(spent(git, "status", cwd=copy) for _ in range(repeats)))]
    files = [path for path in tree.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return [*rows, ("files", f"{len(files):,}"), ("megabytes", f"{size / 1e6:.0f}")]


def pristine(target: str, version: str, scratch: Path) -> Path:
    """Return a tree as the package index has it."""
    tree = scratch / f"{target}-{version}"
    fetch(load().target(target), version, tree, progress=progress.silent)
    return tree


def of_verify(target: str, version: str, scratch: Path, repeats: int, cold: int) -> list[tuple[str, str]]:
    """Rows of one tree: each way to verify it, and its seconds."""
    tree = pristine(target, version, scratch)
    timed("apply", "--variant", VARIANT, tree)
    verify = partial(timed, "verify", "--variant", VARIANT, tree)
    caches = [Path(tempfile.mkdtemp(dir=scratch)) for _ in range(cold)]
    rows = []
    for option, first in (("--no-execute", "nothing cached"), ("--execute", "compiled before, not executed")):
        rows.append((f"verify {option}, {first}", shortest(verify(option, cache=cache) for cache in caches)))
        again = shortest(verify(option, cache=caches[0]) for _ in range(repeats))
        rows.append((f"verify {option}, everything cached", again))
    return rows


def table(trees: Sequence[tuple[str, str]], found: Iterable[list[tuple[str, str]]]) -> list[str]:
    """The lines of a table with a column for each tree."""
    lines = ["", f"| | {' | '.join(' '.join(names) for names in trees)} |", "|---" * (1 + len(trees)) + "|"]
    return lines + [f"| {rows[0][0]} | {' | '.join(shown for _, shown in rows)} |" for rows in zip(*found, strict=True)]


def main(arguments: list[str]) -> None:
    """Measure, and write between the page's marks."""
    parser = argparse.ArgumentParser(description="Measure the run times of commands.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold", type=int, default=2)
    parser.add_argument("--trees-only", action="store_true")
    options = parser.parse_args(arguments)
    where = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}, {VARIANT}."
    with tempfile.TemporaryDirectory() as scratch:
        if not os.environ.get("FP4PATCH_CACHE"):  # downloads stay where they are; what is measured starts from nothing
            archives = cache_dir() / "archives"
            os.environ["FP4PATCH_CACHE"] = str(Path(scratch) / "cache")
            (Path(scratch) / "cache").mkdir()
            if archives.is_dir():
                (Path(scratch) / "cache/archives").symlink_to(archives)
        if options.trees_only:
            found = [of_tree(*names, Path(scratch), options.repeats) for names in TREES]
            lines = [f"Seconds of processor time, on {where}", *table(TREES, found)]
            made_part.write(PAGE, "times --trees-only", "\n".join(lines) + "\n")
            return
        lines = [f"Seconds, on {where}", "", "| command | seconds |", "|---|---|"]
        for word in ("--version", "list"):
            lines.append(f"| `fp4patch {word}` | {shortest(timed(word) for _ in range(options.repeats))} |")
        found = [of_verify(*names, Path(scratch), options.repeats, options.cold) for names in VERIFIED]
    made_part.write(PAGE, "times", "\n".join([*lines, *table(VERIFIED, found)]) + "\n")
