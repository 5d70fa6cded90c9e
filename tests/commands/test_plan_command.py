"""`fp4patch plan`: a stack on trees, on pinned releases and with a clone; its text, JSON document and Markdown."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from project import Project

SOURCE = "".join(f"int v{number}() {{\n  return {number};\n}}\n\n" for number in range(12))
GUARDED = SOURCE.replace("  return 5;\n", "  require_sm121(5);\n  return 5;\n")
COUNTED = SOURCE.replace("  return 9;\n", "  count_calls(9);\n  return 9;\n")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with two releases, and a stack of two patches, of which the second release has the first."""
    made = Project(tmp_path / "project")
    made.commit({"src/a.cu": SOURCE}, "First", "v1.0")
    stack = tmp_path / "stack"
    stack.mkdir()
    made.git("checkout", "-q", "-b", "side")
    made.commit({"src/a.cu": GUARDED}, "Guard *five* | on SM121 (#12)")
    (stack / "0001-guard.patch").write_bytes(made.mail())
    made.git("checkout", "-q", "v1.0")
    made.commit({"src/a.cu": COUNTED}, "Count the calls of nine")
    (stack / "0002-count.patch").write_bytes(made.mail())
    made.git("checkout", "-q", "main")
    made.commit({"src/a.cu": GUARDED}, "Guard *five* | on SM121 (#12)", "v1.1")
    return made


@pytest.fixture
def stack(project: Project) -> Path:
    return project.folder.parent / "stack"


def tree(project: Project, tag: str) -> Path:
    folder = project.folder.parent / f"tree-{tag}"
    folder.mkdir()
    project.git("--work-tree", str(folder), "checkout", "-q", tag, "--", ".")
    return folder


def test_trees_side_by_side_and_nothing_written(
    project: Project, stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = [tree(project, "v1.0"), tree(project, "v1.1")]
    before = [snapshot(folder) for folder in (*trees, stack)]
    said = Said(capsys, "plan", stack, *trees)
    assert said.status == 0, said.err
    rows = [line.split() for line in said.out.splitlines()]
    assert ["0001", "applies", "in"] in rows
    assert ["0002", "applies", "applies"] in rows
    assert "its reverse fits exactly" in said.out
    assert [snapshot(folder) for folder in (*trees, stack)] == before


def test_the_document_has_all(project: Project, stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project.commit({"src/a.cu": GUARDED.replace("return 9;", "return 99;")}, "Ninety-nine (#20)")
    said = Said(capsys, "plan", stack, project.folder, "--json")
    assert said.status == 1
    first, second = said.document["steps"]
    assert (first["outcome"], first["since"]) == ("in the release", "1.1")
    assert "(#12)" in first["evidence"]
    assert second["outcome"] == "conflicts"
    (place,) = second["places"]
    assert (place["file"], place["release"], place["patch"]) == (
        "src/a.cu",
        "  return 99;\n",
        "  count_calls(9);\n  return 9;\n",
    )
    assert [commit.partition(" ")[2] for commit in place["commits"]] == ["Ninety-nine (#20)"]
    assert not said.document["settled"]


def test_markdown_is_the_same_each_time_and_shows_titles_as_they_are(
    project: Project, stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [Said(capsys, "plan", stack, project.folder, "--markdown") for _ in range(2)]
    assert said[0].out == said[1].out
    row = next(line for line in said[0].out.splitlines() if "SM121" in line)
    assert row == r"| Guard \*five\* \| on SM121 (\#12) | in since 1.1 |"
    assert said[0].status == 0


def test_the_table_fits_80_columns(
    project: Project, stack: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    project.commit({"src/a.cu": SOURCE.replace("return 9;", "return 99;")}, "A subject that is long " * 5)
    said = Said(capsys, "plan", stack, project.folder, tree(project, "v1.0"), tree(project, "v1.1"))
    table = said.out.splitlines()[1:]
    assert max(map(len, table[: table.index("")])) <= 80


def test_one_file_is_a_stack(project: Project, stack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "plan", stack / "0001-guard.patch", tree(project, "v1.0"))
    assert said.status == 0
    assert "applies" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "{stack}", "{stack}/none"], "is no directory"),
        (["plan", "{stack}", "nothing==1.0"], "nothing"),
        (["plan", "{stack}", "cutlass==x"], "is not a version"),
        (["plan", "{stack}/..", "{tree}"], "is not a stack"),
        (["plan", "{stack}", "{tree}", "--clone", "{stack}"], "is no repository of git"),
        (["plan", "{stack}", "{tree}", "--bisect"], "needs the releases of a target"),
        (["plan", "{stack}", "{tree}", "--json", "--markdown"], "two forms"),
    ],
)
def test_what_cannot_be_planned_is_one_error(
    project: Project, stack: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tree(project, "v1.0")
    said = Said(capsys, *(word.format(stack=stack, tree=folder) for word in arguments))
    assert said.status in (1, 2)
    assert message in said.err + said.out
    assert said.err.count("error: ") <= 1 or "bug" not in said.err


def test_a_file_behind_a_link_out_of_the_tree_is_not_read(
    project: Project, stack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tree(project, "v1.0")
    outside = folder.parent / "outside"
    (folder / "src").rename(outside)
    (folder / "src").symlink_to(outside)
    said = Said(capsys, "plan", stack, folder)
    assert said.status == 1
    assert "not for this release" in said.out


def test_real_releases_in_the_layout_of_their_wheels(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What upstream changed between two releases, as a patch with the repository's paths, on both and by bisection."""
    old, new = "0.6.4", "0.7.4"
    file, name = "jit/fused_moe.py", "flashinfer/jit/fused_moe.py"
    before, after = (
        (pristine_tree("flashinfer", version) / file).read_text().splitlines(keepends=True) for version in (old, new)
    )
    stack = tmp_path / "stack"
    stack.mkdir()
    diff = "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"))
    (stack / "moe.diff").write_text(f"diff --git a/{name} b/{name}\n{diff}")
    said = Said(capsys, "plan", stack, f"flashinfer=={old}", f"flashinfer=={new}", "--bisect", "--json")
    assert said.status == 0, said.out
    assert [step["outcome"] for step in said.document["steps"]] == ["applies", "in the release"]
    (found,) = said.document["goes"]
    assert found["newest"] == new
    assert found["since"] > found["before"] >= old
