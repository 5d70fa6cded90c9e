"""A patched tree under git and pip: a file that these replaced is upstream's, and no edit of somebody."""

import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, sha256
from small_cutlass import CONVERTER, EPILOGUE, FILES, GUARD, checkout, git, small_cutlass

from fp4patch.sources.checkout import Checkout
from fp4patch.tree import files
from fp4patch.tree.stamp import find_stamp

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]
ABOVE = b"// upstream: a line above\n"
VERSION = "include/cutlass/version.h"


@pytest.fixture
def upstream(pristine_tree: GetTree, tmp_path: Path) -> Path:
    """CUTLASS 4.2.1 as a repository: its main is that, and 4.4.2 is a tag."""
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "upstream")
    git(checkout(tree), "branch", "-M", "main")
    git(tree, "checkout", "-qb", "next")
    small_cutlass(pristine_tree("cutlass", "4.4.2"), tree)
    commit(tree, "4.4.2")
    git(tree, "tag", "v4.4.2")
    git(tree, "checkout", "-q", "main")
    return tree


@pytest.fixture
def clone(upstream: Path, tmp_path: Path) -> Path:
    """A clone of it, which follows main."""
    git(tmp_path, "clone", "-q", str(upstream), "clone")
    for name, value in (("user.name", "t"), ("user.email", "t@example.org"), ("commit.gpgsign", "false")):
        git(tmp_path / "clone", "config", name, value)
    return tmp_path / "clone"


def commit(tree: Path, message: str) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", message, "--no-gpg-sign")


def lines_above(tree: Path, *paths: str) -> None:
    """Upstream puts a line in front of each file."""
    for path in paths:
        (tree / path).write_bytes(ABOVE + (tree / path).read_bytes())


def of(tree: Path, *paths: str) -> dict[str, bytes]:
    return {path: (tree / path).read_bytes() for path in paths or FILES}


def states(fp4patch: Command, tree: Path) -> dict[str, str]:
    return {file["path"]: file["state"] for file in fp4patch("status", "--json", tree).tree["files"]}


def is_as_applied_to_a_fresh_tree(fp4patch: Command, tree: Path, fresh: Path, variant: str) -> None:
    """Apply brings the tree to what a variant makes of a fresh one, and revert to that one; nothing of ours is left."""
    applied = fp4patch("apply", tree)
    assert applied.status == 0, applied.err
    other = shutil.copytree(fresh, tree.parent / "fresh", ignore=shutil.ignore_patterns(".git", ".fp4patch"))
    assert fp4patch("apply", "--variant", variant, other).status == 0
    assert of(tree) == of(other)
    assert fp4patch("status", "--json", tree).tree["state"] == "applied"
    kept = {path.name for path in (tree / ".fp4patch/blobs").iterdir()}
    assert kept == {path.name for path in (other / ".fp4patch/blobs").iterdir()}
    assert fp4patch("apply", "--json", tree).document["state"] == "unchanged"
    assert fp4patch("revert", tree).status == 0
    assert of(tree) == of(fresh)
    assert not (tree / ".fp4patch").exists()
    shutil.rmtree(other)


def is_reverted_to(fp4patch: Command, tree: Path, fresh: Path) -> None:
    """Revert alone keeps upstream's bytes too."""
    copy = Path(shutil.copytree(tree, tree.parent / "copy", symlinks=True))
    reverted = fp4patch("revert", copy)
    assert reverted.status == 0, reverted.err
    assert of(copy) == of(fresh)
    assert not (copy / ".fp4patch").exists()
    shutil.rmtree(copy)


# --- seven ways to another release -----------------------------------------------------------------------------------


def test_git_pull(fp4patch: Command, clone: Path, upstream: Path) -> None:
    """The files that upstream changes are others than those that the variant does."""
    fp4patch("apply", "--variant", "next2", clone)
    (upstream / VERSION).write_text((upstream / VERSION).read_text().replace("CUTLASS_PATCH 1", "CUTLASS_PATCH 2"))
    lines_above(upstream, "include/cutlass/cutlass.h")
    commit(upstream, "4.2.2")
    git(clone, "pull", "-q")
    assert "it was patched as cutlass 4.2.1, and states 4.2.2 now" in fp4patch("status", clone).out
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next2")


