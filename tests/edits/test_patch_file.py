"""The reader of patch files against git, diff(1) and patch(1): what they write is read, and says what they do."""

import subprocess
from contextlib import suppress
from email.header import Header
from pathlib import Path

import pytest
from git_trees import ENVIRONMENT, Tree, applied, commit, contents, found, git, put, repository, trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fp4patch.core.lex_error import LexError
from fp4patch.edits.patch_file import read, refused_path

__all__ = ["repository"]
slowly = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_hunk_of_the_first_line_is_at_the_beginning_as_git_has_it(tmp_path: Path) -> None:
    diff = "--- a/a.h\n+++ b/a.h\n@@ -1,2 +1,3 @@\n int a;\n int b;\n+int c;\n"
    (hunk,) = read(diff.encode()).commits[0].changes[0].hunks
    for text, goes in (("int a;\nint b;\n", True), ("int x;\nint a;\nint b;\n", False)):
        (tmp_path / "a.h").write_text(text)
        done = subprocess.run(["git", "apply", "--check", "-"], cwd=tmp_path, input=diff, text=True, check=False)
        assert (done.returncode == 0, bool(hunk.sites(text.splitlines(keepends=True), 0))) == (goes, goes)


@slowly
@given(
    before=trees,
    after=trees,
    moved=st.booleans(),
    options=st.sampled_from(
        [
            [],
            ["--no-prefix"],
            ["-U1"],
            ["--full-index"],
            ["-M10%"],
            ["-C10%", "--find-copies-harder"],
            ["-c", "core.quotePath=false"],
        ]
    ),
)
def test_a_diff_of_git_says_what_git_apply_does(
    repository: Path, before: Tree, after: Tree, moved: bool, options: list[str]
) -> None:
    if moved:  # git finds renames and copies
        after = {
            **after,
            **{f"moved/{path}": (data + b"more\n", executable) for path, (data, executable) in before.items()},
        }
    old, new = commit(repository, before, "before"), commit(repository, after, "after")
    config = options if options[:1] == ["-c"] else []
    diff = git(repository, *config, "diff", *(options if not config else []), old, new)
    if before == after:
        assert diff == b""
        return
    (made,) = read(diff).commits
    assert applied(before, made.changes) == after
    level = ["-p0"] if "--no-prefix" in options else []
    counts = git(repository, "apply", "--numstat", "-z", *level, data=diff).decode().split("\0")
    theirs = {tuple(row.split("\t", 2)) for row in counts if row}
    ours = {
        (
            str(sum(s == "+" for h in c.hunks for s, _ in h.rows)),
            str(sum(s == "-" for h in c.hunks for s, _ in h.rows)),
            c.path,
        )
        for c in made.changes
    }
    assert ours == theirs
    for change in made.changes:
        for path, side, blob in ((change.before, old, change.blob_before), (change.after, new, change.blob_after)):
            if path and blob:
                assert git(repository, "rev-parse", f"{side}:{path}").decode().startswith(blob)


