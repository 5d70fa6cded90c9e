"""A stack as a directory: its order, its hashes, and every mistake of it with the file."""

import hashlib
import re
import shutil
from pathlib import Path

import pytest
from outside import outside

from fp4patch.catalog.manifest import load
from fp4patch.core.errors import ManifestError, UsageError
from fp4patch.stack.read import Stack, read_stack

TARGETS = load().targets
GIT = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
PLAIN = (
    "Description: Plain\nOrigin: https://example.org/p/pull/3\n---\n"
    "--- {0}\t2026-01-01\n+++ {0}\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n"
)
MAIL = (
    "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n"
    "From: A <a@b>\nDate: x\nSubject: [PATCH] {1}\n\nWhy.\n---\n\n{0}-- \n2\n\n"
)


def stack_of(folder: Path, **files: str) -> Stack:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_stack(folder, TARGETS)


def problems(folder: Path, **files: str) -> str:
    with pytest.raises(ManifestError) as refused:
        stack_of(folder, **files)
    found = refused.value.problems
    assert all(problem.file for problem in found)
    return "; ".join(f"{p.file} {p.nearest}: expected {p.expected}, found {p.found}" for p in found)


def test_the_names_are_the_order_and_each_commit_of_a_mailbox_is_a_patch(tmp_path: Path) -> None:
    mails = MAIL.format(GIT.format("x.h"), "First (#4)") + MAIL.format(GIT.format("x.h"), "Second")
    files = {"0002-b.patch": GIT.format("y.h"), "0001 a.mbox": mails, "README.md": "no patch\n"}
    stack = stack_of(tmp_path / "s", **files)
    assert [(patch.name, patch.file) for patch in stack.patches] == [
        ("0001-a-1", "0001 a.mbox"),
        ("0001-a-2", "0001 a.mbox"),
        ("0002-b", "0002-b.patch"),
    ]
    assert [patch.commit.subject for patch in stack.patches] == ["First (#4)", "Second", ""]
    assert stack.patches[2].sha256 == hashlib.sha256(files["0002-b.patch"].encode()).hexdigest()
    assert next((p.id, p.title, p.file) for p in stack.outside) == ("/0001-a-1", "First (#4)", "0001-a-1.patch")
    again = stack_of(tmp_path / "s", **files, more="x")
    assert again.sha256 == stack.sha256
    (tmp_path / "s/0002-b.patch").write_text(GIT.format("z.h"))
    assert read_stack(tmp_path / "s", TARGETS).sha256 != stack.sha256


def test_a_series_is_the_order_and_says_what_to_take_off(tmp_path: Path) -> None:
    files = {"a.patch": PLAIN.format("lib/x.h"), "b.patch": GIT.format("x.h"), "c.patch": "no patch"}
    stack = stack_of(tmp_path / "s", **files, series="# of Debian\nb.patch -p1\n\na.patch -p0 # last\n")
    assert [patch.name for patch in stack.patches] == ["b", "a"]
    assert [patch.commit.changes[0].path for patch in stack.patches] == ["x.h", "lib/x.h"]
    assert stack.patches[1].link == "https://example.org/p/pull/3"


def test_a_directory_with_patch_toml_is_a_patch(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    outside(folder / "pr-7", "mlx", GIT.format("x.h"))
    (folder / "a.patch").write_text(GIT.format("y.h"))
    stack = read_stack(folder, TARGETS)
    assert [(patch.name, patch.commit.subject) for patch in stack.patches] == [("a", ""), ("pr-7", "a change")]


def test_the_table_says_what_the_files_do_not(tmp_path: Path) -> None:
    text = GIT.format("x.h")
    table = f"""
        target = "mlx"
        base = "0.1.0"
        [patches."a.patch"]
        sha256 = "{hashlib.sha256(text.encode()).hexdigest()}"
        after = ["b.patch"]
        base = "0.2.0"
        link = "https://example.org/a"
        reason = "It is faster."
        drop_when = "0.3 is out"
        tests = ["python/tests/test_x.py"]
    """
    stack = stack_of(tmp_path / "s", **{"a.patch": text, "b.patch": text, "stack.toml": table})
    assert [(p.name, p.notes.base) for p in stack.patches] == [("b", "0.1.0"), ("a", "0.2.0")]
    patch = stack.outside[1]
    assert (patch.id, patch.link, patch.reason, patch.retire) == (
        "mlx/a",
        "https://example.org/a",
        "It is faster.",
        "0.3 is out",
    )


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "a patch file"),
        ({"a.patch": "text\n"}, "a.patch.*unified diff"),
        ({"a.patch": GIT.format("../x")}, "a.patch.*inside the tree"),
        ({"a.patch": GIT.format(".git/config")}, "a.patch.*in .git"),
        ({"a.patch": "diff --git a/x b/x\nBinary files a/x and b/x differ\n"}, "a.patch.*binary"),
        ({"a.patch": GIT.format("x"), "a.diff": GIT.format("x")}, "no other patch"),
        ({"a.patch": GIT.format("x"), "series": "b.patch\n"}, "b.patch.*none"),
        ({"a.patch": GIT.format("x"), "series": "../a.patch\n"}, "series.*each file of the stack once"),
        ({"a.patch": GIT.format("x"), "series": "a.patch\na.patch\n"}, "series.*each file of the stack once"),
        ({"a.patch": GIT.format("x"), "series": "a.patch -R\n"}, "series.*-p0"),
        ({"a.patch": GIT.format("x"), "stack.toml": "target = 1"}, "stack.toml"),
        ({"a.patch": GIT.format("x"), "stack.toml": "target = 'x'"}, "one of"),
        ({"a.patch": GIT.format("x"), "stack.toml": "['patches.b']"}, "no key"),
        ({"a.patch": GIT.format("x"), "stack.toml": "[patches.b]"}, "b: expected a patch file of this stack"),
        (
            {"a.patch": GIT.format("x"), "stack.toml": f"[patches.'a.patch']\nsha256 = '{'0' * 64}'"},
            "sha256: expected that of the file",
        ),
        ({"a.patch": GIT.format("x"), "stack.toml": "[patches.'a.patch']\nafter = ['a.patch']"}, "after.*circle"),
        ({"a.patch": GIT.format("x"), "stack.toml": "[patches.'a.patch']\nlink = 'ftp://x'"}, "an address"),
        (
            {
                "a.patch": GIT.format("x"),
                "b.patch": GIT.format("x"),
                "series": "a.patch\nb.patch\n",
                "stack.toml": "[patches.'a.patch']\nafter = ['b.patch']",
            },
            "in `series` too",
        ),
    ],
)
def test_each_mistake_is_named_with_its_file(tmp_path: Path, files: dict[str, str], said: str) -> None:
    assert re.search(said, problems(tmp_path / "s", **files))


def test_all_mistakes_are_reported_and_no_file_outside_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.patch").write_text(GIT.format("x"))
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "a.patch").symlink_to(tmp_path / "secret.patch")
    (folder / "b.patch").write_text("no\n")
    with pytest.raises(ManifestError) as refused:
        read_stack(folder, TARGETS)
    assert ["link out" in p.found or "unified" in p.found for p in refused.value.problems] == [True, True]
    with pytest.raises(UsageError, match="no directory"):
        read_stack(tmp_path / "none", TARGETS)