@pytest.mark.parametrize("variant", ["next2", "next3"])
def test_git_pull_with_autostash(fp4patch: Command, clone: Path, upstream: Path, variant: str) -> None:
    fp4patch("apply", "--variant", variant, clone)
    lines_above(upstream, GUARD, CONVERTER)
    commit(upstream, "lines")
    git(clone, "pull", "-q", "--autostash")
    merged = (clone / CONVERTER).read_bytes()
    assert merged.startswith(ABOVE)
    assert find_stamp(merged)
    assert {states(fp4patch, clone)[path] for path in (GUARD, CONVERTER)} == {"outdated"}
    assert "the pristine bytes of 2 files are those of git's commit" in " ".join(fp4patch("status", clone).out.split())
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, variant)


def test_another_variant_after_a_pull_with_autostash(fp4patch: Command, clone: Path, upstream: Path) -> None:
    fp4patch("apply", "--variant", "next3", clone)
    lines_above(upstream, CONVERTER)
    commit(upstream, "lines")
    git(clone, "pull", "-q", "--autostash")
    assert fp4patch("apply", "--variant", "turbo", clone).status == 0
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "turbo")


def test_git_stash(fp4patch: Command, clone: Path, upstream: Path) -> None:
    """The patched files are put aside, and another release comes."""
    fp4patch("apply", "--variant", "next3", clone)
    git(clone, "stash", "-q")
    git(clone, "checkout", "-q", "v4.4.2")
    git(upstream, "checkout", "-q", "v4.4.2")
    assert set(states(fp4patch, clone).values()) == {"pristine"}
    said = fp4patch("apply", "--dry-run", clone)
    assert (said.status, said.err) == (0, "")
    note = "it was patched as cutlass 4.2.1, and states 4.4.2 now; the pristine bytes of 3 files are those of git's"
    assert note in " ".join(said.out.split())
    assert len(said.out.splitlines()) < 40
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next3")


def test_git_stash_pop_over_another_commit(fp4patch: Command, clone: Path, upstream: Path) -> None:
    fp4patch("apply", "--variant", "turbo", clone)
    lines_above(upstream, GUARD, CONVERTER)
    commit(upstream, "lines")
    for words in (("stash", "-q"), ("pull", "-q"), ("stash", "pop", "-q")):
        git(clone, *words)
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "turbo")


@pytest.mark.parametrize("way", ["rebase", "merge"])
def test_git_rebase_and_merge_of_a_branch_with_the_patched_files(
    fp4patch: Command, clone: Path, upstream: Path, way: str
) -> None:
    git(clone, "checkout", "-qb", "mine")
    fp4patch("apply", "--variant", "next2", clone)
    commit(clone, "patched")
    lines_above(upstream, GUARD, CONVERTER)
    commit(upstream, "lines")
    git(clone, "fetch", "-q")
    git(clone, way, "-q", *(("-m", "merge") if way == "merge" else ()), "origin/main")
    assert git(clone, "status", "--porcelain") == ""
    assert {states(fp4patch, clone)[path] for path in (GUARD, CONVERTER)} == {"outdated"}
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next2")


def test_git_rebase_with_autostash(fp4patch: Command, clone: Path, upstream: Path) -> None:
    git(clone, "checkout", "-qb", "mine")
    (clone / "include/cutlass/mine.h").write_text("int mine;\n")
    commit(clone, "mine")
    fp4patch("apply", "--variant", "next2", clone)
    lines_above(upstream, CONVERTER)
    commit(upstream, "lines")
    git(clone, "fetch", "-q")
    git(clone, "rebase", "-q", "--autostash", "origin/main")
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next2")


@pytest.mark.parametrize("how", ["-f", "-m"])
def test_git_checkout_of_another_tag(fp4patch: Command, clone: Path, upstream: Path, how: str) -> None:
    """``-f`` replaces the patched files, ``-m`` merges them."""
    lines_above(upstream, CONVERTER)
    commit(upstream, "lines")
    git(upstream, "tag", "lines")
    git(clone, "fetch", "-q", "--tags")
    fp4patch("apply", "--variant", "next3", clone)
    git(clone, "checkout", "-q", how, "v4.4.2" if how == "-f" else "lines")
    git(upstream, "checkout", "-q", "v4.4.2" if how == "-f" else "lines")
    is_reverted_to(fp4patch, clone, upstream)
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next3")