@slowly
@given(
    before=trees,
    steps=st.lists(
        st.tuples(
            trees,
            st.sampled_from(
                ["short", "[Kernel] ünïcode (#123)", "x" * 70 + " y" * 40, "Re: [x] a", "Größe: " + "ü " * 60]
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_mails_say_what_git_am_does(repository: Path, before: Tree, steps: list[tuple[Tree, str]]) -> None:
    commits, tree = [commit(repository, before, "before")], before
    body = "From the release on.\nSee https://example.org/pull/77 for more.\n\n---- no rule\n"
    for after, subject in steps:
        if after != tree:
            commits.append(commit(repository, after, f"{subject}\n\n{body}"))
            tree = after
    if len(commits) == 1:
        return
    mails = git(repository, "format-patch", "--stdout", commits[0])
    git(repository, "checkout", "-q", "--detach", commits[0])
    git(repository, "am", "-q", "--keep-cr", "--keep-non-patch", data=mails)
    log = (
        git(repository, "log", "--reverse", "-z", "--format=%s%n%an <%ae>", f"{commits[0]}..HEAD").decode().split("\0")
    )
    git(repository, "checkout", "-q", "main")
    patch_file, tree = read(mails), before
    assert [f"{made.subject}\n{made.author}" for made in patch_file.commits] == [text.strip() for text in log if text]
    assert [made.commit for made in patch_file.commits] == commits[1:]
    for made in patch_file.commits:
        assert made.description == body.strip()
        assert made.link == "https://example.org/pull/77"
        assert made.pull_request == (123 if "(#123)" in made.subject else 77)
        tree = applied(tree, made.changes)
    assert tree == found(repository)


plain_names = st.sampled_from(["x.h", "a/x.h", "b/x.h", "x y.h", "lib/deep/y.h"])
plain_trees = st.dictionaries(plain_names, st.tuples(contents, st.just(False)), max_size=4)


@slowly
@given(before=plain_trees, after=plain_trees, zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
def test_a_diff_of_diff_says_what_patch_does(tmp_path: Path, before: Tree, after: Tree, zone: str) -> None:
    for side, tree in (("pkg.orig", before), ("pkg", after)):
        (tmp_path / side).mkdir(exist_ok=True)
        put(tmp_path / side, tree)
    command = ["diff", "-ruN", "pkg.orig", "pkg"]
    environment = {**ENVIRONMENT, "TZ": zone}
    diff = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).stdout
    if not diff:
        return  # diff -N tells an empty file from none by nothing
    made = applied(before, read(diff).changes)
    subprocess.run(
        ["patch", "-s", "-p1", "--binary"], cwd=tmp_path / "pkg.orig", input=diff, check=True, capture_output=True
    )
    theirs = {path: file for path, file in found(tmp_path / "pkg.orig").items() if not path.endswith(".orig")}
    assert {path: file for path, file in made.items() if file[0]} == {
        path: file for path, file in theirs.items() if file[0]
    }
    assert read(diff, strip=1) == read(diff)


ONE = "--- {0}\n+++ {1}\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("old", "new", "strip", "path"),
    [
        ("a/lib/x.h", "b/lib/x.h", None, "lib/x.h"),
        ("pkg-1.0.orig/x.h\t2026-01-02 03:04:05", "pkg-1.0/x.h\t2026-01-02 03:04:06", None, "x.h"),
        ("lib/x.h\t2026-01-02 03:04:05.123 +0100", "lib/x.h\t2026-01-02 03:04:05.124 +0100", None, "lib/x.h"),
        ("lib/x.h  2026-01-02 03:04:05.123 +0100", "lib/x.h  2026-01-02 03:04:05.124 +0100", None, "lib/x.h"),
        ("lib/x.h.orig", "lib/x.h", None, "lib/x.h"),
        ("lib/x.h\t(revision 1)", "lib/x.h\t(working copy)", None, "lib/x.h"),
        ("a/x.h", "b/x.h", 1, "x.h"),
        ("a/x.h", "a/x.h", 0, "a/x.h"),
        ("one/two/a/x.h", "one/two/b/x.h", 3, "x.h"),
        ('"a/d\\303\\251.h"', '"b/d\\303\\251.h"', None, "dé.h"),
    ],
)
def test_the_directories_to_take_off_are_found_or_told(old: str, new: str, strip: int | None, path: str) -> None:
    (change,) = read(f"Index: x.h\n{'=' * 67}\n{ONE.format(old, new)}".encode(), strip).changes
    assert (change.before, change.after) == (path, path)


def test_a_created_file_takes_them_from_the_others() -> None:
    new = "--- /dev/null\n+++ {0}new.h\n@@ -0,0 +1 @@\n+b\n"
    for prefixes in (("pkg.orig/", "pkg/"), ("", "")):
        other = ONE.format(f"{prefixes[0]}x.h", f"{prefixes[1]}x.h")
        created = read((new.format(prefixes[1]) + other).encode()).changes[0]
        assert (created.before, created.after) == (None, "new.h")
    with pytest.raises(LexError, match="-p0"):
        read(new.format("lib/").encode())


DEP3 = """\
Description: Count the scales
 The kernel reads one too few.
 .
 Second part.
Author: A B <a@example.org>
Origin: upstream, https://example.org/p/commit/0123456789abcdef
Bug: https://example.org/p/pull/9
---
This patch header follows DEP-3.
"""


def test_a_head_of_dep_3_is_read() -> None:
    (made,) = read((DEP3 + ONE.format("a/x.h", "b/x.h")).encode()).commits
    assert (made.subject, made.author) == ("Count the scales", "A B <a@example.org>")
    assert made.description == "The kernel reads one too few.\n\nSecond part."
    assert (made.link, made.pull_request, made.commit) == (
        "https://example.org/p/commit/0123456789abcdef",
        9,
        "0123456789abcdef",
    )


def test_a_commit_that_git_shows_is_read(repository: Path) -> None:
    commit(repository, {}, "first")
    made = commit(repository, {"x.h": (b"a\n", False)}, "[Bugfix] Count (#5)\n\nWhy.")
    (shown,) = read(git(repository, "show", "--stat", "--patch", made)).commits
    assert (shown.subject, shown.description, shown.commit) == ("[Bugfix] Count (#5)", "Why.", made)
    assert (shown.pull_request, shown.author) == (5, "Jörg A. Müller <j@example.org>")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_a_mail_that_was_encoded_for_the_way_is_read(encoding: str) -> None:
    import base64
    import quopri

    diff = ONE.format("a/x.h", "b/x.h").replace("+b", "+ü = b")
    body = f"Why.\n---\n x.h | 2 +-\n\n{diff}-- \n2.39\n".encode()
    data = base64.encodebytes(body) if encoding == "base64" else quopri.encodestring(body)
    head = (
        f"From: A <a@b>\nDate: Mon, 1 Jan 2026 00:00:00 +0000\nSubject: {Header('[PATCH] Zählen', 'utf-8').encode()}\n"
    )
    (made,) = read(f"{head}Content-Transfer-Encoding: {encoding}\n\n".encode() + data).commits
    assert (made.subject, made.description) == ("Zählen", "Why.")
    assert made.changes[0].hunks[0].after == ("ü = b\n",)


def test_a_message_may_have_rules_and_a_diff_of_its_own(repository: Path) -> None:
    commit(repository, {"x.h": (b"a\n", False)}, "before")
    message = f"What it changes:\n\n---\n\n```diff\n{GIT.format('y.h')}-->\n```\n"
    commit(repository, {"x.h": (b"b\n", False)}, f"After\n\n{message}")
    (made,) = read(git(repository, "format-patch", "--stdout", "-1")).commits
    assert [change.path for change in made.changes] == ["x.h"]
    assert made.description == message.strip()


def test_binary_parts_links_and_modes_are_named(repository: Path) -> None:
    old = commit(repository, {"x.bin": (b"\0\1\2" * 99, False), "y.h": (b"a\n", False)}, "before")
    put(repository, {"x.bin": (b"\0\1\3" * 99, False), "y.h": (b"a\n", True)})
    (repository / "link").symlink_to("y.h")
    git(repository, "add", "-A")
    for options in ([], ["--binary"]):
        link, binary, mode = read(git(repository, "diff", "--cached", *options, old)).changes
        assert "symbolic link" in link.refused
        assert binary.binary
        assert "binary" in binary.refused
        assert (mode.path, mode.mode_before, mode.mode_after, mode.refused) == ("y.h", "100644", "100755", "")
    plain = b"diff -ru a/x.bin b/x.bin\nBinary files a/x.bin and b/x.bin differ\n"
    assert read(plain).changes[0].refused.startswith("'x.bin': the change is binary")


GIT = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "n" * 256,
        "a/" + "ä" * 128,
        "a/../x",
        "/etc/x",
        "./x",
        "a//x",
        ".git/hooks/x",
        "sub/.GIT/config",
        ".git./x",
        ".git /x",
        ".git::$INDEX/x",
        "GIT~1/x",
        ".fp4patch/receipt.json",
        "a\\x",
        "a\x1b[31m",
        "a\u202ex",
        "a/" * 3000 + "x",
        "a/",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_by_name(path: str) -> None:
    assert refused_path(path)


@pytest.mark.parametrize("path", ["x", ".github/x", "a/.gitignore", "git/x", "dé/x y", "a.git/x", "..x"])
def test_other_paths_are_not_refused(path: str) -> None:
    assert not refused_path(path)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("120000", "symbolic link"), ("160000", "submodule"), ("020666", "mode 020666"), ("104755", "mode")],
)
def test_what_is_no_regular_file_is_refused_in_one_line(mode: str, kind: str) -> None:
    (change,) = read(GIT.format("x").replace("index 1..2 100644", f"index 1..2 {mode}").encode()).changes
    assert kind in change.refused
    assert "\n" not in change.refused


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "whole lines"),
        ("a\n", "unified diff"),
        ("*** a\n--- b\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n", "unified diff"),
        (GIT.format("x")[:-1], "whole lines"),
        (GIT.format("x").replace("-1 +1", "-1,2 +1"), "counts"),
        (GIT.format("x").replace("@@ -1 +1 @@", "@@ -99999999999 +1 @@"), "counts"),
        (GIT.format("x").replace("@@ -1 +1 @@", "@ -1 +1 @@"), "counts"),
        (ONE.format("a/x", "b/x").replace("@@ -1 +1 @@", "@ -1 +1 @@"), "a hunk"),
        (GIT.format("x") + "+c\n", "counts"),
        (GIT.format("x") + "\\ No newline at end of file\n" * 2, "counts"),
        (GIT.format("x").replace("-a\n", "-a\n\\ No newline at end of file\n-c\n").replace("-1 ", "-1,2 "), "counts"),
        (GIT.format("x") * 2, "occurs twice"),
        (GIT.format("x").replace("+++ b/x", "+++ b/setup.py"), r"setup\.py"),
        (GIT.format("x").replace("--- a/x", "--- /dev/null"), "new file mode"),
        (GIT.format("x").replace("index 1", "new file mode 100644\nindex 1"), "before the change or after"),
        (GIT.format("x").replace("index 1", "similar\nindex 1"), "git's own"),
        (GIT.format("x").replace("index 1", "rename from x\nindex 1"), "both names"),
        (GIT.format("x").replace("index 1", "index 1..3\nindex 1"), "once"),
        (GIT.format("x").replace("@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n a\n"), "changes a line"),
        ("diff --git x\n", "names of one file"),
        ("diff --cc x\nindex 1,2..3\n", "merge"),
        ("commit 1234567\n\n    a\n\ncommit 2345678\n\n    b\n\n" + GIT.format("x"), "one commit"),
        ("Only in b: new.h\ndiff -ru a/x b/x\n" + ONE.format("a/x", "b/x"), "diff -N"),
        (ONE.format("a/x", "b/x") + "Only in b: new.h\n", "diff -N"),
        (ONE.format("a/x", "b/y"), "same name|-p0"),
        (ONE.format('"a/x', "b/x"), "quotes"),
        (ONE.format('"a/\\9"', "b/x"), "quotes"),
        (GIT.format("x") + "-- \n2.39\n\n" + GIT.format("y"), "behind its signature"),
        ("From: a\nDate: b\nSubject: c\nContent-Type: multipart/mixed; boundary=x\n\n--x\n", "several parts"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 1\n?\n", "binary patch"),
        ("diff --git " + "a " * 9000 + "\n", "longer text"),
        ("\0\n", "whole lines"),
    ],
)  # fmt: skip
def test_a_damaged_text_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(LexError, match=reason) as refused:
        read(text.encode())
    assert refused.value.line
    assert "\n" not in str(refused.value)


