"""``status`` after an apply: from the receipt as long as nothing changed, else by another fold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Said
from small_cutlass import EPILOGUE, GUARD, small_cutlass
from small_trees import small_tree

from fp4patch.catalog.manifest import load
from fp4patch.tree.fold import fold_tree

GetTree = Callable[[str, str], Path]


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The trees that status folds."""
    folded: list[Path] = []

    def counted(tree: Any, *patches: Any) -> Any:
        folded.append(tree.root)
        return fold_tree(tree, *patches)

    monkeypatch.setattr("fp4patch.tree.evaluate.fold_tree", counted)
    return folded


def test_a_tree_is_folded_again_only_if_something_changed(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, tmp_path: Path, folds: list[Path]
) -> None:
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")
    fp4patch("apply", "--variant", "next2", tree)

    def said() -> Any:
        folds.clear()
        return fp4patch("status", "--json", tree).tree

    recorded = said()
    assert not folds
    receipt = tree / ".fp4patch/receipt.json"
    as_written = receipt.read_bytes()
    receipt.write_bytes(as_written.replace(b'"basis": "', b'"basis": "0'))
    folded = said()
    assert folds
    assert folded == recorded
    receipt.write_bytes(as_written)
    (tree / "include/cutlass/new.h").write_text("int one;\n")
    assert said()["state"] == "applied"
    assert folds
    (tree / "include/cutlass/new.h").unlink()
    (tree / EPILOGUE).write_bytes((tree / EPILOGUE).read_bytes() + b"\n")
    assert said()["state"] == "applied"
    assert folds
    fp4patch("apply", tree)
    said()
    assert not folds
    (tree / GUARD).write_bytes((tree / GUARD).read_bytes() + b"\n")
    assert said()["state"] == "foreign"


def test_doctor_tries_the_patches_that_its_report_is_about(
    fp4patch: Callable[..., Said], tmp_path: Path, folds: list[Path]
) -> None:
    tree, tried = small_tree("transformer_engine", tmp_path / "tree"), []
    for options in ((), ("--details",), ("--json",)):
        folds.clear()
        fp4patch("doctor", *options, tree)
        tried.append(len(folds))
    every = sum(patch.target == "transformer_engine" for patch in load().patches.values())
    assert tried == [2, every, every]  # two of them repair a known defect


def test_a_file_that_is_larger_than_any_source_is_named_and_not_read(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, tmp_path: Path
) -> None:
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")

    def grow(name: str) -> None:
        with (tree / name).open("ab") as file:
            file.truncate(30 << 30)

    grow("include/cutlass/sparse.h")
    document = fp4patch("apply", "--variant", "next3", "--json", tree).tree
    assert [place["file"] for place in document["remainders"]] == ["include/cutlass/sparse.h"]
    assert "larger than 16 MiB" in document["remainders"][0]["because"]
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"
    grow(GUARD)
    assert (said := fp4patch("status", "--json", tree)).status == 1
    assert said.document["problems"][0]["found"] == "File too large"
    assert fp4patch("revert", "--json", tree).tree["problems"][0]["found"] == "File too large"
    other = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "other")
    tree = other
    grow(EPILOGUE)
    (problem,) = fp4patch("apply", "--variant", "next3", "--json", tree).tree["problems"]
    assert (problem["file"], problem["found"]) == (EPILOGUE, "File too large")
