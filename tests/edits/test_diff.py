"""The edit ``diff``: exact context at one place, all hunks or none, and nothing but changes of source files."""

import subprocess
from pathlib import Path

import pytest

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import Drift, NothingToDo, Outcome, Rewritten
from fp4patch.edits import Replace
from fp4patch.edits.diff import FileDiff, supported
from fp4patch.edits.fold import fold

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


def edit(diff: str) -> FileDiff:
    (change,) = supported(diff.encode())
    return FileDiff(search=(change.path,), file="pr.diff", sha256="0" * 64, hunks=change.hunks)


def apply(diff: str, text: str) -> Outcome:
    """Return the outcome of a diff."""
    return fold(text, [(edit(diff), str, {})]).outcomes[0]


def patched(diff: str, text: str) -> str:
    """Return what a diff makes of a text to which it applies."""
    made, (outcome,) = fold(text, [(edit(diff), str, {})])
    assert isinstance(outcome, Rewritten)
    return made


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
    assert fold(before, [(edit(diff_of(before, after, tmp_path, "a.rs")), str, {})]).text == after


def test_a_code_edit_that_reads_otherwise_is_refused_before_a_diff_too(tmp_path: Path) -> None:
    text = "int left = side*p;\nb;\nc;\nd;\na\n"
    patched = text.replace("\na\n", "\nb\n")
    joins = Replace(search=("a.h",), about="side", find="side", replace="other /", otherwise="no side")
    diff = edit(diff_of(text, patched, tmp_path, "a.h"))
    done = fold(text, [(joins, str, {}), (diff, str, {})])
    assert [type(outcome) for outcome in done.outcomes] == [Drift, Rewritten]
    assert done.text == patched


SECTION = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"


NEW = "diff --git a/a.h b/a.h\n{} mode 100644\n--- {}\n+++ {}\n@@ {} @@\n{}a\n"
MAIL = "From 0 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n\n"


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (SECTION.format("../a.h"), "inside the tree"),
        (SECTION.format(".git/hooks/a"), "in .git"),
        (SECTION.format("include/.a.h"), "not hidden"),
        (SECTION.format("a*.h"), "plain name"),
        (SECTION.format("a.json"), "source file"),
        (SECTION.format("a.so"), "source file"),
        (NEW.format("new file", "/dev/null", "b/a.h", "-0,0 +1", "+"), "new file"),
        (NEW.format("deleted file", "a/a.h", "/dev/null", "-1 +0,0", "-"), "deleted file"),
        (SECTION.format("a.h").replace("index 1..2 100644", "old mode 100644\nnew mode 100755"), "another mode"),
        (SECTION.format("a.h").replace("index 1..2 100644", "index 1..2 120000"), "symbolic link"),
        ("diff --git a/a.h b/b.h\nrename from a.h\nrename to b.h\n", r"b\.h.*a rename"),
        ("diff --git a/a.o b/a.o\nBinary files a/a.o and b/a.o differ\n", "binary"),
        (SECTION.format("a.h").partition("---")[0], "no hunk"),
        (MAIL + SECTION.format("a.h") + MAIL + SECTION.format("a.h"), "several commits"),
    ],
)
def test_what_is_more_than_changes_of_source_files_is_refused_in_one_sentence(diff: str, reason: str) -> None:
    with pytest.raises(LexError, match=reason) as refused:
        supported(diff.encode())
    assert refused.value.line
    assert "\x1b" not in str(refused.value)
