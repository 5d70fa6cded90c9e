"""Results, messages and refusals of `apply`, `revert` and `status` on real CUTLASS trees."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import cases
from command import Said, sha256, snapshot
from small_cutlass import CONVERTER, GUARD, checkout, git
from small_trees import CONVERSION, small_tree

GetTree = Callable[[str, str], Path]


@pytest.mark.parametrize("version", ["4.2.1", "4.5.0"])
def test_apply_status_and_revert_on_real_trees(fp4patch: Callable[..., Said], tree_copy: GetTree, version: str) -> None:
    tree = tree_copy("cutlass", version)
    before = snapshot(tree)
    pristine = {path: sha256(tree / path) for path in (GUARD, CONVERTER)}

    applied = fp4patch("apply", "--variant", "next2", "--json", tree)
    assert applied.status == 0
    document = applied.tree
    named = (document["target"], document["version"], document["variant"], document["state"])
    assert named == ("cutlass", version, "next2", "applied")
    assert document["problems"] == []
    assert {f["path"]: f["state"] for f in document["files"]} == {GUARD: "applied", CONVERTER: "applied"}
    assert all(sha256(tree / path) != digest for path, digest in pristine.items())

    again = fp4patch("apply", "--variant", "next2", "--json", tree)
    assert (again.status, again.document["state"]) == (0, "unchanged")
    state = fp4patch("status", "--json", tree).tree
    assert (state["variant"], state["state"]) == ("next2", "applied")
    assert {p["patch"]: p["state"] for p in state["patches"]} == {
        "cutlass/e2m1-guard": "applied",
        "cutlass/e2m1-converter": "applied",
    }

    other = fp4patch("apply", "--variant", "turbo", "--json", tree)
    assert (other.status, other.document["state"]) == (0, "applied")
    assert sha256(tree / CONVERTER) == pristine[CONVERTER]

    reverted = fp4patch("revert", "--json", tree)
    assert (reverted.status, reverted.document["state"]) == (0, "reverted")
    assert snapshot(tree) == before


def test_dry_run_and_check_write_nothing_and_check_says_so_by_its_status(
    fp4patch: Callable[..., Said], tree_copy: GetTree
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    before = snapshot(tree)
    dry = fp4patch("apply", "--variant", "next2", "--dry-run", "--diff", tree)
    assert dry.status == 0
    assert f"--- a/{GUARD}" in dry.out
    assert fp4patch("apply", "--variant", "next2", "--check", tree).status == 1
    assert snapshot(tree) == before
    fp4patch("apply", "--variant", "next2", tree)
    assert fp4patch("apply", "--variant", "next2", "--check", tree).status == 0


def test_a_git_checkout_shows_only_the_patched_files_and_is_clean_after_revert(
    fp4patch: Callable[..., Said], tree_copy: GetTree
) -> None:
    tree = tree_copy("cutlass", "4.2.1")

    fp4patch("apply", "--variant", "next2", checkout(tree))
    assert git(tree, "status", "--porcelain") == f" M {GUARD}\n M {CONVERTER}\n"
    fp4patch("revert", tree)
    assert git(tree, "status", "--porcelain") == ""
    assert not (tree / ".fp4patch").exists()


def test_two_trees_are_one_transaction(fp4patch: Callable[..., Said], tree_copy: GetTree) -> None:
    good, bad = tree_copy("cutlass", "4.2.1"), tree_copy("cutlass", "4.4.2")
    (bad / GUARD).write_text((bad / GUARD).read_text().replace("SM121F_ENABLED", "SM121X_ENABLED"))
    before = snapshot(good), snapshot(bad)
    refused = fp4patch("apply", "--variant", "next2", "--json", good, bad)
    assert refused.status == 1
    assert refused.document["state"] == "refused"
    assert [t["state"] for t in refused.document["trees"]] == ["refused", "refused"]
    assert (snapshot(good), snapshot(bad)) == before


def test_every_problem_is_reported_at_once_with_place_and_help(
    fp4patch: Callable[..., Said], tree_copy: GetTree
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    (tree / GUARD).write_text((tree / GUARD).read_text().replace("SM121A_ENABLED", "SM121B_ENABLED"))
    text = (tree / CONVERTER).read_text()
    (tree / CONVERTER).write_text(
        text.replace("struct NumericArrayConverter<float_e2m1_t, float, 2, Round>", "struct Gone<Round>")
    )
    refused = fp4patch("apply", "--variant", "next2", "--json", tree)
    assert refused.status == 1
    problems = refused.tree["problems"]
    assert {p["file"] for p in problems} == {GUARD, CONVERTER}
    assert all(problem[key] for problem in problems for key in ("patch", "line", "expected", "found", "help"))
    shown = fp4patch("apply", "--variant", "next2", tree)
    assert shown.status == 1
    for word in ("drifted", GUARD, "expected", "found", "help"):
        assert word in shown.err


def test_refuses_a_tree_that_someone_edited_since(fp4patch: Callable[..., Said], tree_copy: GetTree) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    fp4patch("apply", "--variant", "next2", tree)
    (tree / GUARD).write_text((tree / GUARD).read_text() + "// mine\n")
    before = snapshot(tree)
    for command in (["apply", "--variant", "turbo"], ["revert"]):
        refused = fp4patch(*command, "--json", tree)
        assert refused.status == 1
        assert refused.document["state"] == "refused"
        assert [p["file"] for p in refused.tree["problems"]] == [GUARD]
    state = fp4patch("status", "--json", tree).tree
    assert {f["path"]: f["state"] for f in state["files"]} == {GUARD: "foreign", CONVERTER: "applied"}
    assert snapshot(tree) == before
    said = fp4patch("revert", tree).err
    assert "+// mine" in said
    assert "-" not in {line[:1] for line in said.splitlines() if not line.startswith("---")}
    (command,) = re.findall(r"`(cp [^`]+)`", " ".join(said.split()))
    subprocess.run(shlex.split(command), check=True)
    assert fp4patch("revert", tree).status == 0


def test_a_tree_in_which_every_patch_retires_is_told_why(fp4patch: Callable[..., Said], tmp_path: Path) -> None:
    tree = small_tree("mlx", tmp_path / "mlx")
    done = "is in the state of native"
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    assert done in fp4patch("apply", "--variant", "native", tree).out, "it was applied"
    assert fp4patch("revert", tree).status == 0
    (tree / CONVERSION).write_text(cases("mlx/family-guard")["conversion-for-the-family.cuh"].before)
    (tree / "mlx/backend/cuda/CMakeLists.txt").write_text("# no list yet\n")
    stated = tree / "mlx/version.h"
    stated.write_text(stated.read_text().replace("MINOR 32", "MINOR 29"))
    said = fp4patch("apply", "--variant", "native", tree)
    assert (said.status, done in said.out) == (0, False)
    assert "nothing to do, no patch of native changes mlx 0.29.1" in said.out
    assert "mlx/family-guard: the conversion is declared under the condition that it is called under" in said.out


def test_a_tree_that_needs_no_variant_is_told_so_and_is_no_error(
    fp4patch: Callable[..., Said], pristine_tree: GetTree
) -> None:
    said = fp4patch("apply", pristine_tree("flashinfer", "0.6.8"))
    assert (said.status, said.err) == (0, "")
    assert "nothing to do, flashinfer 0.6.8 needs no variant" in said.out
    assert "the conversion is in hardware" in said.out


def test_a_variant_that_changes_nothing_is_named_where_another_is_taken_back(
    fp4patch: Callable[..., Said], tree_copy: GetTree
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    fp4patch("apply", "--variant", "next2", tree)
    said = fp4patch("apply", "--variant", "native", tree)
    assert said.out.splitlines()[0].endswith("native changes nothing in cutlass 4.2.1, 2 files pristine again")
    assert not (tree / ".fp4patch").exists()


def test_a_cutlass_of_another_release_than_the_one_that_vllm_pins_is_noted(
    fp4patch: Callable[..., Said], pristine_tree: GetTree
) -> None:
    trees = pristine_tree("vllm", "0.10.2"), pristine_tree("cutlass", "4.5.0")
    (pin,) = re.findall(r'CUTLASS_REVISION "v([^"]+)"', (trees[0] / "CMakeLists.txt").read_text())
    for command in (("apply", "--dry-run", "--variant", "next3"), ("status",)):
        vllm, cutlass = fp4patch(*command, "--json", *trees).document["trees"]
        assert not vllm["notes"]
        assert f"is built with cutlass {pin}, and this is 4.5.0" in cutlass["notes"][0]


def test_crlf_and_a_missing_final_newline_survive(fp4patch: Callable[..., Said], tree_copy: GetTree) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    for path in (GUARD, CONVERTER):
        data = (tree / path).read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n")
        (tree / path).write_bytes(b"\xef\xbb\xbf" + data)
    before = snapshot(tree)
    assert fp4patch("apply", "--variant", "next2", tree).status == 0
    for path in (GUARD, CONVERTER):
        data = (tree / path).read_bytes()
        assert data.startswith(b"\xef\xbb\xbf")
        assert data.count(b"\n") == data.count(b"\r\n")
        assert not data.endswith(b"\n")
    fp4patch("revert", tree)
    assert snapshot(tree) == before


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_refuses_everything(
    fp4patch: Callable[..., Said], tree_copy: GetTree, replaced: bool
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    (tree / GUARD).unlink()
    if replaced:
        (tree / GUARD).mkdir()
    before = snapshot(tree)
    refused = fp4patch("apply", "--variant", "next2", "--json", tree)
    assert (refused.status, refused.document["state"]) == (1, "refused")
    assert refused.tree["problems"]
    assert snapshot(tree) == before


def test_a_variant_of_another_fp4patch_is_said_to_be_one(fp4patch: Callable[..., Said], tree_copy: GetTree) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    fp4patch("apply", "--variant", "next2", tree)
    receipt = tree / ".fp4patch/receipt.json"
    receipt.write_text(receipt.read_text().replace('"next2"', '"next9"'))
    said = fp4patch("apply", tree)
    assert said.status == 2
    assert f"next9 is applied to {tree}, a variant that this fp4patch" in said.err
    assert "fp4patch revert" in said.err
    assert fp4patch("apply", "--variant", "turbo", tree).status == 0


def test_a_tree_and_the_one_inside_it_share_the_variant_that_is_applied(
    fp4patch: Callable[..., Said], pristine_tree: GetTree, tmp_path: Path
) -> None:
    """Where the receipt of the tree inside is gone, that of the tree around it names the variant."""
    tree = tmp_path / "flashinfer"
    shutil.copytree(pristine_tree("flashinfer", "0.6.0"), tree)
    assert fp4patch("apply", "--variant", "native", tree).status == 0
    again = fp4patch("apply", "--json", tree)
    assert again.status == 0, again.err
    assert [(t["variant"], t["state"]) for t in again.document["trees"]] == [("native", "unchanged")] * 2
    fp4patch("apply", "--variant", "next2", tree / "data/cutlass")
    fp4patch("revert", tree / "data/cutlass")
    again = fp4patch("apply", "--json", tree)
    assert sorted((t["variant"], t["state"]) for t in again.document["trees"]) == [
        ("native", "applied"),
        ("native", "unchanged"),
    ]
