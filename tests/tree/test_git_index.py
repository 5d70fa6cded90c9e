"""Comparison of git's own list of tracked files with the index as it is read here."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from small_cutlass import git

from fp4patch.tree.git_index import tracked

NAMES = [
    "a.h",
    "a/b.h",
    "a/b/c.h",
    "a.hpp",
    ".fp4patch/receipt.json",
    "é ü.cu",
    "x" * 200,
    *(f"many/{n}" for n in range(60)),
]


def repository(top: Path, *options: str) -> Path:
    top.mkdir()
    git(top, "init", "-q", *options)
    for name in NAMES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "all", "--no-gpg-sign")
    return top


def said_by_git(folder: Path) -> dict[str, str]:
    lines = git(folder, "-c", "core.quotePath=false", "ls-files", "-sz").split("\0")
    rows = [line.partition("\t") for line in lines if line]
    return {name: about.split()[1] for about, _, name in rows}


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("objects", ["sha1", "sha256"])
def test_reads_what_git_tracks(tmp_path: Path, version: str, objects: str) -> None:
    top = repository(tmp_path / "top", f"--object-format={objects}")
    git(top, "update-index", f"--index-version={version}")
    (top / "later.h").write_text("later")
    git(top, "add", "-N", "later.h")  # an entry with further flags
    assert tracked(top) == said_by_git(top)
    assert (
        tracked(top / "a") == said_by_git(top / "a") == {n[2:]: o for n, o in said_by_git(top).items() if n[:2] == "a/"}
    )


def test_reads_a_split_index_and_a_worktree(tmp_path: Path) -> None:
    top = repository(tmp_path / "top")
    git(top, "worktree", "add", "-q", "../other")
    assert tracked(tmp_path / "other") == said_by_git(tmp_path / "other") != {}
    git(top, "update-index", "--split-index")
    (top / "a.h").write_text("changed")
    (top / "new.h").write_text("new")
    git(top, "add", "a.h", "new.h")
    assert tracked(top).keys() == said_by_git(top).keys()


def test_no_checkout_and_no_sound_index_track_nothing(tmp_path: Path) -> None:
    assert tracked(tmp_path) == {}
    top = repository(tmp_path / "top")
    index, rng = top / ".git/index", random.Random(1)
    whole = index.read_bytes()
    for _ in range(200):
        data = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(4) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        index.write_bytes(data)
        tracked(top)
    shutil.rmtree(top / ".git")
    (top / ".git").write_text("gitdir: /dev")
    assert tracked(top) == {}
