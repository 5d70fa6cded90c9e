"""Trees that an older fp4patch patched: this one reads their receipts, goes on from them, and reverts them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from small_cutlass import small_cutlass

from fp4patch.core.schema import SCHEMA

Run = Callable[..., Said]
OLDER = sorted((Path(__file__).parent / "older").glob("*.tar.xz"))


@pytest.fixture(params=OLDER, ids=lambda path: path.name.partition(".")[0])
def older(request: pytest.FixtureRequest, pristine_tree: Callable[[str, str], Path], tmp_path: Path) -> Path:
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "cutlass")
    with tarfile.open(request.param) as archive:
        archive.extractall(tree, filter="data")
    return tree


def variant_of(tree: Path) -> str:
    return str(json.loads((tree / ".fp4patch/receipt.json").read_text())["variant"])


def files_of(tree: Path) -> dict[str, tuple[int, str]]:
    return {name: found for name, found in snapshot(tree).items() if not name.startswith(".fp4patch")}


def test_there_are_older_trees() -> None:
    assert len(OLDER) == 4


def test_status_knows_the_variant_and_what_is_to_be_applied_again(older: Path, fp4patch: Run) -> None:
    before = snapshot(older)
    said = fp4patch("status", "--json", older)
    assert said.status == 0
    assert said.document["variant"] == variant_of(older)
    states = {file["state"] for file in said.document["files"]}
    assert states <= {"applied", "outdated", "pristine"}
    assert snapshot(older) == before


def test_apply_makes_of_it_what_it_makes_of_a_pristine_tree(
    older: Path, fp4patch: Run, pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    fresh = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "fresh")
    for tree in (older, fresh):
        assert fp4patch("apply", "--variant", "next3", tree).status == 0
    assert files_of(older) == files_of(fresh)
    old, new = (json.loads((tree / ".fp4patch/receipt.json").read_text()) for tree in (older, fresh))
    assert old | {"applied_at": ""} == new | {"applied_at": ""}
    assert old["schema"] == SCHEMA
    assert fp4patch("apply", "--variant", "next3", "--check", older).status == 0


def test_revert_restores_the_pristine_bytes(
    older: Path, fp4patch: Run, pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    assert fp4patch("revert", older).status == 0
    assert files_of(older) == files_of(small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "fresh"))
    assert not (older / ".fp4patch").exists()


def test_a_file_edited_since_is_refused_as_ever(older: Path, fp4patch: Run) -> None:
    written = next(iter(json.loads((older / ".fp4patch/receipt.json").read_text())["files"]))
    (older / written).write_text((older / written).read_text() + "// mine\n")
    before = snapshot(older)
    assert fp4patch("apply", "--variant", "next3", older).status == 1
    assert fp4patch("revert", older).status == 1
    assert snapshot(older) == before
