"""The edit ``diff``: exact context at one place, all hunks or none, and nothing but changes of source files."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.edits.diff import File, changed, supported

LINES = [f"line {number};\n" for number in range(1, 41)]
BEFORE = "".join(LINES)
AFTER = BEFORE.replace("line 10;\n", "line ten;\nand more;\n").replace("line 30;\n", "")


def diff_of(before: str, after: str, folder: Path, name: str = "a.h") -> str:
    """Return what git writes of a change."""
    for side, text in (("a", before), ("b", after)):
        (folder / side / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / side / name).write_bytes(text.encode())
    command = ["git", "diff", "--no-index", "--no-prefix", f"a/{name}", f"b/{name}"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()


def apply(diff: str, text: str | None) -> Outcome:
    """Return the outcome of a diff of one file."""
    (outcome,) = changed(supported(diff.encode()), lambda _: None if text is None else File(text)).outcomes
    return outcome


def patched(diff: str, text: str) -> str:
    """Return what a diff makes of a text to which it applies."""
    made = changed(supported(diff.encode()), lambda _: File(text))
    assert isinstance(made.outcomes[0], Rewritten)
    (file,) = made.files.values()
    assert file
    return file.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, AFTER),
        (BEFORE.replace("\n", "\r\n"), AFTER.replace("\n", "\r\n")),
        (BEFORE, BEFORE + "one more"),
        (BEFORE.removesuffix("\n"), BEFORE),
        (BEFORE, "first\n" + BEFORE),
        ("", "all of it\n"),
        ("all of it\n", ""),
        ("a\fb\n-- \n@@ c\n", "a\fb\n++ \n@@ d\n"),
    ],
    ids=["middle", "crlf", "end", "newline", "beginning", "into-nothing", "to-nothing", "as-diffs"],
)
def test_a_diff_of_git_applies_once_and_is_known_afterwards(before: str, after: str, tmp_path: Path) -> None:
    diff = diff_of(before, after, tmp_path)
    assert patched(diff, before) == after
    assert isinstance(apply(diff, after), NothingToDo)


def test_a_hunk_is_found_elsewhere_if_its_lines_occur_once(tmp_path: Path) -> None:
    diff = diff_of(BEFORE, AFTER, tmp_path)
    assert patched(diff, "another\nbeginning\n" + BEFORE) == "another\nbeginning\n" + AFTER


def test_lines_that_occur_twice_are_changed_only_at_the_line_of_the_hunk(tmp_path: Path) -> None:
    twice, once = BEFORE + BEFORE, diff_of(BEFORE + BEFORE, AFTER + BEFORE, tmp_path)
    assert patched(once, twice) == AFTER + BEFORE
    assert isinstance(apply(once, "moved\n" + twice), Drift)


def test_each_change_of_a_context_line_and_a_diff_in_part_are_refused_with_the_place(tmp_path: Path) -> None:
    diff = diff_of(BEFORE, AFTER, tmp_path)
    for number in (7, 8, 9, 10, 11, 12, 13, 27, 30, 33):
        drifted = apply(diff, "".join([*LINES[: number - 1], "line 0;\n", *LINES[number:]]))
        assert isinstance(drifted, Drift)
        assert drifted.line == number
        assert f"'line 0;' where 'line {number};' was expected" in drifted.nearest
    half = BEFORE.replace("line 10;\n", "line ten;\nand more;\n")
    assert isinstance(apply(diff, half), Drift)


def test_a_text_with_both_sides_is_refused(tmp_path: Path) -> None:
    drifted = apply(diff_of(BEFORE, AFTER, tmp_path), BEFORE + "between\n" + AFTER)
    assert isinstance(drifted, Drift)
    assert drifted.found == "both"


def test_a_file_need_not_be_in_a_language_of_ours(tmp_path: Path) -> None:
    before, after = "ls include/*.h\n", "ls include/*.cuh\n"
    assert patched(diff_of(before, after, tmp_path, "a.rs"), before) == after


SECTION = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"


MAIL = "From 0 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n\n"


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (SECTION.format("../a.h"), "inside the tree"),
        (SECTION.format(".git/hooks/a"), "in .git"),
        (SECTION.format("a.h").replace("index 1..2 100644", "index 1..2 120000"), "symbolic link"),
        ("diff --git a/a.o b/a.o\nBinary files a/a.o and b/a.o differ\n", "binary"),
        (MAIL + SECTION.format("a.h") + MAIL + SECTION.format("a.h"), "several commits"),
    ],
)
def test_what_can_go_into_no_tree_is_refused_in_one_sentence(diff: str, reason: str) -> None:
    with pytest.raises(LexError, match=reason) as refused:
        supported(diff.encode())
    assert refused.value.line
    assert "\n" not in str(refused.value)


HUNK = "--- {}\n+++ {}\n@@ {} @@\n{}\n"
CREATE = "diff --git a/n.h b/n.h\nnew file mode 100755\n" + HUNK.format("/dev/null", "b/n.h", "-0,0 +1", "+n")
DELETE = "diff --git a/o.h b/o.h\ndeleted file mode 100644\n" + HUNK.format("a/o.h", "/dev/null", "-1 +0,0", "-o")
RENAME = "diff --git a/o.h b/n.h\nrename from o.h\nrename to n.h\n" + HUNK.format("a/o.h", "b/n.h", "-1 +1", "-o\n+n")
COPY = "diff --git a/o.h b/n.h\ncopy from o.h\ncopy to n.h\n" + HUNK.format("a/o.h", "b/n.h", "-1 +1", "-o\n+n")
MODE = "diff --git a/o.h b/o.h\nold mode 100644\nnew mode 100755\n"
SWAP = (
    "diff --git a/o.h b/n.h\nrename from o.h\nrename to n.h\ndiff --git a/n.h b/o.h\nrename from n.h\nrename to o.h\n"
)
OLD, OTHER, NEW, RUN = File("o\n"), File("other\n"), File("n\n"), File("n\n", executable=True)
Files = dict[str, File]


@pytest.mark.parametrize(
    ("diff", "before", "after"),
    [
        (CREATE, {}, {"n.h": RUN}),
        (DELETE, {"o.h": OLD}, {}),
        (RENAME, {"o.h": OLD}, {"n.h": NEW}),
        (RENAME, {"o.h": File("o\n", executable=True)}, {"n.h": RUN}),
        (COPY, {"o.h": OLD}, {"n.h": NEW, "o.h": OLD}),
        (MODE, {"o.h": OLD}, {"o.h": File("o\n", executable=True)}),
        (SWAP, {"o.h": OLD, "n.h": NEW}, {"o.h": NEW, "n.h": OLD}),
        (DELETE + CREATE, {"o.h": OLD}, {"n.h": RUN}),
    ],
    ids=["create", "delete", "rename", "rename-mode", "copy", "mode", "swap", "both"],
)
def test_files_come_go_and_move(diff: str, before: Files, after: Files) -> None:
    changes = supported(diff.encode())
    made = changed(changes, before.get)
    assert {path: file for path, file in {**before, **made.files}.items() if file} == after
    assert all(isinstance(outcome, Rewritten) for outcome in made.outcomes)
    if diff != SWAP:
        again = changed(changes, after.get)
        assert all(isinstance(outcome, NothingToDo) for outcome in again.outcomes)
        assert again.files == {}


@pytest.mark.parametrize(
    ("diff", "before", "found"),
    [
        (CREATE, {"n.h": OTHER}, "n.h"),
        (DELETE, {"o.h": OTHER}, "0"),
        (DELETE, {"o.h": File("o\nmore\n")}, "0"),
        (RENAME, {"o.h": OLD, "n.h": OTHER}, "n.h"),
        (RENAME, {"o.h": OLD, "n.h": NEW}, "n.h"),
        (RENAME, {"n.h": OTHER}, "no o.h"),
        (COPY, {}, "no o.h"),
        (MODE, {}, "no o.h"),
        (SECTION.format("a.h"), {}, "no a.h"),
    ],
)
def test_a_file_in_the_way_and_a_missing_one_are_refused(diff: str, before: Files, found: str) -> None:
    made = changed(supported(diff.encode()), before.get)
    assert made.files == {}
    (outcome,) = made.outcomes
    assert isinstance(outcome, Drift)
    assert outcome.found == found
