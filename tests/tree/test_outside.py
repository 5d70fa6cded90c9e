"""Patches of directories outside of the catalog: one receipt, reverted to the byte, and the directory is not needed
again."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import Said, snapshot, verify
from outside import LINK, diff_of, outside
from small_trees import CONVERSION, small_tree

from fp4patch.tree import files

Command = Callable[..., Said]
HEADER, LISTS = "mlx/backend/cuda/vector_types.cuh", "mlx/backend/cuda/CMakeLists.txt"
SETUP = "setup.py"
"""A file that no patch of MLX is about."""


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """Interrupt what is written to trees at the step of this number, from 1 on."""
    seen = 0

    def step(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(files, "step", step)
        yield


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = small_tree("mlx", tmp_path / "mlx")
    (root / SETUP).write_text("import os\n\nprint(os)\n")
    return root


@pytest.fixture
def patch(tree: Path, tmp_path: Path) -> Path:
    changes = {
        HEADER: (tree / HEADER).read_text().replace("T x, y, z, w;", "T x;\n  T y, z, w;"),
        SETUP: (tree / SETUP).read_text().replace("print(os)\n", "print()\n"),
    }
    return outside(tmp_path / "pr-1", "mlx", diff_of(tree, changes))


def test_a_diff_is_in_the_receipt_and_its_directory_is_not_needed_again(
    fp4patch: Command, tree: Path, patch: Path
) -> None:
    before = snapshot(tree)
    applied = fp4patch("apply", "--variant", "native", "--with", patch, "--json", tree).tree
    assert {f["path"]: f["patches"] for f in applied["files"]} == {
        HEADER: ["mlx/pr-1 1"],
        SETUP: ["mlx/pr-1 1"],
        CONVERSION: ["mlx/family-guard 1"],
        LISTS: ["mlx/fp4-suffix 1"],
    }
    assert "print()\n# fp4patch native: mlx/pr-1 1; pristine " in (tree / SETUP).read_text()
    receipt = json.loads((tree / ".fp4patch/receipt.json").read_text())
    assert [(diff["patch"], diff["link"]) for diff in receipt["diffs"]] == [("mlx/pr-1", LINK)]
    after = snapshot(tree)
    shutil.rmtree(patch)

    status = fp4patch("status", "--json", tree).tree
    names = ("mlx/pr-1", "mlx/family-guard", "mlx/fp4-suffix")
    assert {p["patch"]: p["state"] for p in status["patches"]} == dict.fromkeys(names, "applied")
    assert LINK in status["notes"][0]
    assert fp4patch("apply", tree).status == 0
    assert snapshot(tree) == after
    (tree / SETUP).write_text("edited\n")
    assert fp4patch("revert", tree).status == 1
    (tree / SETUP).write_text("import os\n\nprint(os)\n")
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


def test_a_named_variant_is_what_is_named_and_no_diff_of_before(fp4patch: Command, tree: Path, patch: Path) -> None:
    fp4patch("apply", "--variant", "native", tree)
    native = snapshot(tree)
    assert fp4patch("apply", "--with", patch, tree).status == 0
    assert snapshot(tree) != native
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    assert snapshot(tree) == native


def test_a_diff_that_upstream_has_retires_and_half_of_one_is_refused(
    fp4patch: Command, tree: Path, patch: Path
) -> None:
    (tree / SETUP).write_text("import os\n\nprint()\n")
    before = snapshot(tree)
    refused = fp4patch("apply", "--variant", "native", "--with", patch, tree)
    assert refused.status == 1
    assert "all changes of the diff, or none" in refused.err
    assert snapshot(tree) == before
    (tree / HEADER).write_text((tree / HEADER).read_text().replace("T x, y, z, w;", "T x;\n  T y, z, w;"))
    done = fp4patch("apply", "--variant", "native", "--with", patch, "--json", tree).tree
    assert {file["path"] for file in done["files"] if file["state"] == "applied"} == {LISTS, CONVERSION}
    states = {patch["patch"]: (patch["state"], patch["because"]) for patch in done["patches"]}
    assert states["mlx/pr-1"] == ("upstreamed", "the source has this change")


def test_edits_of_the_variant_find_what_a_diff_has_added(fp4patch: Command, tree: Path, tmp_path: Path) -> None:
    text = (tree / CONVERSION).read_text().replace("#include", "#include <cstdint>\n#include", 1)
    patch = outside(tmp_path / "pr-2", "mlx", diff_of(tree, {CONVERSION: text}))
    done = fp4patch("apply", "--variant", "native", "--with", patch, "--json", tree).tree
    (file,) = (file for file in done["files"] if file["path"] == CONVERSION)
    assert file["patches"] == ["mlx/pr-2 1", "mlx/family-guard 1"]


def test_an_interrupted_change_of_diffs_is_completed_or_reverted(
    fp4patch: Command, tree: Path, patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (tree / LISTS).read_text() + "set(A B)\n"
    other = outside(tmp_path / "pr-2", "mlx", diff_of(tree, {LISTS: text}))
    pristine = snapshot(tree)
    number, states = 0, set()
    while True:
        number += 1
        fp4patch("apply", "--variant", "native", "--with", patch, tree)
        with interrupted(monkeypatch, number):
            status = fp4patch("apply", "--variant", "native", "--with", other, tree).status
        if status == 0:
            break
        begun = "a command was interrupted here" in " ".join(fp4patch("status", tree).out.split())
        assert fp4patch("apply", tree).status == 0
        done = "set(A B)" in (tree / LISTS).read_text()
        assert done is ("print(os)" in (tree / SETUP).read_text())
        assert done or not begun
        states.add((begun, done))
        assert fp4patch("revert", tree).status == 0
        assert snapshot(tree) == pristine
    assert states == {(False, False), (True, True), (False, True)}


def of_git(tree: Path, change: Callable[[Path], object]) -> str:
    """Return what git writes of a change of a tree, which is then taken back."""
    work = tree.parent / "work"
    shutil.copytree(tree, work)
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "before"], check=True)
    change(work)
    subprocess.run([*git, "add", "-A"], check=True)
    diff = subprocess.run([*git, "diff", "--cached", "-M"], check=True, capture_output=True).stdout.decode()
    shutil.rmtree(work)
    return diff


def come_and_go(tree: Path) -> None:
    """Make, delete, move and change files of MLX, and make one executable."""
    new = tree / "mlx/new/deep/made.h"
    new.parent.mkdir(parents=True)
    new.write_text("int made;\n")
    (tree / "mlx/new/data.json").write_text("{}\n")
    (tree / HEADER).rename(tree / "mlx/backend/cuda/moved.cuh")
    (tree / SETUP).unlink()
    (tree / "tool.sh").chmod(0o755)
    (tree / ".github").mkdir()
    (tree / ".github/made.yml").write_text("a: b\n")


@pytest.fixture
def moving(tree: Path, tmp_path: Path) -> Path:
    (tree / "tool.sh").write_text("ls\n")
    (tree / "tool.sh").chmod(0o664)
    (tree / SETUP).chmod(0o640)
    return outside(tmp_path / "pr-3", "mlx", of_git(tree, come_and_go))


def test_files_that_a_diff_makes_deletes_and_moves_go_in_and_out_to_the_byte(
    fp4patch: Command, tree: Path, moving: Path
) -> None:
    os.umask(0o022)
    before, header = snapshot(tree), (tree / HEADER).read_text()
    applied = fp4patch("apply", "--variant", "native", "--with", moving, "--diff", tree)
    assert applied.status == 0, applied.err
    assert "new file mode 100644" in applied.out
    assert not (tree / SETUP).exists()
    assert not (tree / HEADER).exists()
    assert (tree / "mlx/backend/cuda/moved.cuh").read_text().startswith(header)
    assert "int made;\n// fp4patch native: mlx/pr-3 1; pristine none" in (tree / "mlx/new/deep/made.h").read_text()
    assert (tree / "mlx/new/data.json").read_text() == "{}\n"
    assert (tree / "tool.sh").stat().st_mode & 0o777 == 0o775
    after = snapshot(tree)
    assert fp4patch("apply", "--check", tree).status == 0
    states = {f["path"]: f["state"] for f in fp4patch("status", "--json", tree).tree["files"]}
    assert set(states.values()) == {"applied"}
    assert {SETUP, HEADER, "tool.sh", "mlx/new/deep/made.h", ".github/made.yml"} <= states.keys()
    # without the diff, and with it again
    back = fp4patch("apply", "--variant", "native", tree)
    assert back.status == 0, back.err
    assert (tree / SETUP).exists()
    assert not (tree / "mlx/new").exists()
    assert fp4patch("apply", "--variant", "native", "--with", moving, tree).status == 0
    assert snapshot(tree) == after
    (tree / "tool.sh").chmod(0o664)
    states = {f["path"]: f["state"] for f in fp4patch("status", "--json", tree).tree["files"]}
    assert states["tool.sh"] == "outdated"
    assert fp4patch("apply", tree).status == 0
    assert (tree / "tool.sh").stat().st_mode & 0o777 == 0o775
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


def test_what_others_did_to_a_file_that_came_or_went_is_kept(fp4patch: Command, tree: Path, moving: Path) -> None:
    assert fp4patch("apply", "--variant", "native", "--with", moving, tree).status == 0
    made = tree / "mlx/new/deep/made.h"
    mine = made.read_text().replace("made;", "mine;")
    made.write_text(mine)
    (tree / SETUP).write_text("mine\n")
    before = snapshot(tree)
    for command in (("revert",), ("apply",), ("apply", "--variant", "native")):
        refused = fp4patch(*command, tree)
        assert refused.status == 1
        assert "a patch created it: `rm" in " ".join(refused.err.split())
        assert snapshot(tree) == before
    made.unlink()
    (tree / SETUP).unlink()
    (tree / "mlx/new/deep/others.txt").write_text("others\n")
    assert fp4patch("revert", tree).status == 0
    assert (tree / "mlx/new/deep/others.txt").read_text() == "others\n"
    assert not (tree / ".fp4patch").exists()


def test_a_file_in_the_way_refuses_the_whole(fp4patch: Command, tree: Path, moving: Path) -> None:
    for path in ("mlx/new", "mlx/new/deep/made.h", "mlx/backend/cuda/moved.cuh"):
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("mine\n")
        before = snapshot(tree)
        refused = fp4patch("apply", "--variant", "native", "--with", moving, tree)
        assert refused.status == 1, refused.err
        assert path in refused.err
        assert snapshot(tree) == before
        place.unlink()


def test_a_killed_change_that_makes_and_deletes_files_is_completed_or_reverted(
    fp4patch: Command, tree: Path, moving: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.umask(0o022)
    pristine = snapshot(tree)
    assert fp4patch("apply", "--variant", "native", "--with", moving, tree).status == 0
    patched = snapshot(tree)
    assert fp4patch("revert", tree).status == 0
    ways = {"apply": ("apply", "--variant", "native", "--with", moving, tree), "revert": ("revert", tree)}
    for way, command in ways.items():
        number, finished = 0, False
        while not finished:
            number += 1
            if way == "revert":
                fp4patch("apply", "--variant", "native", "--with", moving, tree)
            with interrupted(monkeypatch, number):
                finished = fp4patch(*command).status == 0
            if number % 2:
                assert fp4patch("apply", "--variant", "native", "--with", moving, tree).status == 0
                assert snapshot(tree) == patched
            assert fp4patch("revert", tree).status == 0
            assert snapshot(tree) == pristine, (way, number)
        assert number > 20


# --- hostile ones ----------------------------------------------------------------------------------------------------


def refusal(said: Said) -> str:
    assert said.status in (1, 2)
    assert "\x1b" not in said.err
    return " ".join(said.err.split())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('link = "ftp://x"', "TOML"),
        ('variants = ["native"]', "a diff, and what it is"),
        ('[[edits]]\nop = "replace"\nsearch = ["a.h"]\nfind = "a"\nreplace = "b"', "one edit, whose operation is diff"),
    ],
)
def test_a_directory_has_one_diff_and_nothing_else(
    fp4patch: Command, tree: Path, tmp_path: Path, more: str, reason: str
) -> None:
    patch = outside(tmp_path / "pr-1", "mlx", diff_of(tree, {SETUP: "import os\n"}), more)
    before = snapshot(tree)
    assert reason in refusal(fp4patch("apply", "--variant", "native", "--with", patch, tree))
    assert snapshot(tree) == before


def test_a_diff_that_was_changed_and_one_of_another_target_are_refused(
    fp4patch: Command, tree: Path, patch: Path, tmp_path: Path
) -> None:
    other = outside(tmp_path / "pr-9", "vllm", (patch / "pr.diff").read_text())
    assert "vllm/pr-9 is for none of these trees" in refusal(
        fp4patch("apply", "--variant", "native", "--with", other, tree)
    )
    (patch / "pr.diff").write_text((patch / "pr.diff").read_text().replace("print()", "evil()"))
    assert "edits[0].sha256" in refusal(fp4patch("apply", "--variant", "native", "--with", patch, tree))


@pytest.mark.parametrize("way", ["file", "folder", "inside"])
def test_a_diff_writes_through_no_link(fp4patch: Command, tree: Path, tmp_path: Path, way: str) -> None:
    victim = tmp_path / "outside/victim.py"
    victim.parent.mkdir()
    victim.write_text("one\n")
    (tree / "real").mkdir()
    (tree / "real/victim.py").write_text("one\n")
    if way == "file":
        (tree / "linked").mkdir()
        (tree / "linked/victim.py").symlink_to(victim)
    else:
        (tree / "linked").symlink_to(victim.parent if way == "folder" else "real")
    patch = outside(tmp_path / "pr-1", "mlx", diff_of(tree, {"linked/victim.py": "two\n"}))
    before = snapshot(tmp_path)
    assert "link" in refusal(fp4patch("apply", "--variant", "native", "--with", patch, tree))
    assert snapshot(tmp_path) == before


def test_a_receipt_names_only_files_of_a_diff_that_is_kept_whole(fp4patch: Command, tree: Path, patch: Path) -> None:
    fp4patch("apply", "--variant", "native", "--with", patch, tree)
    place = tree / ".fp4patch/receipt.json"
    receipt = json.loads(place.read_text())
    (diff,) = receipt["diffs"]
    blob = tree / ".fp4patch/blobs" / diff["sha256"]
    forged = {
        "another file": receipt | {"files": receipt["files"] | {"conftest.py": receipt["files"][SETUP]}},
        "no diff": receipt | {"diffs": []},
        "a lost diff": receipt | {"diffs": [diff | {"sha256": "0" * 64}]},
        "no diff at all": receipt | {"diffs": [diff | {"sha256": receipt["files"][SETUP]["pristine_sha256"]}]},
        "a name": receipt | {"diffs": [diff | {"patch": "mlx/../\x1b[31m"}]},
        "a patch of ours": receipt | {"diffs": [diff | {"patch": "mlx/family-guard"}]},
        "a link": receipt | {"diffs": [diff | {"link": "https://x\x1b[31m"}]},
    }
    for document in forged.values():
        place.write_text(json.dumps(document))
        before = snapshot(tree)
        for command in ("status", "apply"):
            assert "help:" in refusal(fp4patch(command, tree))
        assert snapshot(tree) == before
    assert blob.is_file()


# --- verify ----------------------------------------------------------------------------------------------------------


def test_verify_states_what_a_diff_changes_and_judges_the_variant(
    tree: Path, tmp_path: Path, toolchain: object, fp4patch: Command
) -> None:
    del toolchain  # only where there is one
    changes = {
        HEADER: (tree / HEADER)
        .read_text()
        .replace("T x, y, z, w;", "#ifdef X\n  T x;\n#else\n  T x;\n#endif\n  T y, z, w;"),
        LISTS: (tree / LISTS).read_text() + "set(A ${B})\n",
        CONVERSION: (tree / CONVERSION).read_text().replace("#include", "#include <cstdint>\n#include", 1),
    }
    patch = outside(tmp_path / "pr-1", "mlx", diff_of(tree, changes))
    assert fp4patch("apply", "--variant", "native", "--with", patch, tree).status == 0
    shutil.rmtree(patch)
    status, document = verify(tree, "native")
    assert (status, document["verdict"]) == (0, "pass")
    assert document["diffs"] == {"mlx/pr-1": 3}
    assert document["patches"] == ["mlx/pr-1 1", "mlx/family-guard 1", "mlx/fp4-suffix 1"]
    assert document["coverage"]["unjudged"] == []
    said = fp4patch("verify", "--no-execute", tree)
    covered = document["diff_lines"]["mlx/pr-1"]
    unjudged = sum(span["last"] - span["first"] + 1 for span in covered["unjudged"])
    assert 0 < unjudged < covered["lines"]
    lines = f"{covered['lines'] - unjudged} of {covered['lines']} changed lines judged"
    assert f"mlx/pr-1: 3 changed files, {lines}" in " ".join(said.out.split())
