"""Exit of the command when it is disturbed: no room for output, a file that cannot be read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, without_privileges
from small_cutlass import CONVERTER, GUARD, small_cutlass

GetTree = Callable[[str, str], Path]


@pytest.fixture
def tree(pristine_tree: GetTree, tmp_path: Path) -> Path:
    return small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")


@pytest.mark.parametrize("form", [[], ["--json"], ["--diff"]])
def test_an_output_without_room_is_an_error_and_no_bug(tree: Path, form: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "fp4patch", "apply", "--variant", "turbo", "--dry-run", *form, str(tree)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    no_room = "error: the output cannot be written: No space left on device"
    assert (done.returncode, done.stderr.strip()) == (1, no_room)


def test_a_file_that_may_not_be_read_is_not_called_foreign(fp4patch: Callable[..., Said], tree: Path) -> None:
    fp4patch("apply", "--variant", "next2", tree)
    (tree / GUARD).chmod(0)
    said = without_privileges("status", tree)
    assert said.returncode == 1
    assert f"{GUARD}: expected a readable file, found Permission denied" in said.stderr
    assert "run fp4patch as a user who may read it" in said.stderr
    (tree / GUARD).chmod(0o644)
    (tree / CONVERTER).write_bytes(b"\0")
    files = {file["path"]: file["state"] for file in fp4patch("status", "--json", tree).tree["files"]}
    assert files == {GUARD: "applied", CONVERTER: "foreign"}
