"""A receipt that was lost, left behind, rewritten or brought to another tree: it is reported, with a way back that
works."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, sha256, snapshot
from few_probes import few_probes
from small_cutlass import CONVERTER, GUARD, checkout, git, small_cutlass

from fp4patch.catalog.manifest import load
from fp4patch.core.globs import glob as matcher
from fp4patch.tree.stamp import find_stamp, stamped

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]


@pytest.fixture
def tree(pristine_tree: GetTree, tmp_path: Path) -> Path:
    return checkout(small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree"))


def follow(said: Said) -> None:
    """Runs the git commands that a refusal names, as its reader would."""
    commands = set(re.findall(r"`(git -C [^`]+)`", " ".join(said.err.split())))
    assert commands
    for command in commands:
        subprocess.run(shlex.split(command), check=True)


# --- git clean -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["cutlass 4.2.1", "vllm 0.14.1"])
def test_what_git_clean_leaves_is_known_and_put_back(
    fp4patch: Command, pristine_tree: GetTree, vllm: Callable[[str], Path], tmp_path: Path, release: str
) -> None:
    target, version = release.split()
    source = pristine_tree(target, version)
    copy = vllm(version) if target == "vllm" else tmp_path / target
    if target == "cutlass":
        small_cutlass(source, copy)
    checkout(copy)
    for variant in ("native", "next3"):
        applied = fp4patch("apply", "--variant", variant, "--json", copy).tree
        changed = sorted(file["path"] for file in applied["files"] if file["diff"])
        assert bool(changed) is ((target, variant) != ("cutlass", "native"))
        git(copy, "clean", "-fdxq")
        if not changed:
            assert fp4patch("status", "--json", copy).tree["state"] == "pristine"
            continue
        for left in (changed, changed[len(changed) // 2 :]):  # all of them are left, then half of them
            for path in set(changed) - set(left):
                git(copy, "checkout", "--", path)
            status = fp4patch("status", "--json", copy).tree
            states = {file["path"]: file["state"] for file in status["files"]}
            assert [path for path in changed if states[path] == "applied"] == left
            assert f"it has no receipt: {len(left)} file" in " ".join(status["notes"])
        assert fp4patch("apply", copy).status == 0
        assert fp4patch("status", "--json", copy).tree["state"] == "applied"
        git(copy, "clean", "-fdxq")
        assert fp4patch("revert", copy).status == 0
        assert git(copy, "status", "--porcelain", "--ignored") == ""


def test_a_patched_file_that_was_copied_into_a_tree_is_known(
    fp4patch: Command, tree: Path, pristine_tree: GetTree, tmp_path: Path
) -> None:
    other = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "other")
    fp4patch("apply", "--variant", "next3", other)
    fp4patch("apply", "--variant", "turbo", tree)
    shutil.copyfile(other / CONVERTER, tree / CONVERTER)
    said = fp4patch("apply", "--variant", "next2", tree)
    assert said.status == 1
    assert "what fp4patch wrote for next3 (cutlass/e2m1-encode 1), without its receipt" in " ".join(said.err.split())


# --- git stash ------------------------------------------------------------------------------------------------------


def test_git_stash_and_pop(fp4patch: Command, tree: Path) -> None:
    fp4patch("apply", "--variant", "turbo", tree)
    patched = sha256(tree / GUARD)
    git(tree, "stash", "-q")
    assert fp4patch("status", "--json", tree).tree["files"][0]["state"] == "pristine"
    git(tree, "stash", "pop", "-q")
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"
    git(tree, "stash", "-q")
    assert fp4patch("apply", tree).status == 0
    assert sha256(tree / GUARD) == patched
    assert fp4patch("revert", tree).status == 0
    assert git(tree, "status", "--porcelain", "--ignored") == ""
    git(tree, "stash", "pop", "-q")  # the patched file comes back, and its receipt does not
    assert fp4patch("apply", "--variant", "turbo", tree).status == 0
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"


# --- a receipt with other bytes --------------------------------------------------------------------------------------


def test_a_receipt_that_was_reformatted_is_as_good(fp4patch: Command, tree: Path) -> None:
    before = snapshot(tree)
    fp4patch("apply", "--variant", "next2", tree)
    receipt = tree / ".fp4patch/receipt.json"
    receipt.write_bytes(json.dumps(json.loads(receipt.read_bytes()), indent=8).replace("\n", "\r\n").encode())
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"
    assert fp4patch("apply", "--json", tree).document["state"] == "unchanged"
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


# --- the stamp -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", [b"int a;\n", b"int a;", b"int a;\r\n", b"a\r\nb", b"", b"\xef\xbb\xbfx\n", b"#define A \\\n"]
)
@pytest.mark.parametrize(
    ("path", "comment"), [("a.cuh", b"//"), ("m.py", b"#"), ("x.cmake", b"#"), ("CMakeLists.txt", b"#")]
)
def test_a_stamp_is_found_also_in_a_file_that_was_edited_since(body: bytes, path: str, comment: bytes) -> None:
    data = stamped(body, b"pristine", path, "next3", ("vllm/a 1", "vllm/b 2"))
    assert data.startswith(body)
    assert data.endswith(b"\n") is body.endswith(b"\n")
    assert data.count(b"\r\n") in (0, data.count(b"\n"))
    (line,) = data[len(body) :].split(b"\r\n" if b"\r\n" in data else b"\n")[not body.endswith(b"\n") :][:1]
    assert line.startswith(comment + b" fp4patch next3: vllm/a 1, vllm/b 2; pristine ")
    for found in (data, b"x" + data, data + b"\nint b;\n"):
        stamp = find_stamp(found)
        assert stamp
        assert stamp.group("variant", "patches") == (b"next3", b"vllm/a 1, vllm/b 2")
    assert find_stamp(body) is None


# --- which files a receipt may name ----------------------------------------------------------------------------------


def test_a_patch_that_goes_leaves_its_globs_with_the_target(
    fp4patch: Command, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of fp4patch without a patch can revert trees that an older release patched with it."""
    catalog = load()
    for patch in catalog.patches.values():
        for edit in patch.edits:
            globs = edit.search
            for glob in globs:
                kept = catalog.targets[patch.target].touches
                covered = any(matcher((one,)).fullmatch(glob.replace("**/", "x/y/").replace("*", "x")) for one in kept)
                assert covered or glob in kept, f"{patch.id}: {glob}"
    before = snapshot(tree)
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    data = few_probes(tmp_path / "data", {})
    gone = catalog.variant("next3").targets["cutlass"].patches
    for name in gone:  # the sources of its probes stay: other patches have them too
        (data / "patches/cutlass" / name / "patch.toml").unlink()
    variant = data / "variants/next3.toml"
    named = [name for name in gone if "next3" not in catalog.patches[f"cutlass/{name}"].variants]  # others name it
    section = f"[targets.cutlass]\npatches = {json.dumps(named)}\n"
    assert section in variant.read_text()
    variant.write_text(variant.read_text().replace(section, ""))
    target = data / "patches/cutlass/target.toml"
    target.write_text(target.read_text().replace('variant = "next3"', 'variant = "next2"'))
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    said = fp4patch("revert", tree)
    assert said.status == 0, said.err
    assert snapshot(tree) == before
