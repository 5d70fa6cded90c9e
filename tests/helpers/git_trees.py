"""Trees of files and repositories of git, generated, and what changes make of them by the plainest means."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from fp4patch.edits.lines import Lines
from fp4patch.edits.patch_file import FileChange

ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Jörg A. Müller",
    "GIT_AUTHOR_EMAIL": "j@example.org",
    "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.org",
}
Tree = Mapping[str, tuple[bytes, bool]]
"""Files by path: their bytes, and whether they can be executed."""


def git(folder: Path, *arguments: str, data: bytes = b"", check: bool = True) -> bytes:
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, input=data, capture_output=True, check=check).stdout


def put(folder: Path, tree: Tree) -> None:
    """Make a directory hold just these files, beside a repository's own."""
    for path in folder.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, (data, executable) in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755 if executable else 0o644)


def found(folder: Path) -> Tree:
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {p.relative_to(folder).as_posix(): (p.read_bytes(), bool(p.stat().st_mode & 0o100)) for p in files}


def applied(tree: Tree, changes: Sequence[FileChange]) -> Tree:
    """Return what changes make of a tree, by the plainest means."""
    after = {path: file for path, file in tree.items() if path not in {c.before for c in changes if not c.copied}}
    for change in changes:
        data, executable = tree[change.before] if change.before else (b"", False)
        lines, offset = list(Lines(data.decode()).lines), 0
        for hunk in change.hunks:
            at = max(hunk.line - 1, 0) + offset if hunk.before else hunk.line + offset
            assert tuple(lines[at : at + len(hunk.before)]) == hunk.before
            lines[at : at + len(hunk.before)] = hunk.after
            offset += len(hunk.after) - len(hunk.before)
        if change.after is not None:
            assert change.after not in after
            after[change.after] = (
                "".join(lines).encode(),
                executable if not change.mode_after else change.mode_after == "100755",
            )
        else:
            assert lines == []
    return after


names = st.sampled_from(
    [
        "x.h",
        "a/x.h",
        "b/x.h",
        "b/b/x.h",
        "x y.h",
        "x b/x y.h",
        "dé/ü.h",
        'q"uote.h',
        "tab\t.h",
        "é b/é",
        " lead",
        "a.h.orig",
    ]
)
rows = st.lists(
    st.sampled_from(
        ["a", "b", "c", "-- a", "++ b", "@@ -1 +1 @@", "", "\\ x", "d\r", "ü\f", "--", "diff --git a/x b/x"]
    ),
    max_size=12,
)
contents = st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), rows, st.sampled_from(["", "\n", "\r\n"]))
trees = st.dictionaries(names, st.tuples(contents, st.booleans()), max_size=5)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, tree: Tree, message: str) -> str:
    put(folder, tree)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD").decode().strip()
