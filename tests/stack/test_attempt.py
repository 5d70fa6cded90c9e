"""Patches put on texts in memory, with git as the witness."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import Project

from fp4patch.edits.patch_file import FileChange, read
from fp4patch.stack.attempt import Attempt, attempt, merge

TEXT = "".join(f"int v{number};\n" for number in range(30))


def changed(project: Project, before: dict[str, str], after: dict[str, str | None]) -> tuple[FileChange, ...]:
    project.commit(before, "before")
    project.commit(after, "after")
    return read(project.mail()).changes


def put(changes: tuple[FileChange, ...], tree: dict[str, str], base: str | None = None) -> Attempt:
    return attempt(changes, tree.get, lambda _: base)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


rows = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=14).map(
    lambda rows: "".join(f"int {row};\n" for row in rows)
)


@given(rows, rows, rows)
@settings(max_examples=40, deadline=None)
def test_what_is_put_on_is_what_git_puts_on(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str, ours: str
) -> None:
    """Where a patch applies, git apply applies it, to the same text; git takes more: the nearest of several places."""
    folder = tmp_path_factory.mktemp("texts")
    for name, text in (("before", before), ("after", after)):
        (folder / name).write_text(text)
    command = ["git", "diff", "--no-index", "--no-prefix", "before", "after"]
    diff = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    diff = diff.replace("before", "a/x.h").replace("after", "b/x.h")
    if not diff:
        return
    made = attempt(read(diff.encode()).changes, {"x.h": ours}.get, lambda _: None)
    (folder / "x.h").write_text(ours)
    git = subprocess.run(["git", "apply", "-p1"], cwd=folder, input=diff, capture_output=True, text=True, check=False)
    if made.fits:
        assert git.returncode == 0, git.stderr
        assert (folder / "x.h").read_text() == made.texts["x.h"]
    if ours == before:
        assert made.fits
        assert made.texts["x.h"] == after


def test_a_merge_puts_in_what_the_exact_lines_do_not(project: Project) -> None:
    changes = changed(project, {"a.h": TEXT}, {"a.h": TEXT.replace("v10;", "v10 = 1;")})
    release = TEXT.replace("int v8;\n", "int v8;  // eight\n")
    alone = put(changes, {"a.h": release})
    assert [(misfit.file, misfit.hunk, misfit.line) for misfit in alone.misfits] == [("a.h", 1, 9)]
    merged = put(changes, {"a.h": release}, TEXT)
    assert merged.fits
    assert merged.merged
    assert merged.texts["a.h"] == release.replace("v10;", "v10 = 1;")
    assert [(moved.hunk, moved.line) for moved in merged.moved] == [(1, 8)]


def test_a_conflict_has_both_sides_and_no_text(project: Project) -> None:
    changes = changed(project, {"a.h": TEXT}, {"a.h": TEXT.replace("v10;", "v10 = 1;")})
    made = put(changes, {"a.h": TEXT.replace("v10;", "v10 = 2;")}, TEXT)
    (misfit,) = made.misfits
    assert (misfit.line, misfit.ours, misfit.theirs) == (11, ("int v10 = 2;\n",), ("int v10 = 1;\n",))
    assert "a.h" not in made.texts


def test_a_merge_that_cannot_be_read_does_not_fit(project: Project) -> None:
    before = "x = [\n    1,\n    2,\n    3,\n    4,\n    5,\n    6,\n]\n"
    changes = changed(
        project,
        {"a.py": before},
        {"a.py": before.replace("    2,\n", "    2,\n    (\n").replace("6,\n", "6,\n    ),\n")},
    )
    release = before.replace("    4,\n", "    4,\n]\nif True:\n    y = [\n")
    made = put(changes, {"a.py": release}, before)
    assert ["reads as its language" in misfit.reason for misfit in made.misfits] == [True]


def test_marks_in_a_text_are_no_conflict() -> None:
    base = "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n" + TEXT
    text, conflicts = merge(base, base.replace("v3;", "v3 = 1;"), base.replace("v20;", "v20 = 1;"))
    assert not conflicts
    assert "v3 = 1" in text
    _, conflicts = merge(base, base.replace("v3;", "v3 = 1;"), base.replace("v3;", "v3 = 2;"))
    assert conflicts == [(9, ("int v3 = 1;\n",), ("int v3 = 2;\n",))]


def test_two_places_are_none(project: Project) -> None:
    changes = changed(project, {"a.h": TEXT}, {"a.h": TEXT.replace("v10;", "v10 = 1;")})
    made = put(changes, {"a.h": "int z;\n" + TEXT + TEXT})
    assert [misfit.reason for misfit in made.misfits] == ["its lines are at 2 places: 9, 39"]


def test_the_text_that_it_was_made_for_needs_no_unique_lines(project: Project) -> None:
    text = "int a;\nint a;\nint a;\nint a;\nint a;\nint a;\nint a;\nint a;\nint a;\nint a;\n"
    rows = text.splitlines(keepends=True)
    after = "".join([*rows[:5], "int b;\n", *rows[5:]])
    changes = changed(project, {"a.h": text}, {"a.h": after})
    assert put(changes, {"a.h": text}).texts["a.h"] == after
    assert put(changes, {"a.h": text + "int c;\n"}).fits  # at its own line, as git takes it


@pytest.mark.parametrize(
    ("before", "after", "tree", "reason"),
    [
        ({}, {"n.h": "1\n"}, {"n.h": "2\n"}, "the release has a file of this name, with another content"),
        (
            {"o.h": "1\n"},
            {"o.h": None},
            {"o.h": "2\n"},
            "the release has other lines in the file that the patch deletes",
        ),
        ({"o.h": "1\n"}, {"o.h": None}, {}, "the release has no such file"),
        ({"o.h": "1\n"}, {"o.h": "2\n"}, {}, "the release has no such file"),
        ({"o.h": TEXT}, {"o.h": None, "n.h": TEXT}, {"o.h": TEXT, "n.h": ""}, "the release has a file of the new name"),
        ({"o.h": TEXT}, {"o.h": None, "n.h": TEXT}, {"n.h": TEXT}, "the release has it as n.h already"),
    ],
)
def test_files_that_come_go_and_move(
    project: Project, before: dict[str, str], after: dict[str, str | None], tree: dict[str, str], reason: str
) -> None:
    changes = changed(project, before, after)
    assert [misfit.reason for misfit in put(changes, tree).misfits] == [reason]
    made = put(changes, before)
    assert made.fits
    assert {**before, **made.texts} == {**before, **after}


def test_a_link_is_refused(project: Project) -> None:
    project.commit({"a.h": "1\n"}, "before")
    (project.folder / "l").symlink_to("a.h")
    project.commit({}, "after")
    made = put(read(project.mail()).changes, {})
    assert ["symbolic link" in misfit.reason for misfit in made.misfits] == [True]
