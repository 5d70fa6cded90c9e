"""Exit of the command when it is disturbed: Ctrl-C during an import, no room for output, a closed file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from permissions import without_privileges
from small_cutlass import CONVERTER, GUARD, small_cutlass

GetTree = Callable[[str, str], Path]

INTERRUPTED_AT_AN_IMPORT = """
import os, signal, sys

class Finder:
    left = int(sys.argv.pop())

    def find_spec(self, name, path=None, target=None):
        Finder.left -= 1
        if Finder.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

from fp4patch import __main__
sys.meta_path.insert(0, Finder())
__main__.main()
"""


@pytest.fixture
def tree(pristine_tree: GetTree, tmp_path: Path) -> Path:
    return small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")


@pytest.mark.parametrize("number", [1, 2, 5, 12, 30, 60, 90, 120, 150])
def test_an_interrupt_at_any_import_is_status_130(tree: Path, number: int) -> None:
    before = snapshot(tree)
    command = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, "apply", "--variant", "next3", str(tree), str(number)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr.strip()) == (130, "interrupted")
    assert snapshot(tree) == before


@pytest.mark.parametrize("form", [[], ["--json"], ["--diff"]])
def test_an_output_without_room_says_what_became_of_the_trees(tree: Path, form: list[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        with open("/dev/full", "w") as full:  # noqa: PTH123
            command = [sys.executable, "-m", "fp4patch", *arguments, str(tree)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr.strip()

    no_room = "error: the output cannot be written: No space left on device; "
    before = snapshot(tree)
    assert run("apply", "--variant", "turbo", "--dry-run", *form) == (1, f"{no_room}no tree was changed")
    assert snapshot(tree) == before
    done = "itself was done, and `fp4patch status` shows the states of the trees"
    assert run("apply", "--variant", "turbo", *form) == (1, f"{no_room}the apply {done}")
    assert snapshot(tree) != before
    if form != ["--diff"]:
        assert run("revert", *form) == (1, f"{no_room}the revert {done}")
        assert snapshot(tree) == before


def test_a_file_that_may_not_be_read_is_not_called_foreign(fp4patch: Callable[..., Said], tree: Path) -> None:
    fp4patch("apply", "--variant", "next2", tree)
    (tree / GUARD).chmod(0)
    said = without_privileges("status", tree)
    assert said.returncode == 1
    assert f"{GUARD}: expected a readable file, found Permission denied" in said.stderr
    assert "run fp4patch as a user who may read it" in said.stderr
    (tree / GUARD).chmod(0o644)
    (tree / CONVERTER).write_bytes(b"\0")
    files = {file["path"]: file["state"] for file in fp4patch("status", "--json", tree).document["files"]}
    assert files == {GUARD: "applied", CONVERTER: "foreign"}
