"""Git repositories, by GitPython: clone a release, list its tags, and name the commit of a clone.

Whatever a repository brings along is input: a URL runs no program (``ext::``), and an option is never taken from a
name.
"""

import os
import re
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urljoin

from fp4patch.core.errors import SourceError
from fp4patch.core.store import cache_dir, scratch

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = "check the version and the network, or name another repository: --git URL (a local path works too)"
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0"}  # a repository that requires a password is an error; git must not prompt


def clone(url: str, ref: str, to: Path, submodules: Sequence[str] = ()) -> None:
    """Make a shallow clone of one tag, branch or commit in ``to``, which must not exist.

    ``submodules``: those that hold one of these paths are taken along. SourceError carries git's reason.
    """
    with _said(f"git cannot clone {ref} of {url}", _REPOSITORY) as git:
        repo = _cloned(git, url, ref, to)
        for submodule in repo.submodules:
            if any(PurePosixPath(path).is_relative_to(submodule.path) for path in submodules):
                place = urljoin(f"{url}/", submodule.url) if submodule.url.startswith("../") else submodule.url
                clone(place, submodule.hexsha, to / submodule.path)


def _cloned(git: Any, url: str, ref: str, to: Path) -> Any:
    """Return the new clone of one tag, branch or commit, without its submodules."""
    if not _COMMIT.fullmatch(ref):
        return git.Repo.clone_from(url, to, env=_ENVIRONMENT, depth=1, branch=ref)
    repo = git.Repo.init(to)
    repo.git.update_environment(**_ENVIRONMENT)
    repo.create_remote("origin", url).fetch(ref, depth=1, no_tags=True)
    repo.git.checkout("--quiet", "--detach", ref)
    return repo


def tags(url: str) -> tuple[str, ...]:
    """Return the names of a repository's tags. SourceError carries git's reason."""
    with _said(f"git cannot list the tags of {url}", "is it there?") as git:
        git.Git.check_unsafe_protocols(url)
        asked = git.Git()
        asked.update_environment(**_ENVIRONMENT)
        listed = str(asked.ls_remote("--tags", "--refs", "--quiet", "--", url))
    return tuple(line.partition("refs/tags/")[2] for line in listed.splitlines())


def head(tree: Path) -> str:
    """Return the commit that a clone of ours has checked out."""
    with library().Repo(tree) as repo:
        return str(repo.head.commit.hexsha)


def library() -> Any:
    """Return GitPython, which is loaded when it is first needed."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # reading a repository needs no git program
    import git  # noqa: PLC0415 - it takes a while to load

    return git


@contextmanager
def _said(what: str, advice: str) -> Iterator[Any]:
    """GitPython, with git's failures as SourceError. A git that is interrupted has ended when this ends."""
    if shutil.which("git") is None:
        raise SourceError(
            "this release comes by git, and there is no git on PATH", help="install git (for example `apt install git`)"
        )
    git = library()
    try:
        yield git
    except git.exc.GitCommandError as error:
        raise SourceError(f"{what}{_reason(str(error.stderr))}", help=advice) from error
    except git.exc.GitError as error:
        raise SourceError(f"{what}: {str(error).partition(', use ')[0]}", help=advice) from error
    except KeyboardInterrupt as stop:
        traceback.clear_frames(stop.__traceback__)  # GitPython ends git and waits for it when it drops the process
        raise


def _reason(stderr: str) -> str:
    """Return the reason that git prints first, after a colon; else its last line, or nothing."""
    lines = [line.strip().removeprefix("stderr: '").strip("'") for line in stderr.strip().splitlines()]
    reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return f": {reasons[0] if reasons else lines[-1]}" if lines else ""


MARK = 97
"""Signs of a conflict's mark: no source has a line of so many."""


def merge_file(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, int]:
    """Return a text with the changes of two others to it, and the number of conflicts, which have git's marks.

    SourceError: git fails, or there is none.
    """
    with scratch(cache_dir(), "merge-") as folder, _said("git cannot merge", "see git's message") as git:
        for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
            (folder / name).write_bytes(text)
        options = ["-c", "merge.conflictStyle=merge", "merge-file", "-p", "-q", f"--marker-size={MARK}"]
        status, out, error = git.Git(folder).execute(
            [git.Git.GIT_PYTHON_GIT_EXECUTABLE, *options, "ours", "base", "theirs"],
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            env={"GIT_CEILING_DIRECTORIES": str(folder.parent)},
        )
    if status < 0 or status > 127:
        raise SourceError(f"git cannot merge{_reason(str(error))}", help="see git's message")
    return bytes(out), int(status)