def test_a_text_that_is_not_utf_8_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LexError, match="UTF-8"):
        read(GIT.format("x").replace("+b", "+\xe4").encode("latin-1"))
    monkeypatch.setattr("fp4patch.edits.patch_file.LARGEST", 10)
    with pytest.raises(LexError, match="at most"):
        read(GIT.format("x").encode())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_text_raises_anything_else(data: st.DataObject) -> None:
    """Lines of real forms in any order: a value, or a LexError."""
    pieces = GIT.format("x").splitlines() + ONE.format("a/y", "b/y").splitlines()
    pieces += [
        "From " + "1" * 40 + " Mon Sep 17 00:00:00 2001",
        "From: =?utf-8?q?=FF?= <",
        "Subject: =?x?b?_?=",
        "Date: x",
        "",
    ]
    pieces += [
        "---",
        "-- ",
        "\\ No newline at end of file",
        "@@ -0,0 +1,2 @@",
        "GIT binary patch",
        "literal 5",
        "rename from x",
    ]
    pieces += [
        "new file mode 100644",
        "deleted file mode 100644",
        "Binary files a/x and b/x differ",
        "commit 1234567",
        "Only in a: x",
    ]
    lines = data.draw(st.lists(st.sampled_from(pieces), max_size=30))
    text = "".join(f"{line}\n" for line in lines)
    with suppress(LexError):
        read(text.encode())
