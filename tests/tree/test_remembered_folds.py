"""A fold is made once: what a second apply and status do without it, and what makes them fold again."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from few_probes import copy_data

from fp4patch.catalog.manifest import data_root, forget
from fp4patch.commands.apply.result import Applied, ApplyState
from fp4patch.commands.apply.run import apply, revert
from fp4patch.core import kept
from fp4patch.core.state import State
from fp4patch.edits import edit
from fp4patch.tree import concerned
from fp4patch.tree.status import status

CONVERTER = "include/cutlass/numeric_conversion.h"


@pytest.fixture
def tree(tree_copy: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    forget()
    yield tree_copy("cutlass", "4.2.1")
    forget()


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files that were folded, as one entry for each."""
    made: list[int] = []

    def counting(*arguments: Any, fold: Callable[..., edit.Fold] = edit.fold) -> edit.Fold:
        made.append(1)
        return fold(*arguments)

    monkeypatch.setattr(edit, "fold", counting)
    return made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read for a look at their bytes."""
    read: list[str] = []

    def noting(path: str, size: int, real: Callable[[str, int], bytes] = concerned._read) -> bytes:
        read.append(path)
        return real(path, size)

    monkeypatch.setattr(concerned, "_read", noting)
    return read


def applied(tree: Path, variant: str = "next3") -> Applied:
    return apply([tree], variant, write=True, said_version=None, on_wait=lambda _: None)


def state(tree: Path) -> State:
    return status([tree], on_wait=lambda _: None)[0].state


def test_what_was_folded_once_is_compared_by_its_hashes(tree: Path, folds: list[int]) -> None:
    first = applied(tree)
    assert first.state is ApplyState.APPLIED
    assert folds
    folds.clear()
    again = applied(tree)
    assert again.state is ApplyState.UNCHANGED
    assert again.trees[0].retired == first.trees[0].retired
    assert again.trees[0].notes == first.trees[0].notes
    assert {file.path: file.patches for file in again.trees[0].files} == {
        file.path: file.patches for file in first.trees[0].files
    }
    assert state(tree) is State.APPLIED
    assert folds == []


def test_status_of_a_pristine_tree_folds_once(tree: Path, folds: list[int]) -> None:
    first = status([tree], on_wait=lambda _: None)
    assert folds
    folds.clear()
    assert status([tree], on_wait=lambda _: None) == first
    assert folds == []


def test_a_second_checkout_of_a_release_shares_the_folds_and_a_different_one_does_not(
    tree: Path, folds: list[int], tmp_path: Path
) -> None:
    (first,) = status([tree], on_wait=lambda _: None)
    shutil.copytree(tree, tmp_path / "same")
    shutil.copytree(tree, tmp_path / "other")
    folds.clear()
    (same,) = status([tmp_path / "same"], on_wait=lambda _: None)
    assert same.patches == first.patches
    assert folds == []
    other = tmp_path / "other" / "include/cutlass/float_subbyte.h"
    other.write_text(other.read_text().replace("CUDA_PTX_FP4FP6_CVT_ENABLED", "ANOTHER_NAME"))
    (changed,) = status([tmp_path / "other"], on_wait=lambda _: None)
    assert folds
    assert changed.patches != first.patches


def test_a_remembered_fold_says_the_same_as_a_new_one(tree: Path, folds: list[int], tmp_path: Path) -> None:
    applied(tree)
    remembered = status([tree], on_wait=lambda _: None)
    shutil.rmtree(tmp_path / "cache")
    folds.clear()
    assert status([tree], on_wait=lambda _: None) == remembered
    assert folds


def test_another_variant_and_a_revert_are_no_second_apply(tree: Path, folds: list[int]) -> None:
    before = (tree / CONVERTER).read_bytes()
    applied(tree)
    written = (tree / CONVERTER).read_bytes()
    assert applied(tree, "turbo").state is ApplyState.APPLIED
    assert applied(tree).state is ApplyState.APPLIED
    assert (tree / CONVERTER).read_bytes() == written
    revert([tree], on_wait=lambda _: None)
    assert (tree / CONVERTER).read_bytes() == before
    assert applied(tree).state is ApplyState.APPLIED


def test_an_edited_file_is_seen(tree: Path) -> None:
    applied(tree)
    (tree / CONVERTER).write_bytes((tree / CONVERTER).read_bytes() + b"\n")
    assert state(tree) is State.FOREIGN
    assert applied(tree).refused


def test_another_pristine_file_is_folded_again(tree: Path, folds: list[int]) -> None:
    state(tree)
    folds.clear()
    (tree / CONVERTER).write_bytes((tree / CONVERTER).read_bytes() + b"\n// another\n")
    assert state(tree) is State.PRISTINE
    assert folds


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("variants/next3.toml", "# edited"),
        ("patches/cutlass/e2m1-encode/patch.toml", "# edited"),
        ("encoders/half_pair.cuh", "// edited"),
    ],
)
def test_changed_patches_fold_again(
    tree: Path, folds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, line: str
) -> None:
    copy_data(tmp_path / "data")
    monkeypatch.setenv("FP4PATCH_DATA", str(tmp_path / "data"))
    forget()
    applied(tree)
    folds.clear()
    with (tmp_path / "data" / file).open("a") as end:
        end.write(f"{line}\n")
    forget()  # a new process begins without what the last one read
    state(tree)
    assert folds


def test_another_fp4patch_folds_again(tree: Path, folds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    applied(tree)
    folds.clear()
    digest = kept.digest(data_root())
    monkeypatch.setattr("fp4patch.tree.folding.digest", lambda _root: digest[::-1])
    assert state(tree) is State.APPLIED
    assert folds


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"class": "Patch", "fields": {}}', '{"class": "os"}', "[[[1]]]"])
def test_a_damaged_entry_is_a_miss(tree: Path, folds: list[int], tmp_path: Path, damage: str) -> None:
    applied(tree)
    for entry in (tmp_path / "cache").rglob("*.json"):
        entry.write_text(damage)
    forget()
    folds.clear()
    assert state(tree) is State.APPLIED
    assert folds


def test_a_cache_that_cannot_be_written_is_none(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FP4PATCH_CACHE", "/dev/null/none")
    forget()
    assert applied(tree).state is ApplyState.APPLIED
    assert state(tree) is State.APPLIED


def test_no_more_entries_are_kept_than_are_of_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path))
    monkeypatch.setattr(kept, "_KEPT", 3)
    for number in range(5):
        kept.keep("x", str(number), (number, None, {"a": State.APPLIED}))
    assert len(list((tmp_path / "x").iterdir())) == 3
    assert kept.recall("x", "4", {"State": State}) == (4, None, {"a": State.APPLIED})
    assert kept.recall("x", "4", {}) is None
    json.loads(next((tmp_path / "x").iterdir()).read_text())


# --- files that no patch is about ------------------------------------------------------------------------------------

CONFIG = "include/cutlass/arch/config.h"
NOTE = b"// This is a comment of the release, of sixty-four bytes at least."
DEFINE = b"#define CUDA_PTX_FP4FP6_CVT_ENABLED 1"


def settled(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tree had been there for a minute: a file that changed just now is always read."""
    monkeypatch.setattr(concerned, "_now", lambda: time.time_ns() + 60 * 10**9)
    assert tree.is_dir()


