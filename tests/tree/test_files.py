from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fp4patch.core.errors import Refused
from fp4patch.tree.files import STATE_DIR, decode, read


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "cutlass"
    (root / "include").mkdir(parents=True)
    (root / "include" / "a.h").write_bytes(b"int a;\r\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.h").write_text("secret")
    return root


def refusal(tree: Path, rel: str) -> str:
    with pytest.raises(Refused) as refused:
        read(tree, rel)
    (problem,) = refused.value.problems
    assert problem.file == rel
    assert problem.help
    return problem.found


@pytest.mark.parametrize("rel", ["include/none.h", "none/none.h", "include/a.h/below-a-file"])
def test_a_missing_file_is_none(tree: Path, rel: str) -> None:
    assert read(tree, rel) is None


@pytest.mark.parametrize(
    "rel", ["../outside/a.h", "include/../../outside/a.h", "/etc/passwd", "include/..", "", ".", "a\0b", "\udcff.h"]
)
def test_refuses_a_path_that_leads_out_or_that_a_receipt_could_not_name(tree: Path, rel: str) -> None:
    assert refusal(tree, rel) == "another one"


@pytest.mark.parametrize("rel", [f"{STATE_DIR}/receipt.json", ".git/config", "include/.GIT/config"])
def test_refuses_a_path_into_its_own_state_and_gits(tree: Path, rel: str) -> None:
    assert "a path into" in refusal(tree, rel)


def test_refuses_links_to_files_and_folders_that_are_links_out(tree: Path) -> None:
    (tree / "b.h").symlink_to("include/a.h")
    (tree / "dangling.h").symlink_to("nowhere")
    (tree / "loop").symlink_to("loop")
    assert {refusal(tree, rel) for rel in ("b.h", "dangling.h", "loop")} == {"no regular file"}
    (tree / "lib").symlink_to("../outside")
    (tree / "sibling").symlink_to(f"{tree}-not-really")  # a common prefix is not containment
    Path(f"{tree}-not-really").mkdir()
    for rel in ("lib/a.h", "sibling/a.h"):
        assert "a symlink out of it" in refusal(tree, rel)


def test_follows_a_folder_that_is_a_symlink_within(tree: Path) -> None:
    (tree / "lib").symlink_to("include")
    assert read(tree, "lib/a.h") == b"int a;\r\n"


def test_refuses_what_is_no_regular_file_without_opening_it(tree: Path) -> None:
    os.mkfifo(tree / "fifo.h")  # opening it would wait for ever
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree / "s"))
        assert {refusal(tree, rel) for rel in ("fifo.h", "include", "s")} == {"no regular file"}


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbfint a;\r\nint b;\n\r", b"no newline", "\u2028\x0c\x85".encode()])
def test_text_survives_byte_for_byte(data: bytes) -> None:
    assert decode(data, "a.h").encode() == data


@pytest.mark.parametrize(
    ("data", "found", "line"),
    [
        (b"a\0b", "a NUL byte", None),
        (b"ok\n\xe9t\xe9", "byte 0xe9", 2),  # Latin-1
        (b"\xed\xa0\x80", "byte 0xed", 1),  # a surrogate
    ],
)
def test_refuses_what_is_not_text(data: bytes, found: str, line: int | None) -> None:
    with pytest.raises(Refused) as refused:
        decode(data, "a.h")
    (problem,) = refused.value.problems
    assert (problem.file, problem.found, problem.line) == ("a.h", found, line)
