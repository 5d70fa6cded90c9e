"""Measure what fp4patch costs on a tree, beside grep and git.

    python -m tools.regenerate times TREE...

It replaces a table of docs/evidence.md. Each figure is the processor's seconds of one command and of all that it
starts, on a copy of the tree that is committed to git, with an empty cache of fp4patch and its files compiled, as pip
leaves them; the files of the tree were read before.
"""

import compileall
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from tools.pages._made_part import write

PAGE = Path(__file__).parents[2] / "docs/evidence.md"
OWN = (sys.executable, "-m", "fp4patch")
GIT = ("git", "-c", "user.name=times", "-c", "user.email=times@localhost", "-c", "maintenance.auto=false")
COMMANDS: Mapping[str, Sequence[str]] = {
    "`grep -rIl e2m1`": ("grep", "-rIl", "e2m1", "."),
    "`git status`": ("git", "status"),
    "`fp4patch --version`": (*OWN, "--version"),
    "`doctor`": (*OWN, "doctor", "."),
    "`doctor --json`": (*OWN, "doctor", "--json", "."),
    "`apply`": (*OWN, "apply", "--variant", "next3", "."),
    "`apply` again": (*OWN, "apply", "--variant", "next3", "."),
    "`status`": (*OWN, "status", "."),
    "`revert`": (*OWN, "revert", "."),
}


def seconds(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Return the seconds of the processor that a command takes in a folder, whatever its exit status."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(tree: Path) -> Iterator[float]:
    """Yield the seconds of each command on a copy of a tree, in their order."""
    with tempfile.TemporaryDirectory() as work:
        copy = Path(work) / "tree"
        shutil.copytree(tree, copy, symlinks=True)
        environment = {**os.environ, "FP4PATCH_CACHE": f"{work}/cache", "PYTHONPATH": os.pathsep.join(sys.path)}
        for arguments in (("init", "--quiet"), ("add", "--force", "."), ("commit", "--quiet", "--message", "pristine")):
            subprocess.run([*GIT, *arguments], cwd=copy, check=True, stdout=subprocess.DEVNULL)
        for command in COMMANDS.values():
            yield seconds(command, copy, environment)


def main(trees: list[str]) -> None:
    """Measure each command on each tree, and write the table."""
    if not trees:
        raise SystemExit("name one or more pristine trees")
    compileall.compile_dir(str(PAGE.parents[1] / "fp4patch"), quiet=1)
    columns = [["", "---", *COMMANDS]]
    for name in trees:
        tree = identify(Path(name), load())
        times = [f"{time:.2f}" for time in measured(tree.root)]
        columns.append([f"{tree.target.name} {tree.version}", "---", *times])
        print(columns[-1][0], *times, flush=True)  # noqa: T201 - a script
    lines = (f"| {' | '.join(row)} |\n" for row in zip(*columns, strict=True))
    write(PAGE, "times", "".join(lines))