def wheel(source: Path, version: str, folder: Path, *, without: str = "") -> Path:
    """Pack a tree as a wheel has it: the files with their hashes."""
    place = folder / f"small_cutlass-{version}-py3-none-any.whl"
    info, rows = f"small_cutlass-{version}.dist-info", list[str]()
    with zipfile.ZipFile(place, "w") as packed:
        files = {f"cutlass_library/source/{path}": (source / path).read_bytes() for path in FILES if path != without}
        files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: small-cutlass\nVersion: {version}\n".encode()
        files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        for name, data in files.items():
            packed.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        packed.writestr(f"{info}/RECORD", "".join([*rows, f"{info}/RECORD,,\n"]))
    return place


@pytest.fixture
def pip(tmp_path: Path) -> Callable[..., Path]:
    """pip in an environment of its own: it returns where the package is."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)

    def run(*words: str | Path) -> Path:
        command = [sys.executable, "-m", "pip", "--python", tmp_path / "venv/bin/python", *words]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PIP_NO_INDEX": "1"})
        (site,) = (tmp_path / "venv/lib").glob("python3*/site-packages")
        return site / "cutlass_library/source"

    return run


def replaced(tree: Path, to: Path) -> None:
    """The seven files of one tree take the place of another's, and what is kept there stays."""
    for path in FILES:
        shutil.copyfile(tree / path, to / path)


@pytest.mark.parametrize("way", ["upgrade", "uninstall and install"])
def test_pip(fp4patch: Command, upstream: Path, pip: Callable[..., Path], tmp_path: Path, way: str) -> None:
    old = wheel(upstream, "4.2.1", tmp_path)
    git(upstream, "checkout", "-q", "v4.4.2")
    lines_above(upstream, EPILOGUE)  # so that no survey knows it
    new = wheel(upstream, "4.4.2", tmp_path)
    tree = pip("install", old)
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    if way == "upgrade":
        pip("install", "--upgrade", new)
    else:
        pip("uninstall", "--yes", "small-cutlass")
        pip("install", new)
    assert (tree / ".fp4patch/receipt.json").is_file()
    assert set(states(fp4patch, tree).values()) == {"pristine"}
    note = "and states 4.4.2 now; the pristine bytes of 3 files are those of small_cutlass==4.4.2"
    assert note in " ".join(fp4patch("apply", "--dry-run", tree).out.split())
    is_as_applied_to_a_fresh_tree(fp4patch, tree, upstream, "next3")


def test_pip_install_of_the_same_release(
    fp4patch: Command, upstream: Path, pip: Callable[..., Path], tmp_path: Path
) -> None:
    packed = wheel(upstream, "4.2.1", tmp_path)
    tree = pip("install", packed)
    fp4patch("apply", "--variant", "next2", tree)
    pip("uninstall", "--yes", "small-cutlass")
    pip("install", packed)
    assert set(states(fp4patch, tree).values()) == {"pristine"}
    is_as_applied_to_a_fresh_tree(fp4patch, tree, upstream, "next2")


def test_an_archive_over_a_patched_tree(
    fp4patch: Command, upstream: Path, pristine_tree: GetTree, tmp_path: Path
) -> None:
    """Neither git nor pip is there; the record knows the files."""
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")
    fp4patch("apply", "--variant", "next2", tree)
    git(upstream, "checkout", "-q", "v4.4.2")
    replaced(upstream, tree)
    said = " ".join(fp4patch("status", tree).out.split())
    assert "the pristine bytes of 2 files are those of cutlass 4.4.2" in said
    is_as_applied_to_a_fresh_tree(fp4patch, tree, upstream, "next2")


# --- who edits a file is still told so -------------------------------------------------------------------------------


def follow(said: Said) -> None:
    """Run the commands that a refusal names, as its reader would. None of them takes what the receipt keeps."""
    assert said.status == 1
    text = " ".join(said.err.split())
    commands = set(re.findall(r"`(git -C [^`]+)`", text))
    assert commands
    assert "`cp " not in text
    for command in sorted(commands, reverse=True):  # diff, then checkout
        subprocess.run(shlex.split(command), check=True, capture_output=True)


