"""Lists and clones a target's releases by git, for those that no package-index archive holds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from fp4patch.errors import SourceError


def clone(url: str, tag: str, to: Path, *, show_progress: bool) -> None:
    """A shallow clone of one tag or branch into ``to``, which must not exist. SourceError carries git's own words."""
    command = [_git(), "clone", "--depth", "1", "--branch", tag, "--config", "advice.detachedHead=false"]
    command += ["--progress" if show_progress else "--quiet", "--", url, str(to)]
    run = subprocess.run(
        command,
        stderr=None if show_progress else subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        errors="replace",
    )
    if run.returncode:
        raise SourceError(
            f"git cannot clone {tag} of {url}{_said(run.stderr)}",
            help="check the version and the network, or name another repository: --git URL (a local path works too)",
        )


def tags(url: str) -> tuple[str, ...]:
    """The names of a repository's tags. SourceError carries git's own words."""
    command = [_git(), "ls-remote", "--tags", "--refs", "--quiet", "--", url]
    run = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
    if run.returncode:
        raise SourceError(f"git cannot list the tags of {url}{_said(run.stderr)}", help="is it there?")
    return tuple(line.partition("refs/tags/")[2] for line in run.stdout.splitlines())


def _git() -> str:
    git = shutil.which("git")
    if git is None:
        raise SourceError(
            "this release comes by git, and there is no git on PATH", help="install git (for example `apt install git`)"
        )
    return git


def head(tree: Path) -> str:
    """The commit (40 hex digits) that is checked out."""
    run = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - the git that cloned
    return run.stdout.strip()


def _said(stderr: str | None) -> str:
    """What git names as the reason, behind a colon; else its last line, or nothing."""
    lines = (stderr or "").strip().splitlines()
    reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return f": {(reasons or lines)[-1]}" if lines else ""
