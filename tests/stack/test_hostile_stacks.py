"""Stacks as nobody should send them: one error and an untouched tree, or the right files and every byte back.

``plan`` and ``apply`` read a patch by different code, and must say the same of it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said, snapshot
from small_trees import small_tree

Command = Callable[..., Said]
Files = dict[str, str | bytes]
SETUP = "import os\n\nprint(os)\nx = 1\ny = 2\n"
HUNK = "@@ -3,2 +3,3 @@\n print(os)\n+# carried\n x = 1\n"
CARRIED = SETUP.replace("x = 1", "# carried\nx = 1")
OTHER_HUNK = "@@ -1 +1,2 @@\n int x;\n+int n;\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = small_tree("mlx", tmp_path / "mlx")
    (root / "setup.py").write_text(SETUP)
    (root / "a").mkdir()
    (root / "a/x.h").write_text("int x;\n")
    (root / "latin.h").write_bytes(b"// \xe4\nint x;\n")
    (root / "nul.h").write_bytes(b"// \0\nint x;\n")
    (root / "bom.h").write_bytes(b"\xef\xbb\xbf//\nint x;\n")
    (root / "dir").symlink_to("a")
    (root / "link.py").symlink_to("setup.py")
    (root / "dangling.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(root / "pipe.py")
    os.link(root / "setup.py", root / "other_name.py")
    return root


def edit(path: str = "setup.py", hunks: str = HUNK) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunks}"


def new(path: str, mode: str = "100644") -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n"
    return f"{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+one = 1\n"


def delete(path: str, text: str) -> str:
    lines = text.splitlines(keepends=True)
    rows = "".join(f"-{line}" for line in lines)
    head = f"diff --git a/{path} b/{path}\ndeleted file mode 100644\n"
    return f"{head}--- a/{path}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{rows}"


def move(old: str, path: str, hunks: str = "", word: str = "rename") -> str:
    head = (
        f"diff --git a/{old} b/{path}\nsimilarity index {90 if hunks else 100}%\n{word} from {old}\n{word} to {path}\n"
    )
    return f"{head}--- a/{old}\n+++ b/{path}\n{hunks}" if hunks else head


def mails(*diffs: str) -> str:
    return "".join(
        f"From {number:040x} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nDate: Mon, 1 Jan 2026 00:00:00 +0000\n"
        f"Subject: [PATCH] Part {number}\n\n---\n 1 file changed\n\n{diff}-- \n2.40\n\n"
        for number, diff in enumerate(diffs, 1)
    )


def quoted(name: str, mode: str = "100644") -> str:
    head = f'diff --git "a/{name}" "b/{name}"\nnew file mode {mode}\n'
    return f'{head}--- /dev/null\n+++ "b/{name}"\n@@ -0,0 +1 @@\n+one = 1\n'


CHMOD = "diff --git a/setup.py b/setup.py\nold mode 100644\nnew mode 100755\n"
APPLIED: dict[str, tuple[str, dict[str, str | None]]] = {
    "two files change their names": (
        move("setup.py", "a/x.h") + move("a/x.h", "setup.py"),
        {"setup.py": "int x;\n", "a/x.h": SETUP},
    ),
    "two files change their names and are edited": (
        move("setup.py", "a/x.h", HUNK) + move("a/x.h", "setup.py", OTHER_HUNK),
        {"setup.py": "int x;\nint n;\n", "a/x.h": CARRIED},
    ),
    "two files change their names, and one is edited by the next mail": (
        mails(move("setup.py", "a/x.h") + move("a/x.h", "setup.py"), edit("a/x.h")),
        {"setup.py": "int x;\n", "a/x.h": CARRIED},
    ),
    "a chain of names": (move("a/x.h", "setup.py") + move("setup.py", "s.py"), {"setup.py": "int x;\n", "s.py": SETUP}),
    "onto a name that goes": (
        delete("a/x.h", "int x;\n") + move("setup.py", "a/x.h"),
        {"setup.py": None, "a/x.h": SETUP},
    ),
    "a new file at a name that goes": (
        new("setup.py") + move("setup.py", "s.py"),
        {"setup.py": "one = 1\n", "s.py": SETUP},
    ),
    "a copy of a file that is edited": (
        edit() + move("setup.py", "s.py", "", "copy"),
        {"setup.py": CARRIED, "s.py": SETUP},
    ),
    "a copy that the next mail edits": (
        mails(move("setup.py", "s.py", "", "copy"), edit("s.py")),
        {"setup.py": SETUP, "s.py": CARRIED},
    ),
    "a copy of what the mail before edits": (
        mails(edit(), move("setup.py", "s.py", "", "copy")),
        {"setup.py": CARRIED, "s.py": CARRIED},
    ),
    "deleted, and made again by the next mail": (
        mails(delete("a/x.h", "int x;\n"), new("a/x.h")),
        {"a/x.h": "one = 1\n"},
    ),
    "deleted, and another one there by the next mail": (
        mails(delete("a/x.h", "int x;\n"), move("setup.py", "a/x.h")),
        {"a/x.h": SETUP, "setup.py": None},
    ),
    "an empty file that the next mail moves": (
        mails("diff --git a/e.py b/e.py\nnew file mode 100644\nindex 0000000..e69de29\n", move("e.py", "f.py")),
        {"f.py": "", "e.py": None},
    ),
    "moved away and back": (mails(move("setup.py", "s.py"), move("s.py", "setup.py"), edit()), {"setup.py": CARRIED}),
    "mode bits, and lines in the next mail": (mails(CHMOD, edit()), {"setup.py": CARRIED}),
    "a name with a quote": (quoted('n\\"m.py'), {'n"m.py': "one = 1\n"}),
    "a name like an option": (new("-rf.py"), {"-rf.py": "one = 1\n"}),
    "names without a prefix": (
        f"diff --git a/x.h a/x.h\n--- a/x.h\n+++ a/x.h\n{OTHER_HUNK}",
        {"a/x.h": "int x;\nint n;\n"},
    ),
    "signs that end a line elsewhere": (
        edit("setup.py", HUNK.replace("# carried", "# a\x0cb\x1cc\u2028d\x85e\rf")),
        {"setup.py": CARRIED.replace("# carried", "# a\x0cb\x1cc\u2028d\x85e\rf")},
    ),
    "a byte-order mark": (
        edit("bom.h", "@@ -2 +2,2 @@\n int x;\n+int n;\n"),
        {"bom.h": "\ufeff//\nint x;\nint n;\n"},
    ),
    "a file of two names": (edit("other_name.py"), {"other_name.py": CARRIED, "setup.py": SETUP}),
}


@pytest.mark.parametrize("name", APPLIED)
def test_the_files_are_those_of_git_and_every_byte_comes_back(
    fp4patch: Command, tree: Path, tmp_path: Path, name: str
) -> None:
    diff, files = APPLIED[name]
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.patch").write_bytes(diff.encode())
    before = snapshot(tree)
    planned = fp4patch("plan", "--json", tmp_path / "s", tree)
    assert [step["outcome"] for step in planned.document["steps"]] == ["applies"]
    applied = fp4patch("apply", "--with", tmp_path / "s", tree)
    assert applied.status == 0, applied.err
    for path, text in files.items():
        content = (tree / path).read_bytes().decode() if (tree / path).exists() else None
        written = content if content in (None, text) else content.rpartition("fp4patch stack: ")[0].rpartition("\n")[0]
        assert written in (text, (text or "").removesuffix("\n"))
    assert fp4patch("revert", tree).status == 0
    assert snapshot(tree) == before


REFUSED: dict[str, tuple[Files, str]] = {
    "a link": ({"a.patch": new("l.py", "120000")}, "a symbolic link"),
    "a file that becomes a link": (
        {"a.patch": mails(delete("setup.py", SETUP), new("setup.py", "120000"))},
        "symbolic",
    ),
    "a submodule": ({"a.patch": new("sub", "160000")}, "a submodule"),
    "mode bits of no source file": ({"a.patch": new("n.py", "100664")}, "mode 100664"),
    "two names onto one": ({"a.patch": move("setup.py", "n.py") + move("a/x.h", "n.py")}, "occurs twice"),
    "onto a name that stays": ({"a.patch": move("setup.py", "a/x.h")}, "expected no file"),
    "below its own name": ({"a.patch": move("setup.py", "setup.py/x.py")}, "expected a directory"),
    "half a rename": ({"a.patch": "diff --git a/setup.py b/s.py\nrename from setup.py\n"}, "both names"),
    "a rename to the same name": ({"a.patch": move("setup.py", "setup.py")}, "expected a change of the file"),
    "the head of a file alone": ({"a.patch": edit() + "diff --git a/a/x.h b/a/x.h\n"}, "expected a change of the file"),
    "a diff whose hunks are lost": (
        {"a.patch": "diff --git a/setup.py b/setup.py\nindex 1111111..2222222 100644\n"},
        "expected a hunk",
    ),
    "other names below": (
        {"a.patch": edit().replace("--- a/setup", "--- a/other").replace("+++ b/setup", "+++ b/other")},
        "names",
    ),
    "a name of two lines": ({"a.patch": quoted("n\\nm.py")}, "control characters"),
    "a name that is written from right to left": ({"a.patch": new("n\u202epy.h")}, "control characters"),
    "git's own directory by octal numbers": (
        {"a.patch": quoted("\\056git/hooks/pre-commit", "100755")},
        "it is in .git",
    ),
    "a way out by octal numbers": ({"a.patch": quoted("\\056\\056/evil.py")}, "not a file inside the tree"),
    "hunks that overlap": (
        {"a.patch": edit("setup.py", HUNK + "@@ -4,2 +5,3 @@\n x = 1\n+# more\n y = 2\n")},
        "hunk 2",
    ),
    "no context": ({"a.patch": edit("setup.py", "@@ -3,0 +4 @@\n+# carried\n")}, "hunk 1"),
    "UTF-16, as PowerShell redirects": ({"a.patch": edit().encode("utf-16")}, "expected UTF-8"),
    "a mail with other line ends": ({"a.patch": mails(edit()).replace("\n", "\r\n")}, "the same lines with LF"),
    "a file in Latin-1": ({"a.patch": edit("latin.h", "@@ -2 +2,2 @@\n int x;\n+int n;\n")}, "expected UTF-8 text"),
    "a file with a NUL": ({"a.patch": edit("nul.h", "@@ -2 +2,2 @@\n int x;\n+int n;\n")}, "a NUL byte"),
    "through a link": ({"a.patch": edit("dir/x.h", OTHER_HUNK)}, "one that leads through a link"),
    "a new file through a link": ({"a.patch": new("dir/n.py")}, "one that leads through a link"),
    "a link that is edited": ({"a.patch": edit("link.py")}, "no regular file"),
    "a link that is deleted": ({"a.patch": delete("link.py", SETUP)}, "no regular file"),
    "a new file at a link to nowhere": ({"a.patch": new("dangling.py")}, "no regular file"),
    "a pipe": ({"a.patch": edit("pipe.py")}, "no regular file"),
    "another project's": ({"a.patch": edit(), "stack.toml": 'target = "vllm"\n'}, "for none of these trees"),
    "after itself": ({"a.patch": edit(), "stack.toml": '[patches."a.patch"]\nafter = ["a.patch"]\n'}, "no circle"),
    "a table of no file": ({"a.patch": edit(), "stack.toml": '[patches."b.patch"]\nreason = "x"\n'}, "b.patch"),
    "an address that runs": (
        {"a.patch": edit(), "stack.toml": '[patches."a.patch"]\nlink = "javascript:alert(1)"\n'},
        "an address",
    ),
    "a patch to be taken back": ({"a.patch": edit(), "series": "a.patch -R\n"}, "-R"),
    "a series of nothing": ({"a.patch": edit(), "series": "# a.patch\n"}, "a patch file"),
    "two files of one name": ({"a.patch": edit(), "a.diff": edit("a/x.h", OTHER_HUNK)}, "no other patch"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_one_error_says_why_and_nothing_is_changed(fp4patch: Command, tree: Path, tmp_path: Path, name: str) -> None:
    files, said = REFUSED[name]
    (tmp_path / "s").mkdir()
    for file, content in files.items():
        (tmp_path / "s" / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = snapshot(tmp_path)
    refused = fp4patch("apply", "--with", tmp_path / "s", tree)
    assert refused.status in (1, 2)
    assert said in " ".join(refused.err.split())
    assert fp4patch("plan", tmp_path / "s", tree).status in (1, 2)
    assert snapshot(tmp_path) == before


def test_a_patch_that_the_one_before_has_done_has_nothing_to_do(fp4patch: Command, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.patch").write_text(mails(edit(), edit()))
    planned = fp4patch("plan", "--json", tmp_path / "s", tree).document["steps"]
    assert [step["outcome"] for step in planned] == ["applies", "nothing to do"]
    assert fp4patch("apply", "--with", tmp_path / "s", tree).status == 0


def test_a_copy_of_another_content_is_not_in_the_release(fp4patch: Command, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.patch").write_text(move("setup.py", "a/x.h", "", "copy"))
    planned = fp4patch("plan", "--json", tmp_path / "s", tree).document["steps"]
    assert [step["outcome"] for step in planned] == ["conflicts"]
    assert fp4patch("apply", "--with", tmp_path / "s", tree).status == 1
    (tree / "a/x.h").write_text(SETUP)
    planned = fp4patch("plan", "--json", tmp_path / "s", tree).document["steps"]
    assert [step["outcome"] for step in planned] == ["in the release"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_name_of_a_series_is_read_behind_a_byte_order_mark(
    fp4patch: Command, tree: Path, tmp_path: Path, mark: str
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a.patch").write_text(edit())
    (tmp_path / "s/series").write_bytes(f"{mark}a.patch\r\n".encode())
    assert fp4patch("apply", "--with", tmp_path / "s", tree).status == 0


def test_what_is_added_can_look_like_what_is_around_it(fp4patch: Command, tree: Path, tmp_path: Path) -> None:
    """The lines before the hunk are in the release that has it, too: at the end of what was added, and what follows."""
    before, after = ("".join(f"\nstruct {n} {{\n  int x;\n}};\n\n//\n" for n in names) for names in ("ac", "abc"))
    rows = [" };\n", " \n", " //\n"]
    below = [" \n", " struct c {\n", "   int x;\n"]
    added = [f"{line}\n" for line in ("+", "+struct b {", "+  int x;", "+};", "+", "+//")]
    (tmp_path / "s").mkdir()
    patch = tmp_path / "s/a.patch"
    ways = {
        "@@ -4,6 +4,12 @@\n" + "".join([*rows, *added, *below]): ((before, "applied"), (after, "upstreamed")),
        "@@ -4,12 +4,6 @@\n" + "".join([*rows, *added, *below]).replace("+", "-"): (
            (after, "applied"),
            (before, "upstreamed"),
        ),
    }
    outcomes = {"applied": ("applies",), "upstreamed": ("in the release", "nothing to do")}
    for hunks, trees in ways.items():
        patch.write_text(edit("structs.h", hunks))
        for text, state in trees:
            for moved in ("", "// moved\n" * 3):
                (tree / "structs.h").write_text(moved + text)
                (step,) = fp4patch("plan", "--json", tmp_path / "s", tree).document["steps"]
                assert step["outcome"] in outcomes[state]
                (patched,) = fp4patch("apply", "--with", tmp_path / "s", "--dry-run", "--json", tree).tree["patches"]
                assert patched["state"] == state