def test_a_merge_with_conflict_markers_is_foreign(fp4patch: Command, clone: Path, upstream: Path) -> None:
    fp4patch("apply", "--variant", "next2", clone)
    merged = (upstream / GUARD).read_text().replace("SM121A_ENABLED", "SM121X_ENABLED")
    (upstream / GUARD).write_text(ABOVE.decode() + merged)
    commit(upstream, "the same lines")
    git(clone, "pull", "-q", "--autostash")
    conflict = (clone / GUARD).read_bytes()
    assert b"<<<<<<< " in conflict
    assert states(fp4patch, clone)[GUARD] == "foreign"
    stamp = find_stamp(conflict)
    assert stamp
    (clone / GUARD).write_bytes(conflict[: stamp.start()])
    git(clone, "add", GUARD)  # staged, and without our line, it is a merge with markers all the same
    assert states(fp4patch, clone)[GUARD] == "foreign"
    refused = fp4patch("revert", clone)
    follow(refused)
    assert len(refused.err.splitlines()) < 20
    assert (clone / GUARD).read_bytes() == (upstream / GUARD).read_bytes()
    is_reverted_to(fp4patch, clone, upstream)


@pytest.mark.parametrize("when", ["before", "after a pull", "staged", "committed and merged"])
def test_an_edit_in_a_checkout_is_foreign_and_the_way_back_is_gits(
    fp4patch: Command, clone: Path, upstream: Path, when: str
) -> None:
    fp4patch("apply", "--variant", "next2", clone)
    if when == "staged":
        git(clone, "add", "-A")
    if when == "committed and merged":
        commit(clone, "patched")
    if when != "before":
        lines_above(upstream, GUARD, CONVERTER)
        commit(upstream, "lines")
        git(clone, "fetch", "-q")
        words = ("merge", "-q", "-m", "m", "origin/main")
        git(clone, *(words if when.startswith("committed") else ("pull", "-q", "--autostash")))
    with (clone / CONVERTER).open("a") as file:
        file.write("// mine\n")
    if when == "staged":
        git(clone, "add", CONVERTER)
    before = of(clone)
    assert states(fp4patch, clone)[CONVERTER] == "foreign"
    refused = fp4patch("apply", clone)
    assert of(clone) == before
    if when == "before":
        assert "+// mine" in refused.err
    follow(refused)
    assert (clone / CONVERTER).read_bytes() == (upstream / CONVERTER).read_bytes()
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next2")


def test_an_edit_of_an_installed_file_is_foreign_and_pip_brings_the_file_back(
    fp4patch: Command, upstream: Path, pip: Callable[..., Path], tmp_path: Path
) -> None:
    tree = pip("install", wheel(upstream, "4.2.1", tmp_path))
    fp4patch("apply", "--variant", "next2", tree)
    with (tree / GUARD).open("a") as file:
        file.write("// mine\n")
    refused = " ".join(fp4patch("apply", tree).err.split())
    assert "`python -m pip install --force-reinstall --no-deps small_cutlass==4.2.1`" in refused
    assert "`cp " not in refused
    assert "+// mine" in refused
    pip("install", "--force-reinstall", "--no-deps", "--find-links", tmp_path, "small_cutlass==4.2.1")
    is_as_applied_to_a_fresh_tree(fp4patch, tree, upstream, "next2")


def test_a_file_that_nobody_knows_is_not_overwritten_with_another_release(
    fp4patch: Command, upstream: Path, pristine_tree: GetTree, tmp_path: Path
) -> None:
    """Neither git, nor pip, nor the record knows these bytes. The diff to another release would be of no use."""
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")
    fp4patch("apply", "--variant", "next2", tree)
    git(upstream, "checkout", "-q", "v4.4.2")
    lines_above(upstream, GUARD, CONVERTER)
    replaced(upstream, tree)
    refused = fp4patch("revert", tree)
    text = " ".join((refused.out + refused.err).split())
    assert refused.status == 1
    assert "it was patched as cutlass 4.2.1, and states 4.4.2 now" in text
    assert "`cp " not in text
    assert "delete its .fp4patch directory" in text
    assert "`fp4patch fetch cutlass==4.4.2 DIR`" in text
    assert len((refused.out + refused.err).splitlines()) < 25
    (tree / VERSION).write_bytes((pristine_tree("cutlass", "4.2.1") / VERSION).read_bytes())
    assert "`cp " not in fp4patch("revert", tree).err  # the line of what fp4patch wrote is missing: it is another file


# --- files that upstream does not have any more ----------------------------------------------------------------------


