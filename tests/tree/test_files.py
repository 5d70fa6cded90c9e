from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fp4patch.core.errors import Refused
from fp4patch.tree.files import STATE_DIR, Tree, decode, encode


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "cutlass"
    (root / "include").mkdir(parents=True)
    (root / "include" / "a.h").write_bytes(b"int a;\r\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.h").write_text("secret")
    return Tree.at(root)


def refusal(tree: Tree, rel: str) -> str:
    with pytest.raises(Refused) as refused:
        tree.read(rel)
    (problem,) = refused.value.problems
    assert problem.file == rel
    assert problem.help
    return problem.found


def test_reads_bytes_and_mode_of_a_regular_file(tree: Tree) -> None:
    (tree.root / "include/a.h").chmod(0o751)
    file = tree.read("include/a.h")
    assert file is not None
    assert (file.path, file.data, file.mode) == ("include/a.h", b"int a;\r\n", 0o751)


@pytest.mark.parametrize("rel", ["include/none.h", "none/none.h", "include/a.h/below-a-file"])
def test_a_missing_file_is_none(tree: Tree, rel: str) -> None:
    assert tree.read(rel) is None


@pytest.mark.parametrize(
    "rel", ["../outside/a.h", "include/../../outside/a.h", "/etc/passwd", "include/..", "", ".", "a\0b"]
)
def test_refuses_a_path_that_leads_out(tree: Tree, rel: str) -> None:
    assert refusal(tree, rel) == "a path that leads out of it"


def test_refuses_a_path_into_its_own_state(tree: Tree) -> None:
    assert STATE_DIR in refusal(tree, f"{STATE_DIR}/receipt.json")


def test_refuses_a_name_that_a_receipt_could_not_have(tree: Tree) -> None:
    (tree.root / "include/\udcff.h").touch()
    assert refusal(tree, "include/\udcff.h") == "another one"


def test_refuses_a_symlink_even_to_a_file_of_the_tree(tree: Tree) -> None:
    (tree.root / "b.h").symlink_to("include/a.h")
    (tree.root / "dangling.h").symlink_to("nowhere")
    assert refusal(tree, "b.h") == refusal(tree, "dangling.h") == "a symlink"


def test_refuses_a_folder_that_is_a_symlink_out(tree: Tree) -> None:
    (tree.root / "lib").symlink_to("../outside")
    assert "a symlink out of it" in refusal(tree, "lib/a.h")
    (tree.root / "sibling").symlink_to(f"{tree.root}-not-really")  # a common prefix is not containment
    Path(f"{tree.root}-not-really").mkdir()
    assert "a symlink out of it" in refusal(tree, "sibling/a.h")


def test_follows_a_folder_that_is_a_symlink_within(tree: Tree) -> None:
    (tree.root / "lib").symlink_to("include")
    file = tree.read("lib/a.h")
    assert file is not None
    assert file.data == b"int a;\r\n"


def test_refuses_a_loop_of_symlinks(tree: Tree) -> None:
    (tree.root / "loop").symlink_to("loop")
    assert refusal(tree, "loop/a.h")


def test_refuses_what_is_no_regular_file_without_opening_it(tree: Tree) -> None:
    os.mkfifo(tree.root / "fifo.h")  # opening it would wait for ever
    assert refusal(tree, "fifo.h") == "a named pipe"
    assert refusal(tree, "include") == "a directory"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree.root / "s"))
        assert refusal(tree, "s") == "a socket"


def test_refuses_a_root_that_is_no_folder(tree: Tree) -> None:
    with pytest.raises(Refused, match="is not a directory"):
        Tree.at(tree.root / "include/a.h")
    with pytest.raises(Refused, match="is not a directory"):
        Tree.at(tree.root / "none")


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbfint a;\r\nint b;\n\r", b"no newline", "\u2028\x0c\x85".encode()])
def test_text_survives_byte_for_byte(data: bytes) -> None:
    assert encode(decode(data, "a.h")) == data


@pytest.mark.parametrize(
    ("data", "found", "line"),
    [
        (b"a\0b", "a NUL byte at offset 1", None),
        (b"\xff\xfea\0", "a NUL byte at offset 3", None),  # UTF-16
        (b"ok\n\xe9t\xe9", "byte 0xe9 at offset 3", 2),  # Latin-1
        (b"\xed\xa0\x80", "byte 0xed at offset 0", 1),  # a surrogate
    ],
)
def test_refuses_what_is_not_text(data: bytes, found: str, line: int | None) -> None:
    with pytest.raises(Refused) as refused:
        decode(data, "a.h")
    (problem,) = refused.value.problems
    assert (problem.file, problem.found, problem.line) == ("a.h", found, line)
