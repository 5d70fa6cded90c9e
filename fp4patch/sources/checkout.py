"""What a git checkout has of a file: committed, staged and in its history. Git is asked by GitPython.

A repository is input: nothing of its configuration runs, and nothing is fetched.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fp4patch.sources.git import library

_LIMIT = 30
"""Seconds that git may take for one answer: a pipe in the place of a ref would make it wait forever."""
_LARGEST = 16 << 20
"""Bytes of the largest file that is read: no source file comes near it."""
_LONGEST = 4200
"""Bytes of a ``.git`` that is a file: ``gitdir:`` and a path."""
_COMMITS = 50
"""Commits that are looked at for a file's history."""


@dataclass(frozen=True)
class Checkout:
    """A directory with ``.git``, and the repository of it: in a submodule or a worktree, ``.git`` is a file."""

    folder: Path
    repository: Path

    @staticmethod
    def around(path: Path) -> "Checkout | None":
        """Return the innermost checkout that a path is in; None if there is none."""
        for folder in path.parents:
            place = folder / ".git"
            if place.is_dir():
                return Checkout(folder, place)
            if place.is_file():
                named = re.fullmatch(rb"gitdir: ([^\0\n]+)\n*", _beginning(place))
                return Checkout(folder, folder / os.fsdecode(named[1])) if named else None
        return None

    def read(self, commit: str, path: Path) -> bytes | None:
        """Return a file as a commit has it, or for ``:0`` the index; None if that has none."""
        name = f"{commit}:{path.relative_to(self.folder).as_posix()}"
        size = self.say("cat-file", "-s", name)
        return self.say("cat-file", "blob", name) if size and int(size) <= _LARGEST else None

    @staticmethod
    def at(folder: Path) -> "Checkout | None":
        """Return the repository of a clone, with a work tree or without; None if it is none."""
        if (folder / ".git").exists():
            return Checkout.around(folder / "x")
        return Checkout(folder, folder) if (folder / "HEAD").is_file() and (folder / "objects").is_dir() else None

    def blob(self, name: str) -> bytes | None:
        """Return a file by its hash, or by ``COMMIT:PATH``; None if the repository has none, or two."""
        size = self.say("cat-file", "-s", name)
        return self.say("cat-file", "blob", name) if size and int(size) <= _LARGEST else None

    def history(self, path: Path) -> Iterator[tuple[str, bytes]]:
        """Yield the last commits that changed a file, the newest first, and the file as they have it."""
        name = f":(literal,top){path.relative_to(self.folder).as_posix()}"
        said = self.say("rev-list", f"--max-count={_COMMITS}", "--full-history", "--abbrev-commit", "HEAD", "--", name)
        for commit in (said or b"").decode("ascii", "replace").split():
            if (text := self.read(commit, path)) is not None:
                yield commit, text

    def merged(self, base: Path, ours: Path, theirs: Path) -> bytes | None:
        """Return a file with the changes of two others to it; None if they change the same lines."""
        return self.say("merge-file", "-p", "-q", str(ours), str(base), str(theirs))

    def say(self, *words: str) -> bytes | None:
        """Return what git prints; None if it fails, or does not end."""
        environ = {
            "GIT_DIR": str(self.repository),  # a hook of git, which may have started fp4patch, sets these three
            "GIT_WORK_TREE": str(self.folder),
            "GIT_INDEX_FILE": str(self.repository / "index"),
            "GIT_ALLOW_PROTOCOL": "",  # a part that was never fetched stays missing
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "false",
        }
        git = library()
        command = [git.Git.GIT_PYTHON_GIT_EXECUTABLE, *words]
        try:
            started: Any = git.Git(self.folder).execute(
                command, as_process=True, env=environ, istream=subprocess.DEVNULL, start_new_session=True
            )
        except (git.exc.GitError, OSError):
            return None
        process: subprocess.Popen[bytes] = started.proc
        with process:
            try:
                out, _ = process.communicate(timeout=_LIMIT)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.returncode is None:
                    process.kill()
        return out if process.returncode == 0 else None


def _beginning(file: Path) -> bytes:
    """Return the first bytes of a file; empty if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST)
    except OSError:
        return b""