@pytest.mark.parametrize("by", ["git", "pip", "nobody"])
def test_a_file_that_upstream_deleted_is_not_made_again(
    fp4patch: Command, clone: Path, upstream: Path, pip: Callable[..., Path], tmp_path: Path, by: str
) -> None:
    tree = pip("install", wheel(upstream, "4.2.1", tmp_path)) if by == "pip" else clone
    if by == "nobody":
        shutil.rmtree(clone / ".git")
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    assert EPILOGUE in states(fp4patch, tree)
    git(upstream, "checkout", "-qb", "less")
    version = (upstream / VERSION).read_text().replace("CUTLASS_PATCH 1", "CUTLASS_PATCH 2")
    (upstream / VERSION).write_text(version)
    (upstream / EPILOGUE).unlink()
    commit(upstream, "less")
    match by:
        case "git":
            git(clone, "fetch", "-q")
            git(clone, "checkout", "-qf", "origin/less")
        case "pip":
            pip("install", "--upgrade", wheel(upstream, "4.2.2", tmp_path, without=EPILOGUE))
        case "nobody":
            (tree / VERSION).write_text(version)
            (tree / EPILOGUE).unlink()
    assert EPILOGUE not in states(fp4patch, tree)
    assert "1 patched file is gone" in " ".join(fp4patch("status", tree).out.split())
    copy = Path(shutil.copytree(tree, tmp_path / "copy/tree"))
    assert "GemvEpilogueWithScalingFactor" in fp4patch("apply", copy).err  # which the variant misses
    assert fp4patch("apply", "--variant", "native", copy).status == 0  # and this one does not
    assert fp4patch("revert", tree).status == 0
    for place in (copy, tree):
        assert not (place / EPILOGUE).exists()
        assert not (place / ".fp4patch").exists()
    assert (tree / GUARD).read_bytes() == (upstream / GUARD).read_bytes()


def test_a_file_that_the_user_deleted_comes_back_as_the_commit_has_it(
    fp4patch: Command, clone: Path, upstream: Path
) -> None:
    fp4patch("apply", "--variant", "next2", clone)
    git(clone, "stash", "-q")
    lines_above(upstream, GUARD)
    commit(upstream, "lines")
    git(clone, "pull", "-q")
    (clone / GUARD).unlink()
    is_reverted_to(fp4patch, clone, upstream)


# --- kinds of checkouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["autostash", "stash"])
def test_a_checkout_with_other_line_ends(fp4patch: Command, clone: Path, upstream: Path, how: str) -> None:
    git(clone, "config", "core.autocrlf", "true")
    shutil.rmtree(clone / "include")
    git(clone, "checkout", "-q", "--", ".")
    assert b"\r\n" in (clone / GUARD).read_bytes()
    fp4patch("apply", "--variant", "next2", clone)
    lines_above(upstream, GUARD, CONVERTER)
    commit(upstream, "lines")
    if how == "stash":
        git(clone, "stash", "-q")
    git(clone, "pull", "-q", "--autostash")
    assert set(states(fp4patch, clone).values()) == {"outdated" if how == "autostash" else "pristine"}
    assert fp4patch("apply", clone).status == 0
    assert fp4patch("status", "--json", clone).tree["state"] == "applied"
    assert fp4patch("revert", clone).status == 0
    assert of(clone) == {path: data.replace(b"\n", b"\r\n") for path, data in of(upstream).items()}
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize("kind", ["subdirectory", "submodule", "worktree"])
def test_where_the_repository_is(fp4patch: Command, clone: Path, upstream: Path, tmp_path: Path, kind: str) -> None:
    outer = tmp_path / "outer"
    match kind:
        case "subdirectory":
            shutil.copytree(clone, outer / "third_party/cutlass", ignore=shutil.ignore_patterns(".git"))
            tree = checkout(outer) / "third_party/cutlass"
        case "submodule":
            (outer / "third_party").mkdir(parents=True)
            git(outer, "init", "-q")
            git(outer, "submodule", "--quiet", "add", str(upstream), "third_party/cutlass")
            tree = outer / "third_party/cutlass"
        case "worktree":
            git(clone, "worktree", "add", "-q", "--detach", str(outer))
            tree = outer
    fp4patch("apply", "--variant", "next2", tree)
    lines_above(upstream, GUARD, CONVERTER)
    commit(upstream, "lines")
    if kind == "subdirectory":
        git(outer, "stash", "-q")
        replaced(upstream, tree)
        commit(outer, "a newer CUTLASS")
        git(outer, "stash", "pop", "-q")
    else:
        git(tree, "stash", "-q")
        git(tree, "fetch", "-q")
        git(tree, "checkout", "-q", "origin/main")
        git(tree, "stash", "pop", "-q")
    assert set(states(fp4patch, tree).values()) == {"outdated"}
    is_as_applied_to_a_fresh_tree(fp4patch, tree, upstream, "next2")


