"""Changes of several trees at once: what is written, what is refused, no room, and two commands at the same time."""

import json
import logging
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from command import snapshot

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused
from fp4patch.tree.fold import FoldedFile, FoldedTree
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.locking import locked
from fp4patch.tree.receipt import Receipt
from fp4patch.tree.write import Staged, stage, write

A, B = "include/cutlass/float_subbyte.h", "include/cutlass/numeric_conversion.h"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # what runs here runs there
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Two trees of two files."""
    trees = [tmp_path / "one", tmp_path / "two"]
    for root in trees:
        (root / A).parent.mkdir(parents=True)
        (root / A).write_bytes(b"pristine a\n")
        (root / B).write_bytes(b"pristine b\n")
        (root / B).chmod(0o755)
    return trees


def trees_at(roots: Sequence[Path]) -> AbstractContextManager[Sequence[LockedTree]]:
    return locked([Identified(root, load().target("cutlass"), None) for root in roots])


def stage_all(trees: Sequence[LockedTree], word: str, paths: Sequence[str] = (A, B)) -> list[Staged]:
    """Stage each file with a word appended to its pristine bytes."""
    patches = ("cutlass/p 1",)
    staged = []
    for tree in trees:
        files = {path: FoldedFile(tree.pristine(path)) for path in tree.on_record}
        files |= {path: FoldedFile((tree.pristine(path) or b"") + word.encode(), patches) for path in paths}
        folds = FoldedTree((), files, (), (), ())
        staged.append(stage(tree, folds, Receipt("0.1.0", "cutlass", "4.2.1", word, patches, {})))
    return staged


def apply(roots: Sequence[Path], word: str = "turbo", paths: Sequence[str] = (A, B)) -> None:
    with trees_at(roots) as trees:
        write(stage_all(trees, word, paths))


def revert(roots: Sequence[Path]) -> None:
    with trees_at(roots) as trees:
        write(stage_all(trees, "", ()))


def everything(*roots: Path) -> list[object]:
    return [snapshot(root) for root in roots]


def refuses_and_leaves_all(roots: Sequence[Path], match: str) -> Refused:
    before = everything(*roots)
    with pytest.raises(Refused, match=match) as refused:
        apply(roots)
    assert everything(*roots) == before
    assert refused.value.help
    return refused.value


# --- what it does ---


def test_apply_then_revert_gives_every_byte_and_mode_back_and_no_trace(roots: list[Path], tmp_path: Path) -> None:
    before = everything(*roots)
    shared = tmp_path / "package-cache.h"
    os.link(roots[0] / A, shared)
    apply(roots)
    assert shared.read_bytes() == b"pristine a\n"
    written = {path: path.stat().st_mtime_ns for root in roots for path in root.rglob("*")}
    apply(roots)
    assert {path: path.stat().st_mtime_ns for root in roots for path in root.rglob("*")} == written
    assert (roots[1] / B).read_bytes() == b"pristine b\nturbo"
    assert stat.S_IMODE((roots[1] / B).stat().st_mode) == 0o755
    with trees_at(roots) as trees:
        tree = trees[0]
        assert tree.receipt
        assert tree.receipt.variant == "turbo"
        assert (tree.pristine(A), tree.current(A)) == (b"pristine a\n", b"pristine a\nturbo")
    text = (roots[0] / ".fp4patch/receipt.json").read_text()
    assert json.loads(text)["schema"] == 1
    assert str(roots[0]) not in text
    revert(roots)
    assert everything(*roots) == before


def test_a_build_system_sees_that_a_file_changed(roots: list[Path]) -> None:
    for act in (apply, revert):
        os.utime(roots[0] / B, ns=(10**18, 10**18))
        act(roots)
        assert (roots[0] / B).stat().st_mtime_ns > 10**18


def test_a_file_deleted_since_is_made_again_by_revert(roots: list[Path]) -> None:
    before = everything(*roots)
    apply(roots)
    (roots[0] / A).unlink()
    revert(roots)
    assert everything(*roots) == before


# --- what it refuses ---


def test_refuses_all_when_one_file_is_read_only_or_has_a_special_mode_and_names_every_one(roots: list[Path]) -> None:
    (roots[0] / A).chmod(0o444)
    (roots[0] / B).chmod(0o4755)
    (roots[1] / B).chmod(0o700)
    (roots[1] / A).chmod(0o440)
    refused = refuses_and_leaves_all(roots, "mode 0444")
    assert [problem.file for problem in refused.problems] == [A, B, A]


@pytest.mark.parametrize(
    "name", ["include/cutlass/.float_subbyte.h.fp4patch-new", ".fp4patch/.gitignore", ".fp4patch/next.json"]
)
def test_never_writes_through_a_symlink_planted_where_it_writes(roots: list[Path], tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (roots[0] / name).parent.mkdir(exist_ok=True)
    (roots[0] / name).symlink_to(victim)
    try:
        apply(roots)
    except Refused:
        assert (roots[0] / A).read_bytes() == b"pristine a\n"
    else:
        assert (roots[0] / A).read_bytes() == b"pristine a\nturbo"
    assert victim.read_text() == "untouched"


def test_a_file_edited_between_reading_and_writing_refuses_all(roots: list[Path]) -> None:
    before = everything(roots[0])
    with trees_at(roots) as trees:
        staged = stage_all(trees, "turbo")
        (roots[1] / A).write_text("an edit, just now")
        with pytest.raises(Refused, match="read a moment ago") as refused:
            write(staged)
    assert [problem.file for problem in refused.value.problems] == [A]
    assert everything(roots[0]) == before
    assert (roots[1] / A).read_text() == "an edit, just now"
    assert not (roots[1] / ".fp4patch").exists()


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "damaged"])
def test_refuses_when_a_pristine_copy_is_lost(roots: list[Path], gone: bool) -> None:
    apply(roots)
    (blob, *_) = (roots[0] / ".fp4patch/blobs").iterdir()
    blob.unlink() if gone else blob.write_text("damaged")
    with pytest.raises(Refused, match="gone" if gone else "damaged"):
        revert(roots)


def test_an_edit_made_after_an_interruption_is_never_overwritten(
    roots: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def step(what: str) -> None:
        if "two/include/cutlass/.numeric_conversion.h.fp4patch-new to" in what:
            raise Died

    before = everything(*roots)
    with monkeypatch.context() as patch:
        patch.setattr("fp4patch.tree.files.step", step)
        with pytest.raises(Died):
            apply(roots)
    (roots[1] / B).write_text("mine")
    refused = refuses_and_leaves_all(roots, "edited since")
    assert [problem.file for problem in refused.problems] == [B]
    (roots[1] / B).write_bytes(b"pristine b\n")
    moved = roots[1].rename(roots[1].with_name("moved"))  # a tree knows nothing of the others, nor where it is
    apply([moved])
    assert (moved / B).read_bytes() == b"pristine b\nturbo"
    revert([roots[0]])
    revert([moved])
    moved.rename(roots[1])
    assert everything(*roots) == before


# --- no room ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("this machine lets nobody mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@needs_root
def test_a_full_disk_leaves_all_as_it_was_and_more_room_is_all_it_needs(roots: list[Path], small_disk: Path) -> None:
    tree = small_disk / "tree"
    shutil.copytree(roots[0], tree)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 40_000)
    before = everything(roots[1], tree)
    with pytest.raises(Refused, match="No space left on device; nothing was changed"):
        apply([roots[1], tree], "x" * 9000)
    assert everything(roots[1], tree) == before
    filler.unlink()
    apply([roots[1], tree], "x" * 3000)
    revert([roots[1], tree])
    assert everything(roots[1], tree) == before


@needs_root
def test_a_tree_that_is_mounted_read_only_is_not_to_be_given_other_modes(roots: list[Path], small_disk: Path) -> None:
    shutil.copytree(roots[0], small_disk / "tree")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    refused = refuses_and_leaves_all([small_disk / "tree"], "mounted read-only")
    assert "--output DIR" in refused.help
    assert "chmod" not in refused.help


# --- two at once ---


def main_hammer(name: str, *places: str) -> None:
    roots = [Path(place) for place in places]
    waited: list[logging.LogRecord] = []
    logging.getLogger("fp4patch.tree.locking").addFilter(lambda record: bool(waited.append(record)))  # type: ignore[func-returns-value]
    for number in range(300):
        if number > 15 and waited:  # they have met; on a busy machine one may start when the other is far
            break
        with trees_at(roots) as trees:
            assert not any(tree.interrupted for tree in trees)
            assert trees[0].current(A) == trees[1].current(A)
            write(stage_all(trees, f"{name} {number}"))
            for root in roots:
                assert (root / A).read_bytes() == f"pristine a\n{name} {number}".encode()
    print(len(waited))  # noqa: T201 - to the test below


def test_two_processes_on_the_same_trees_do_not_interleave(roots: list[Path]) -> None:
    before = everything(*roots)
    command = [sys.executable, "-B", __file__, "main_hammer"]
    orders = {"first": roots, "second": roots[::-1]}
    runs = [
        subprocess.Popen([*command, name, *map(str, order)], stdout=-1, stderr=-1, text=True, env=ENVIRONMENT)
        for name, order in orders.items()
    ]
    results = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], results
    assert sum(int(out) for out, _ in results) > 0, "they never met, so this showed nothing"
    revert(roots)
    assert everything(*roots) == before


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
