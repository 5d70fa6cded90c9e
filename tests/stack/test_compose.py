"""Several commits as one, with git as the witness."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import Project

from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import read
from fp4patch.stack.attempt import exactly_at_lines
from fp4patch.stack.compose import composed

LINES = [f"line {number}\n" for number in range(40)]


def mails(project: Project, first: str) -> bytes:
    return project.git("format-patch", "--stdout", "-M", "--full-index", f"{first}..HEAD")


edits = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 39), st.integers(0, 3), st.lists(st.sampled_from(["x\n", "y\n", "line 3\n"]), max_size=3)
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=3,
)


@given(edits)
@settings(max_examples=15, deadline=None)
def test_the_result_is_that_of_all_commits(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[tuple[int, int, list[str]]]]
) -> None:
    project = Project(tmp_path_factory.mktemp("p") / "project")
    lines = list(LINES)
    first = project.commit({"a.h": "".join(lines)}, "First")
    for number, changes in enumerate(commits):
        for start, length, new in changes:
            lines[start : start + length] = new
        project.commit({"a.h": "".join(lines), "b.h": f"{number}\n"}, f"Commit {number}")
    whole = composed(read(mails(project, first)).commits)
    changed = [change for change in whole.changes if change.path == "a.h"]
    after = exactly_at_lines("".join(LINES), changed[0].hunks) if changed else "".join(LINES)
    assert after == "".join(lines)
    assert (
        "".join(line for change in whole.changes if change.path == "b.h" for line in change.hunks[0].after)
        == f"{len(commits) - 1}\n"
    )


def test_files_that_come_go_and_move(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    first = project.commit({"a.h": "".join(LINES), "gone.h": "old\n"}, "First")
    project.commit({"new.h": "1\n2\n", "passing.h": "x\n", "gone.h": None}, "One")
    project.git("mv", "a.h", "b.h")
    project.commit({"new.h": "1\n3\n", "passing.h": None}, "Two")
    project.commit({"b.h": "".join(LINES).replace("line 7\n", "line seven\n")}, "Three")
    whole = composed(read(mails(project, first)).commits)
    assert {(change.before, change.after) for change in whole.changes} == {
        (None, "new.h"),
        ("gone.h", None),
        ("a.h", "b.h"),
    }
    (new,) = [change for change in whole.changes if change.after == "new.h"]
    assert "".join(new.hunks[0].after) == "1\n3\n"
    (moved,) = [change for change in whole.changes if change.after == "b.h"]
    assert exactly_at_lines("".join(LINES), moved.hunks) == "".join(LINES).replace("line 7\n", "line seven\n")


def test_commits_that_do_not_follow_each_other_are_refused(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.commit({"a.h": "1\n"}, "First")
    project.commit({"a.h": "2\n"}, "One")
    one = project.mail()
    project.commit({"a.h": "3\n"}, "Two")
    project.commit({"a.h": "4\n"}, "Three")
    with pytest.raises(LexError, match="the commit before leaves"):
        composed([*read(one).commits, *read(project.mail()).commits])
