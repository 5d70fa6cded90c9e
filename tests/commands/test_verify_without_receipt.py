"""``fp4patch verify`` of trees that lost their receipt, or that have a stack below the variant, with the compiler."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, verify
from small_cutlass import CONVERTER, GUARD, checkout, git

Command = Callable[..., Said]


@pytest.fixture
def tree(whole_tree: Callable[[str, str], Path], probes: Callable[..., Path]) -> Path:
    """CUTLASS 4.2.1 as a checkout, and one probe."""
    probes("cutlass", "float-to-e2m1-x8")
    return checkout(whole_tree("cutlass", "4.2.1"))


def committed(tree: Path, fp4patch: Command) -> Path:
    fp4patch("apply", "--variant", "next2", tree)
    git(tree, "commit", "-qam", "patched")
    git(tree.parent, "clone", "-q", str(tree), "cloned")
    return tree.parent / "cloned"


def mailed(tree: Path, fp4patch: Command) -> Path:
    series = tree.parent / "series"
    assert fp4patch("export", "--variant", "next2", "-o", series, tree).status == 0
    git(tree, "am", "-q", *sorted(str(path) for path in series.glob("*.patch")))
    return tree


@pytest.mark.parametrize("made", [committed, mailed])
def test_a_tree_without_a_receipt_is_verified_and_one_with_a_file_of_upstream_is_not(
    tree: Path, fp4patch: Command, made: Callable[[Path, Command], Path]
) -> None:
    patched = made(tree, fp4patch)
    assert not (patched / ".fp4patch").exists()
    status, document = verify(patched, "next2", "--arch", "sm_121a")
    assert (status, document["verdict"], document["problems"]) == (0, "pass", [])
    (result,) = document["results"]
    assert (result["before"]["fp4"], result["after"]["fp4"]) == (4, 0)
    assert not (patched / ".fp4patch").exists()
    first = git(patched, "rev-list", "--max-parents=0", "HEAD").strip()
    (patched / GUARD).write_text(git(patched, "show", f"{first}:{GUARD}"))
    said = fp4patch("verify", "--no-execute", "--variant", "next2", "--arch", "sm_121a", patched)
    assert said.status == 1
    assert GUARD in said.err


def test_of_a_stack_below_a_variant_the_lines_that_a_probe_judged_are_counted(
    tree: Path, fp4patch: Command, tmp_path: Path
) -> None:
    stack = tmp_path / "carried"
    stack.mkdir()
    for number, name in enumerate((CONVERTER, GUARD), 1):
        (tree / name).write_text((tree / name).read_text().replace("#pragma once\n", f"#pragma once\n// {number}\n", 1))
        (stack / f"{number:04}-comment.patch").write_text(git(tree, "diff"))
        git(tree, "checkout", "-q", ".")
    assert fp4patch("apply", "--with", stack, "--variant", "next2", tree).status == 0
    shutil.rmtree(stack)
    status, document = verify(tree, "next2", "--arch", "sm_121a")
    assert (status, document["verdict"], document["problems"]) == (0, "pass", [])
    assert set(document["diff_lines"]) == {"cutlass/0001-comment", "cutlass/0002-comment"}