def test_a_tree_that_the_repository_around_it_does_not_have(
    fp4patch: Command, clone: Path, pristine_tree: GetTree
) -> None:
    """As CMake unpacks one below a build: git knows nothing of it, and a file that is gone is not upstream's doing."""
    (clone / ".gitignore").write_text("/.deps\n")
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), clone / ".deps/cutlass-src")
    fp4patch("apply", "--variant", "next2", tree)
    with (tree / CONVERTER).open("a") as file:
        file.write("// mine\n")
    (tree / GUARD).unlink()
    (command,) = re.findall(r"`(cp [^`]+)`", " ".join(fp4patch("revert", tree).err.split()))
    subprocess.run(shlex.split(command), check=True)
    assert fp4patch("revert", tree).status == 0
    assert of(tree) == of(small_cutlass(pristine_tree("cutlass", "4.2.1"), clone / "other"))


def test_a_receipt_that_was_committed(fp4patch: Command, clone: Path, upstream: Path) -> None:
    """It comes and goes with its branch, and on another one's files it is without effect."""
    fp4patch("apply", "--variant", "next2", clone)
    git(clone, "checkout", "-qb", "patched")
    git(clone, "add", "-f", ".fp4patch")
    commit(clone, "patched, with the receipt")
    assert fp4patch("status", "--json", clone).tree["state"] == "applied"
    git(clone, "checkout", "-q", "v4.4.2")
    assert not (clone / ".fp4patch").exists()
    git(clone, "checkout", "-q", "patched", "--", ".fp4patch")
    git(upstream, "checkout", "-q", "v4.4.2")
    assert set(states(fp4patch, clone).values()) == {"pristine"}
    is_as_applied_to_a_fresh_tree(fp4patch, clone, upstream, "next2")


