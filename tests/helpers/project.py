"""A project of a test: a repository of git with commits, tags and patches of them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.org",
}


class Project:
    """A repository with one branch."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, data: bytes = b"", check: bool = True) -> bytes:
        command = ["git", "-c", "core.autocrlf=false", *words]
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, input=data, capture_output=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, files: Mapping[str, str | None], message: str, tag: str = "") -> str:
        """Write files, or delete those that are None, commit them, and return the commit."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD").decode().strip()

    def mail(self, commit: str = "HEAD", *options: str) -> bytes:
        return self.git("format-patch", "-1", "--stdout", "-M", "--full-index", *options, commit)

    def revert(self, commit: str, tag: str = "") -> str:
        self.git("revert", "--no-edit", commit)
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD").decode().strip()