def test_an_unchanged_file_is_read_once(tree: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settled(tree, monkeypatch)
    first = applied(tree)
    assert len(reads) > 200
    changed = {str(tree / file.path) for file in first.trees[0].files if file.changed}
    reads.clear()
    assert applied(tree).state is ApplyState.UNCHANGED
    assert set(reads) == changed
    reads.clear()
    assert state(tree) is State.APPLIED
    assert reads == []


def test_a_change_is_seen_when_size_and_time_are_put_back(
    tree: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(tree, monkeypatch)
    config = tree / CONFIG
    config.write_bytes(config.read_bytes() + NOTE + b"\n")
    assert applied(tree, "turbo").state is ApplyState.APPLIED
    assert applied(tree, "turbo").state is ApplyState.UNCHANGED
    reads.clear()
    before = config.stat()
    config.write_bytes(config.read_bytes().replace(NOTE, DEFINE.ljust(len(NOTE))))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (config.stat().st_size, config.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    refused = applied(tree, "turbo")
    assert refused.refused
    assert any(problem.file == CONFIG for problem in refused.trees[0].problems)
    assert reads == [str(config)]


def test_a_file_that_comes_and_goes_is_seen(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(tree, monkeypatch)
    assert applied(tree, "turbo").state is ApplyState.APPLIED
    (tree / "include/cutlass/more.h").write_bytes(DEFINE + b"\n")
    assert applied(tree, "turbo").refused
    (tree / "include/cutlass/more.h").unlink()
    assert applied(tree, "turbo").state is ApplyState.UNCHANGED


def test_a_file_that_changed_just_now_is_read_again(
    tree: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes within a tick of the clock have one time."""
    (tree / CONFIG).write_bytes((tree / CONFIG).read_bytes() + NOTE)
    changed = (tree / CONFIG).stat().st_ctime_ns
    monkeypatch.setattr(concerned, "_now", lambda: changed + 10**6)
    state(tree)
    reads.clear()
    state(tree)
    assert str(tree / CONFIG) in reads


def test_a_time_of_whole_seconds_is_trusted_after_two(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    found, second = (tmp_path / "a").stat(), 10**9
    for ctime, trusted in ((7 * second + 1, 0.05), (7 * second, 2)):
        times = SimpleNamespace(st_ctime_ns=ctime, st_mtime_ns=ctime, st_ino=found.st_ino, st_size=found.st_size)
        later = ctime + int(trusted * second)
        assert not concerned._is_settled(times, later)  # type: ignore[arg-type]
        assert concerned._is_settled(times, later + 1)  # type: ignore[arg-type]
