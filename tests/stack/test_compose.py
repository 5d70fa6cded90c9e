"""Several commits as one, with git as the witness."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import Project

from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import read
from fp4patch.stack.attempt import attempt, exactly_at_lines
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


OPERATIONS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["edit", "move", "copy", "delete", "create", "swap"]),
            st.integers(0, 3),
            st.integers(0, 3),
            st.integers(0, 39),
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=4,
)


def operated(files: dict[str, str], what: str, a: str, b: str, line: int) -> dict[str, str | None]:
    """Return what one operation changes in files: nothing, if these are not there, or are in the way."""
    if (
        (a in files) == (what == "create")
        or (what in ("move", "copy") and b in files)
        or (what == "swap" and b not in files)
    ):
        return {}
    rows = files.get(a, "").splitlines(keepends=True)
    done: dict[str, dict[str, str | None]] = {
        "edit": {a: "".join([*rows[:line], f"edited {line}\n", *rows[line + 1 :]])},
        "move": {a: None, b: files.get(a)},
        "copy": {b: files.get(a)},
        "delete": {a: None},
        "create": {a: f"new {line}\n"},
        "swap": {a: files.get(b), b: files.get(a)},
    }
    return done[what]


@given(OPERATIONS)
@settings(max_examples=25, deadline=None)
def test_files_that_change_their_names_are_those_of_the_last_commit(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[tuple[str, int, int, int]]]
) -> None:
    project = Project(tmp_path_factory.mktemp("p") / "project")
    files = {name: name + "".join(LINES) for name in ("a.h", "b.h")}
    before, first = dict(files), project.commit(dict(files), "First")
    names = ["a.h", "b.h", "c.h", "d/d.h"]
    for number, operations in enumerate(commits):
        old = files
        for what, a, b, line in operations:
            made = files | operated(files, what, names[a], names[b], line)
            files = {name: text for name, text in made.items() if text is not None}
        project.commit(dict.fromkeys(old.keys() - files.keys()) | files, f"Commit {number}")
    options = ["--stdout", "-B", "-M", "-C", "--find-copies-harder", "--full-index"]
    mails = project.git("format-patch", *options, f"{first}..HEAD")
    if not mails.strip():
        return
    whole = composed(read(mails).commits)
    put = attempt(whole.changes, before.get, lambda _: None)
    assert put.misfits == []
    assert {name: text for name, text in (before | put.texts).items() if text is not None} == files
