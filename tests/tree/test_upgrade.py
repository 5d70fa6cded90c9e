"""The commands of docs/upgrade.md, each as the page has it, in a tree that an integrator would have."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from small_cutlass import CONVERTER, FILES, GUARD, checkout, everything, git, small_cutlass

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]
PAGE = Path(__file__).parents[2] / "docs" / "upgrade.md"
IDENTITY = {"user.name": "t", "user.email": "t@example.org", "protocol.file.allow": "always", "commit.gpgsign": "false"}


def run(folder: Path, *commands: str) -> str:
    """Run commands of a shell, with git's identity, and return what they print; one that fails is named."""
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environ |= {"GIT_CONFIG_COUNT": str(len(IDENTITY)), "GIT_EDITOR": "true"}
    for number, (name, value) in enumerate(IDENTITY.items()):
        environ |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    done = subprocess.run(
        ["sh", "-e"],
        input="\n".join(commands),
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def page(section: str, containing: str) -> str:
    """Return the one block of a section with these words."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (found,) = [block for block in re.findall(r"(?m)(?:^ {4}.*\n)+", text) if containing in block]
    return re.sub(r"(?m)^ {4}", "", found)


@pytest.fixture
def upstream(pristine_tree: GetTree, tmp_path: Path) -> Path:
    """CUTLASS 4.2.1 as a repository: its main is that, and both releases are tags."""
    tree = checkout(small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "upstream"))
    git(tree, "branch", "-M", "main")
    git(tree, "tag", "v4.2.1")
    git(tree, "checkout", "-qb", "next")
    small_cutlass(pristine_tree("cutlass", "4.4.2"), tree)
    git(tree, "commit", "-qam", "4.4.2", "--no-gpg-sign")
    git(tree, "tag", "v4.4.2")
    git(tree, "checkout", "-q", "main")
    return tree


@pytest.fixture
def clone(upstream: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", str(upstream), "cutlass")
    return tmp_path / "cutlass"


@pytest.fixture
def expected(fp4patch: Command, pristine_tree: GetTree, tmp_path: Path) -> dict[str, bytes]:
    """What next3 makes of 4.4.2."""
    fresh = small_cutlass(pristine_tree("cutlass", "4.4.2"), tmp_path / "fresh")
    assert fp4patch("apply", "--variant", "next3", fresh).status == 0
    return of(fresh)


def of(tree: Path) -> dict[str, bytes]:
    return {path: (tree / path).read_bytes() for path in FILES}


def released(upstream: Path) -> None:
    git(upstream, "merge", "-q", "--ff-only", "next")


def test_a_clone_is_pulled(upstream: Path, clone: Path, fp4patch: Command, expected: dict[str, bytes]) -> None:
    fp4patch("apply", "--variant", "next3", clone)
    version = clone / "include/cutlass/version.h"
    version.write_text(version.read_text() + "// mine\n")
    git(clone, "commit", "-qm", "mine", "include/cutlass/version.h")
    (upstream / GUARD).write_text("// upstream's\n" + (upstream / GUARD).read_text())
    git(upstream, "commit", "-qam", "a line")
    run(clone.parent, page("A clone", "fp4patch apply cutlass"))
    status = fp4patch("status", "--json", clone).tree
    assert (status["state"], status["variant"]) == ("applied", "next3")
    assert (clone / GUARD).read_text().startswith("// upstream's")
    assert version.read_text().endswith("// mine\n")
    assert expected


def test_own_commits_in_a_patched_file_stay(
    upstream: Path, clone: Path, fp4patch: Command, expected: dict[str, bytes]
) -> None:
    (clone / GUARD).write_text((clone / GUARD).read_text() + "// mine\n")
    git(clone, "commit", "-qam", "mine")
    fp4patch("apply", "--variant", "next3", clone)
    released(upstream)
    run(clone.parent, page("A clone", "fp4patch revert"))
    assert fp4patch("status", "--json", clone).tree["state"] == "applied"
    assert b"// mine\n" in (clone / GUARD).read_bytes()
    assert of(clone) | {GUARD: b""} == expected | {GUARD: b""}


def test_a_conflict_of_gits_stash_is_named_with_the_way_out(upstream: Path, clone: Path, fp4patch: Command) -> None:
    fp4patch("apply", "--variant", "next3", clone)
    lines = (upstream / CONVERTER).read_text().split("\n")
    changed = [f"{line} // upstream's" if "float_e2m1_t" in line else line for line in lines]
    (upstream / CONVERTER).write_text("\n".join(changed))
    git(upstream, "commit", "-qam", "the patched lines")
    assert "resulted in conflicts" in run(clone.parent, "git -C cutlass pull --rebase --autostash 2>&1")
    refused = fp4patch("apply", clone)
    assert refused.status == 1
    commands = re.findall(r"`(git -C [^`]* checkout [^`]*)`", refused.err)
    assert all(CONVERTER in command for command in commands)
    run(clone, *commands, "fp4patch apply .", "git stash drop -q")
    assert fp4patch("status", "--json", clone).tree["state"] == "applied"
    assert "// upstream's" in (clone / CONVERTER).read_text()


@pytest.fixture
def project(upstream: Path, tmp_path: Path) -> Path:
    """A project with a submodule, patched."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "submodule", "--quiet", "add", str(upstream), "third_party/cutlass")
    git(folder, "commit", "-qm", "a submodule")
    run(folder, "fp4patch apply --variant next3 third_party/cutlass")
    return folder


def test_a_submodule_is_moved(project: Path, fp4patch: Command, expected: dict[str, bytes]) -> None:
    run(project, page("A submodule", "checkout"))
    assert of(project / "third_party/cutlass") == expected
    assert fp4patch("status", "--json", project / "third_party/cutlass").tree["state"] == "applied"


def test_a_submodule_that_the_project_moved_is_applied_again(
    project: Path, upstream: Path, tmp_path: Path, fp4patch: Command, expected: dict[str, bytes]
) -> None:
    git(tmp_path, "clone", "-q", "--recurse-submodules", str(project), "ours")
    run(tmp_path / "ours", "fp4patch apply --variant next3 third_party/cutlass")
    released(upstream)
    git(project, "submodule", "--quiet", "update", "--force", "--remote")
    git(project, "commit", "-qam", "4.4.2")
    run(tmp_path / "ours", page("A submodule", "git pull"))
    assert of(tmp_path / "ours/third_party/cutlass") == expected
    assert fp4patch("status", "--json", tmp_path / "ours/third_party/cutlass").tree["state"] == "applied"


def test_a_project_names_the_trees_below_it(project: Path, fp4patch: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    said = fp4patch("apply", "--variant", "next3", ".")
    assert said.status == 1
    assert "name the tree below it: third_party/cutlass (NVIDIA CUTLASS 4.2.1)" in said.err


@pytest.fixture
def committed(clone: Path, fp4patch: Command, tmp_path: Path) -> Path:
    """A clone of a patched tree that was committed."""
    fp4patch("apply", "--variant", "next3", clone)
    git(clone, "commit", "-qam", "patched")
    clone.rename(tmp_path / "patched")
    git(tmp_path, "clone", "-q", "patched", "cutlass")
    return clone


def test_a_patched_tree_that_is_committed(committed: Path, fp4patch: Command, expected: dict[str, bytes]) -> None:
    before = everything(committed)
    status = fp4patch("status", "--json", committed).tree
    assert (status["state"], status["variant"]) == ("applied", "next3")
    assert "no receipt" in status["notes"][0]
    assert everything(committed) == before
    run(committed.parent, page("A patched tree that is committed", "merge"))
    assert of(committed) == expected


def test_an_edit_of_a_committed_file_is_not_lost(committed: Path, fp4patch: Command) -> None:
    (committed / GUARD).write_text("// mine\n" + (committed / GUARD).read_text())
    before = everything(committed)
    states = {file["path"]: file["state"] for file in fp4patch("status", "--json", committed).tree["files"]}
    assert (states[GUARD], states[CONVERTER]) == ("foreign", "applied")
    for command in (["apply", "--variant", "native"], ["revert"]):
        said = fp4patch(*command, committed)
        assert said.status == 1
        assert GUARD in said.err
    assert everything(committed) == before


def test_pristine_bytes_that_nobody_has_leave_a_file_foreign(committed: Path, fp4patch: Command) -> None:
    shutil.rmtree(committed / ".git")
    text = (committed / GUARD).read_text()
    (committed / GUARD).write_text(re.sub("pristine [0-9a-f]{8}", "pristine 00000000", text))
    assert fp4patch("status", "--json", committed).tree["state"] == "foreign"
    assert fp4patch("revert", committed).status == 1


def test_a_line_that_names_another_variant_is_not_believed(committed: Path, fp4patch: Command) -> None:
    for path in FILES:
        text = (committed / path).read_text()
        (committed / path).write_text(text.replace("// fp4patch next3: ", "// fp4patch native: "))
    status = fp4patch("status", "--json", committed).tree
    assert status["state"] == "foreign"


@pytest.fixture
def exported(clone: Path) -> Path:
    """A clone with the commits of an export."""
    run(clone.parent, "fp4patch export --variant next3 -o old cutlass", "git -C cutlass am -q $PWD/old/*.patch")
    return clone


def test_commits_of_an_export(exported: Path, fp4patch: Command, tmp_path: Path) -> None:
    status = fp4patch("status", "--json", exported).tree
    assert (status["state"], status["variant"]) == ("applied", "next3")
    assert fp4patch("apply", "--json", exported).document["state"] == "unchanged"
    assert not (exported / ".fp4patch").exists()
    run(tmp_path, page("Commits of `export`", "am"))
    status = fp4patch("status", "--json", exported).tree
    assert (status["state"], status["version"]) == ("applied", "4.4.2")


def test_others_commits_on_top_of_an_export_are_no_edits(exported: Path, upstream: Path, fp4patch: Command) -> None:
    (upstream / GUARD).write_text("// upstream's\n" + (upstream / GUARD).read_text())
    git(upstream, "commit", "-qam", "a line")
    git(exported, "pull", "-q", "--no-rebase", "--no-edit")
    (exported / GUARD).write_text((exported / GUARD).read_text() + "// mine\n")
    git(exported, "commit", "-qam", "mine")
    assert fp4patch("status", "--json", exported).tree["state"] == "applied"


def test_apply_and_revert_leave_the_commits_of_an_export_to_git(
    exported: Path, clone: Path, fp4patch: Command, tmp_path: Path
) -> None:
    before = everything(exported)
    for command in (["apply", "--variant", "native"], ["revert"]):
        said = fp4patch(*command, exported)
        assert said.status == 1
        (advice,) = re.findall(r"`(git -C [^`]*)`", said.err)
    assert everything(exported) == before
    run(tmp_path, advice)
    assert of(exported) == of(tmp_path / "upstream")
    assert fp4patch("apply", "--variant", "native", exported).status == 0


def test_a_source_that_must_stay_as_it_is(clone: Path, fp4patch: Command, tmp_path: Path) -> None:
    for path in (*clone.rglob("*"), clone):
        path.chmod(path.stat().st_mode & ~0o222)
    before = everything(clone)
    refused = fp4patch("apply", "--variant", "next3", clone)
    assert refused.status == 1
    assert "--output DIR" in refused.err
    run(tmp_path, page("A source that must stay as it is", "--output"))
    assert everything(clone) == before
    assert fp4patch("status", "--json", tmp_path / "cutlass-next3").tree["state"] == "applied"
    assert not (tmp_path / "cutlass-next3/.git").exists()
    shutil.rmtree(tmp_path / "cutlass-next3")
    for path in (clone, *clone.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def test_a_copy_is_written_whole_or_not_at_all(clone: Path, fp4patch: Command, tmp_path: Path) -> None:
    (clone / GUARD).write_text((clone / GUARD).read_text().replace("float_e2m1_t(double x)", "float_e2m1_t(int x)"))
    assert fp4patch("apply", "--variant", "next3", "-o", tmp_path / "made", clone).status == 1
    assert fp4patch("apply", "--variant", "next3", "-o", clone / "inside", clone).status == 2
    assert fp4patch("apply", "--variant", "next3", "-o", tmp_path, clone).status == 2
    assert fp4patch("apply", "--variant", "next3", "--check", "-o", tmp_path / "made", clone).status == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cutlass", "upstream"]


def test_a_tree_that_is_no_release_says_whose_rules_it_has(clone: Path, fp4patch: Command) -> None:
    version = clone / "include/cutlass/version.h"
    version.write_text(version.read_text().replace("CUTLASS_PATCH 1", "CUTLASS_PATCH 7"))
    note = "cutlass 4.2.7 is no release that was surveyed: its rules are those of 4.2.2"
    assert note in fp4patch("apply", "--dry-run", "--variant", "next3", "--json", clone).tree["notes"]
    version.write_text(version.read_text().replace("CUTLASS_PATCH 7", "CUTLASS_PATCH 1"))
    (clone / GUARD).write_text((clone / GUARD).read_text() + "\n")
    note = "it states 4.2.1, and has other files than that release: its rules are those of 4.2.1"
    assert note in fp4patch("status", "--json", clone).tree["notes"]