def test_a_hook_of_git_may_apply(
    fp4patch: Command, clone: Path, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names its repository to a hook by variables, which are not of a tree elsewhere."""
    fp4patch("apply", "--variant", "next2", clone)
    lines_above(upstream, GUARD)
    commit(upstream, "lines")
    git(clone, "pull", "-q", "--autostash")
    (tmp_path / "another").mkdir()
    git(tmp_path / "another", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another/.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    assert states(fp4patch, clone)[GUARD] == "outdated"
    assert fp4patch("apply", clone).status == 0


# --- what it costs, and whom it trusts -------------------------------------------------------------------------------


def test_nobody_is_asked_as_long_as_the_receipt_knows_each_file(
    fp4patch: Command, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fp4patch.tree.origin.Origins.of", None)
    for command in (["--variant", "turbo"], ["--variant", "next3"], []):
        assert fp4patch("apply", *command, clone).status == 0
        assert fp4patch("status", clone).status == 0
    git(clone, "stash", "-q")
    assert fp4patch("apply", clone).status == 0
    assert fp4patch("revert", clone).status == 0


@pytest.mark.parametrize("variant", ["next3", "native"])
@pytest.mark.parametrize("at", ["create", "next.json to", "fp4patch-new to", "receipt.json", "remove"])
def test_a_command_that_is_killed_on_the_way_to_the_new_release(
    fp4patch: Command, clone: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch, at: str, variant: str
) -> None:
    """One file is new, and one merged; of those that the second variant does not need, a third one is gone."""
    fp4patch("apply", "--variant", "next3", clone)
    lines_above(upstream, GUARD, CONVERTER)
    if variant == "native":
        (upstream / EPILOGUE).unlink()
    commit(upstream, "lines")
    merged = ABOVE + (clone / CONVERTER).read_bytes()
    git(clone, "stash", "-q")
    git(clone, "pull", "-q")
    (clone / CONVERTER).write_bytes(merged)
    copy = Path(shutil.copytree(clone, clone.parent / "copy/tree"))

    def step(what: str) -> None:
        if killed or at in what.removeprefix("create") or at == what.partition(" ")[0]:
            killed.append(what)
            raise GeneratorExit  # which nothing catches

    for tree, command in ((clone, ("apply", "--variant", variant)), (copy, ("revert",))):
        killed: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(files, "step", step)
            with pytest.raises(GeneratorExit):
                fp4patch("apply", "--variant", variant, tree)
        assert fp4patch(*command, tree).status == 0
        if (tree, variant) == (clone, "next3"):
            assert fp4patch("status", "--json", tree).tree["state"] == "applied"
            assert fp4patch("revert", tree).status == 0
        names = [path for path in FILES if (upstream / path).exists()]
        assert of(tree, *names) == of(upstream, *names)
        assert (tree / EPILOGUE).exists() == (upstream / EPILOGUE).exists()
        assert not (tree / ".fp4patch").exists()


@pytest.mark.parametrize("what", ["HEAD", "index", "config", "refs/heads/main", "objects", ".git"])
@pytest.mark.parametrize("kind", ["pipe", "nothing", "noise"])
def test_a_broken_repository_knows_nothing_and_nobody_waits_for_it(
    fp4patch: Command, clone: Path, monkeypatch: pytest.MonkeyPatch, what: str, kind: str
) -> None:
    monkeypatch.setattr("fp4patch.sources.checkout._LIMIT", 0.5)
    fp4patch("apply", "--variant", "next2", clone)
    (clone / CONVERTER).write_bytes(ABOVE)
    place = clone / ".git" / ("" if what == ".git" else what)
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    if kind == "noise":
        place.write_bytes(bytes(range(256)))
    said = fp4patch("revert", clone)
    assert said.status == 1
    assert CONVERTER in said.err


def test_a_repository_runs_no_program_and_fetches_nothing(
    fp4patch: Command, clone: Path, upstream: Path, tmp_path: Path
) -> None:
    """One in which every blob is missing, and whose configuration names programs for each occasion."""
    hacked = f"touch {tmp_path}/hacked; false"
    fp4patch("apply", "--variant", "next2", clone)
    (clone / CONVERTER).write_bytes(ABOVE)
    git(upstream, "config", "uploadpack.allowFilter", "true")
    shutil.rmtree(clone / ".git")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{upstream}", "partial")
    shutil.move(tmp_path / "partial/.git", clone / ".git")
    for name in ("core.fsmonitor", "core.sshCommand", "remote.origin.uploadpack", "core.pager", "diff.external"):
        git(clone, "config", name, hacked)
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (clone / ".git/hooks").mkdir(exist_ok=True)
        (clone / ".git/hooks" / hook).write_text(f"#!/bin/sh\n{hacked}\n")
        (clone / ".git/hooks" / hook).chmod(0o755)
    before = sorted((clone / ".git").rglob("*"))
    assert Checkout.around(clone / GUARD)
    assert fp4patch("revert", clone).status == 1
    assert fp4patch("status", clone).status == 0
    assert not (tmp_path / "hacked").exists()
    assert sorted((clone / ".git").rglob("*")) == before
    subprocess.run(["git", "cat-file", "blob", f"HEAD:{CONVERTER}"], cwd=clone, capture_output=True, check=False)
    assert (tmp_path / "hacked").exists(), "git by itself runs the program, so that this test can fail"


def test_the_copies_of_a_forged_receipt_come_into_no_file_that_is_asked_about(fp4patch: Command, clone: Path) -> None:
    """It says of the bytes of a commit that they are edited ones, and keeps others for them."""
    fp4patch("apply", "--variant", "next2", clone)
    receipt, evil = clone / ".fp4patch/receipt.json", b"int evil;\n"
    digest = hashlib.sha256(evil).hexdigest()
    (clone / ".fp4patch/blobs" / digest).write_bytes(evil)
    text = receipt.read_text()
    for path in (GUARD, CONVERTER):
        (blob,) = set(re.findall(rf'"{re.escape(path)}": {{[^}}]*"pristine_sha256": "(\w+)"', text))
        text = text.replace(blob, digest)
    receipt.write_text(text.replace(sha256(clone / GUARD), "0" * 64).replace(sha256(clone / CONVERTER), "1" * 64))
    git(clone, "checkout", "-q", "--", CONVERTER)
    (clone / GUARD).unlink()
    assert fp4patch("revert", clone).status == 0
    assert git(clone, "status", "--porcelain") == ""
