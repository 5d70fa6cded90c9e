"""`fp4patch new-patch`: the directory of a patch, from a pull request's diff and the releases that it fits."""

import hashlib
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command import Said
from outside import diff_of
from small_trees import small_tree

from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Archive, Target
from fp4patch.commands.new_patch import NewPatch, make
from fp4patch.core.errors import Refused, UsageError

HEADER = "mlx/backend/cuda/vector_types.cuh"
LINK = "https://github.com/ml-explore/mlx/pull/7"
BEFORE, AFTER = "T x, y, z, w;", "T x;\n  T y, z, w;"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    return small_tree("mlx", tmp_path / "mlx")


def releases(tree: Path, *lines: str) -> Target:
    """Return MLX with an archive of a release for each of these lines, which are in the cache."""
    original, archives = (tree / HEADER).read_text(), []
    for number, line in enumerate(lines):
        (tree / HEADER).write_text(original.replace(BEFORE, line))
        packed = tree.parent / f"mlx-0.{number}.0.tar.gz"
        with tarfile.open(packed, "w:gz") as archive:
            archive.add(tree, "mlx")
        digest = hashlib.sha256(packed.read_bytes()).hexdigest()
        place = tree.parent / "cache/archives" / digest[:16]
        place.mkdir(parents=True)
        packed.rename(place / packed.name)
        archives.append(
            Archive(version=f"0.{number}.0", project="mlx", filename=packed.name, sha256=digest, subtree="")
        )
    (tree / HEADER).write_text(original)
    return replace(load().target("mlx"), archives=tuple(archives))


def diff(tree: Path, head: str = "", **more: str) -> Path:
    (tree / "tests").mkdir(exist_ok=True)
    (tree / "tests/a.py").write_text("one\n")
    (tree / "notes.json").write_text("one\n")
    changes = {HEADER: (tree / HEADER).read_text().replace(BEFORE, AFTER), "tests/a.py": "two\n"} | more
    path = tree.parent / "my change.diff"
    path.write_text(head + diff_of(tree, changes))
    return path


def made(target: Target, diff: Path, link: str | None = LINK, *only: str) -> NewPatch:
    return make(target, diff, link, only, diff.parent, lambda _: None)


def test_the_directory_can_be_applied_and_says_which_releases_it_fits(
    fp4patch: Callable[..., Said], tree: Path
) -> None:
    target = releases(tree, "int x;", BEFORE, "int x;", BEFORE, AFTER)
    of = diff(tree)
    patch = made(target, of)
    assert (patch.patch, patch.directory.name, patch.left_out) == ("mlx/pr-7", "pr-7", ("tests/a.py",))
    assert list(patch.releases.values()) == ["drifted", "pristine", "drifted", "pristine", "upstreamed"]
    assert patch.applies == ">=0.1.0,<=0.3.0,!=0.2.0"
    applied = fp4patch("apply", "--variant", "native", "--with", patch.directory, "--json", tree)
    assert (applied.status, "mlx/pr-7 1" in applied.tree["files"][0]["patches"]) == (0, True)
    with pytest.raises(UsageError, match="exists"):
        made(target, of)


def test_name_and_link_are_those_of_the_mail_if_the_diff_is_one(tree: Path) -> None:
    target = releases(tree, BEFORE)
    head = 'From 0\nSubject: [PATCH 1/2] say "four"\n\nSee https://example.org/a.\n---\n\n'
    patch = made(target, diff(tree, head), None)
    assert (patch.directory.name, patch.link) == ("my-change", "https://example.org/a")
    numbered = diff(tree).rename(tree.parent / "11.diff")
    assert made(target, numbered, None).link == "https://github.com/ml-explore/mlx/pull/11"
    assert r'title = "say \"four\""' in (patch.directory / "patch.toml").read_text()


def test_what_cannot_be_a_patch_is_refused_and_nothing_is_written(tree: Path) -> None:
    target = releases(tree, "int x;", AFTER)
    before = {*tree.parent.iterdir()} | {tree.parent / "my change.diff"}
    with pytest.raises(Refused, match=r"none of 2 releases: 0\.0\.0 drifted, 0\.1\.0 upstreamed"):
        made(target, diff(tree))
    link = diff(tree)
    link.write_text(link.read_text() + "diff --git a/link b/link\nnew file mode 120000\nindex 0000000..1\n")
    with pytest.raises(Refused, match="symbolic link"):
        made(target, link)
    tests_alone = diff(tree)
    tests_alone.write_text("diff --git a/tests" + tests_alone.read_text().partition("diff --git a/tests")[2])
    with pytest.raises(Refused, match="nothing that is built"):
        made(target, tests_alone)
    with pytest.raises(UsageError, match="which address"):
        made(target, diff(tree), None)
    with pytest.raises(UsageError, match="no archive of mlx 9"):
        made(target, diff(tree), LINK, "9")
    with pytest.raises(UsageError, match="no release of mlx is in the cache"):
        made(replace(target, archives=()), diff(tree))
    assert {*tree.parent.iterdir()} == before
