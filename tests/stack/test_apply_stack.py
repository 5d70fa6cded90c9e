"""``apply --with STACK``: patches that build on each other, with and without a variant, in and out to the byte."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from small_trees import CONVERSION, small_tree

Command = Callable[..., Said]
SETUP = "setup.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = small_tree("mlx", tmp_path / "mlx")
    (root / SETUP).write_text("import os\n\nprint(os)\n")
    return root


def first(work: Path) -> None:
    (work / "new.py").write_text("one = 1\n")
    (work / SETUP).rename(work / "setup_all.py")


def second(work: Path) -> None:
    (work / "new.py").write_text("one = 1\ntwo = 2\n")
    (work / "setup_all.py").write_text("import os\n\nprint(os, 2)\n")
    text = (work / CONVERSION).read_text()
    (work / CONVERSION).write_text(text.replace("#include", "#include <cstdint>\n#include", 1))


@pytest.fixture
def stack(tree: Path, tmp_path: Path) -> Path:
    """Return a stack of two mails, of which the second builds on the first."""
    work, folder = tmp_path / "work", tmp_path / "carried"
    shutil.copytree(tree, work)
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    for number, change in enumerate((lambda _: None, first, second)):
        change(work)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", f"Change {number} (#{number})"], check=True)
    subprocess.run([*git, "format-patch", "-q", "-o", str(folder), "HEAD~2"], check=True)
    return folder


def test_a_stack_goes_in_alone_and_its_directory_is_not_needed_again(
    fp4patch: Command, tree: Path, stack: Path
) -> None:
    before = snapshot(tree)
    applied = fp4patch("apply", "--with", stack, "--json", tree)
    assert applied.status == 0, applied.err
    assert applied.tree["variant"] == "stack"
    assert {p["patch"]: p["state"] for p in applied.tree["patches"]} == {
        "mlx/0001-Change-1-1": "applied",
        "mlx/0002-Change-2-2": "applied",
    }
    assert (tree / "new.py").read_text().startswith("one = 1\ntwo = 2\n# fp4patch stack: ")
    assert not (tree / SETUP).exists()
    diffs = json.loads((tree / ".fp4patch/receipt.json").read_text())["diffs"]
    assert [diff["stack"] for diff in diffs] == ["carried", "carried"]
    assert len({diff["stack_sha256"] for diff in diffs}) == 1
    assert all(diff["file_sha256"] and not diff["merged"] for diff in diffs)
    shutil.rmtree(stack)
    after = snapshot(tree)
    status = fp4patch("status", "--json", tree)
    assert {file["state"] for file in status.tree["files"]} == {"applied"}
    assert "carried" in " ".join(status.tree["notes"])
    assert fp4patch("apply", tree).status == 0
    assert snapshot(tree) == after
    assert fp4patch("verify", tree).status == 2
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


@pytest.mark.parametrize("name", ["my stack", "patches+fixes", "Änderungen", "-p", ".carried"])
def test_a_directory_can_have_any_name(fp4patch: Command, tree: Path, stack: Path, name: str) -> None:
    before = snapshot(tree)
    assert fp4patch("apply", "--with", stack.rename(stack.parent / name), tree).status == 0
    assert fp4patch("status", tree).status == 0
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


@pytest.mark.parametrize("kind", ["link to nowhere", "pipe", "directory"])
def test_no_patch_is_left_out_in_silence(fp4patch: Command, tree: Path, stack: Path, kind: str) -> None:
    other = stack / "0003-other.patch"
    match kind:
        case "pipe":
            os.mkfifo(other)
        case "directory":
            other.mkdir()
        case _:
            other.symlink_to("gone")
    before = snapshot(tree)
    refused = fp4patch("apply", "--with", stack, tree)
    assert refused.status == 1
    assert "0003-other.patch" in refused.err
    assert snapshot(tree) == before


@pytest.mark.parametrize("name", ["series", "stack.toml"])
def test_nothing_outside_of_the_stack_is_read(
    fp4patch: Command, tree: Path, stack: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "secret").write_text("root:x:0\n")
    (stack / name).symlink_to(tmp_path / "secret")
    refused = fp4patch("apply", "--with", stack, tree)
    assert refused.status == 2
    assert "link out of the stack" in refused.err
    assert "x:0" not in refused.err


def test_what_fp4patch_put_in_is_not_in_the_release(fp4patch: Command, tree: Path, stack: Path) -> None:
    planned = fp4patch("plan", "--json", stack, tree).document["steps"]
    assert [step["outcome"] for step in planned] == ["applies", "applies"]
    assert fp4patch("apply", "--with", stack, tree).status == 0
    assert fp4patch("plan", "--json", stack, tree).document["steps"] == planned


@pytest.mark.parametrize("way", ["below a file", "at a directory", "at a link", "through a link"])
def test_plan_and_apply_agree_about_what_is_in_the_way(fp4patch: Command, tree: Path, tmp_path: Path, way: str) -> None:
    path = {"below a file": f"{SETUP}/x.py", "through a link": "link/x.py"}.get(way, "x.py")
    if way == "at a directory":
        (tree / path).mkdir()
    if "a link" in way:
        (tree / path.partition("/")[0]).symlink_to(tmp_path)
    (tmp_path / "s").mkdir()
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    (tmp_path / "s/a.patch").write_text(f"{head}@@ -0,0 +1 @@\n+one = 1\n")
    before = snapshot(tree)
    assert fp4patch("apply", "--with", tmp_path / "s", tree).status == 1
    assert fp4patch("plan", tmp_path / "s", tree).status == 1
    assert snapshot(tree) == before


@pytest.mark.parametrize("crlf", ["diff", "tree"])
def test_other_line_ends_are_named(fp4patch: Command, tree: Path, tmp_path: Path, crlf: str) -> None:
    (tmp_path / "s").mkdir()
    diff = f"--- a/{SETUP}\n+++ b/{SETUP}\n@@ -1,3 +1,4 @@\n import os\n \n+x = 1\n print(os)\n"
    text = (tree / SETUP).read_text()
    (tree / SETUP).write_bytes((text.replace("\n", "\r\n") if crlf == "tree" else text).encode())
    (tmp_path / "s/a.patch").write_bytes((diff.replace("\n", "\r\n") if crlf == "diff" else diff).encode())
    refused = fp4patch("apply", "--with", tmp_path / "s", tree)
    assert refused.status == 1
    mine, theirs = ("CRLF", "LF") if crlf == "tree" else ("LF", "CRLF")
    assert f"the same lines with {mine}, and with {theirs} in the diff" in refused.err


def test_a_variant_goes_on_top_of_a_stack(fp4patch: Command, tree: Path, stack: Path) -> None:
    before = snapshot(tree)
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    native = snapshot(tree)
    applied = fp4patch("apply", "--with", stack, "--json", tree).tree
    assert applied["variant"] == "native"
    (file,) = (file for file in applied["files"] if file["path"] == CONVERSION)
    assert file["patches"] == ["mlx/0002-Change-2-2 1", "mlx/family-guard 1"]
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    assert snapshot(tree) == native
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


def test_a_patch_without_the_one_that_it_builds_on_is_refused(fp4patch: Command, tree: Path, stack: Path) -> None:
    (stack / "0001-Change-1-1.patch").unlink()
    before = snapshot(tree)
    refused = fp4patch("apply", "--with", stack, tree)
    assert refused.status == 1
    assert "no new.py" in refused.err
    assert "no setup_all.py" in refused.err
    assert snapshot(tree) == before


def test_a_patch_that_the_release_has_is_upstreamed_and_the_rest_goes_in(
    fp4patch: Command, tree: Path, stack: Path
) -> None:
    first(tree)
    applied = fp4patch("apply", "--with", stack, "--json", tree)
    states = {p["patch"].rpartition("/")[2]: p["state"] for p in applied.tree["patches"]}
    assert states == {"0001-Change-1-1": "upstreamed", "0002-Change-2-2": "applied"}


def test_a_stack_for_several_kinds_of_trees_says_which(
    fp4patch: Command, tree: Path, stack: Path, tmp_path: Path
) -> None:
    other = small_tree("qutlass", tmp_path / "qutlass")
    before = snapshot(tree)
    refused = fp4patch("apply", "--with", stack, tree, other)
    assert refused.status == 2
    assert "target = NAME" in refused.err
    assert snapshot(tree) == before
    (stack / "stack.toml").write_text('target = "mlx"\n')
    assert fp4patch("apply", "--with", stack, tree, other).status == 0


@pytest.fixture
def clone(tree: Path, stack: Path, tmp_path: Path) -> Path:
    """Return the repository that the stack was made in."""
    del tree, stack
    return tmp_path / "work"


def test_a_patch_is_merged_only_with_merge_and_shown_and_reverted(
    fp4patch: Command, tree: Path, stack: Path, clone: Path
) -> None:
    setup = tree / SETUP
    setup.write_text("import os  # moved on\n\nprint(os)\n")
    before = snapshot(tree)
    command = ("apply", "--with", stack, "--clone", clone)
    refused = fp4patch(*command, tree)
    assert refused.status == 1
    assert "--merge" in refused.err
    assert snapshot(tree) == before
    shown = fp4patch(*command, "--merge", "--dry-run", tree)
    assert shown.status == 0, shown.err
    assert "0002-Change-2-2 is merged onto this release" in shown.out
    assert "+print(os, 2)" in shown.out
    assert snapshot(tree) == before
    assert fp4patch(*command, "--merge", tree).status == 0
    assert (tree / "setup_all.py").read_text().startswith("import os  # moved on\n\nprint(os, 2)\n")
    diffs = json.loads((tree / ".fp4patch/receipt.json").read_text())["diffs"]
    assert [diff["merged"] for diff in diffs] == [False, True]
    status = fp4patch("status", tree)
    assert "merged onto this release: 0002-Change-2-2" in " ".join(status.out.split())
    assert fp4patch("apply", tree).status == 0
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


def test_a_conflict_is_refused_with_both_sides_and_no_mark_is_written(
    fp4patch: Command, tree: Path, stack: Path, clone: Path
) -> None:
    (tree / SETUP).write_text("import os\n\nprint(os, 3)\n")
    before = snapshot(tree)
    refused = fp4patch("apply", "--with", stack, "--merge", "--clone", clone, tree)
    assert refused.status == 1
    said = " ".join(refused.err.split())
    assert "setup_all.py:3" in said
    assert "`print(os, 3)`" in said
    assert "`print(os, 2)`" in said
    assert snapshot(tree) == before
    assert "no repository" in fp4patch("apply", "--with", stack, "--merge", "--clone", stack, tree).err
