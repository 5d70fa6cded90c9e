"""Clones one release of a target by git, for the releases that no package-index archive holds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from fp4patch.errors import SourceError


def clone(url: str, tag: str, to: Path, *, show_progress: bool) -> None:
    """A shallow clone of one tag or branch into ``to``, which must not exist. SourceError carries git's own words."""
    git = shutil.which("git")
    if git is None:
        raise SourceError(
            "this release comes by git, and there is no git on PATH", help="install git (for example `apt install git`)"
        )
    command = [git, "clone", "--depth", "1", "--branch", tag, "--config", "advice.detachedHead=false"]
    command += ["--progress" if show_progress else "--quiet", "--", url, str(to)]
    run = subprocess.run(
        command, stderr=None if show_progress else subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False
    )
    if run.returncode:
        said = (run.stderr or "").strip().splitlines()
        raise SourceError(
            f"git cannot clone {tag} of {url}" + (f": {said[-1]}" if said else ""),
            help="check the version and the network, or name another repository: --git URL (a local path works too)",
        )


def head(tree: Path) -> str:
    """The commit (40 hex digits) that is checked out."""
    run = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - the git that cloned
    return run.stdout.strip()
