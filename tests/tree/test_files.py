import os
import socket
from pathlib import Path

import pytest

from fp4patch.core.errors import Refused
from fp4patch.tree.files import STATE_DIR, decode, read


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with links, a FIFO and a socket in it, beside a directory outside of it."""
    root = tmp_path / "cutlass"
    for folder in (root / "include", tmp_path / "outside", tmp_path / "cutlass-not-really"):
        folder.mkdir(parents=True)
        (folder / "a.h").write_bytes(b"int a;\r\n")
    links = {"b.h": "include/a.h", "dangling.h": "nowhere", "loop": "loop", "within": "include", "out": "../outside"}
    for name, to in links.items():
        (root / name).symlink_to(to)
    (root / "sibling").symlink_to(f"{root}-not-really")  # a common prefix is not containment
    os.mkfifo(root / "fifo.h")  # opening it would wait for ever
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
    return root


@pytest.mark.parametrize("rel", ["include/none.h", "none/none.h", "include/a.h/below-a-file"])
def test_a_missing_file_is_none(tree: Path, rel: str) -> None:
    assert read(tree, rel) is None


def test_follows_a_folder_that_is_a_symlink_within(tree: Path) -> None:
    assert read(tree, "within/a.h") == b"int a;\r\n"


OUTSIDE = ("../outside/a.h", "include/../../outside/a.h", "/etc/passwd", "include/..", "", ".", "a\0b", "\udcff.h")
REFUSED = dict.fromkeys(OUTSIDE, "another one")  # or what a receipt could not name
REFUSED |= dict.fromkeys((f"{STATE_DIR}/receipt.json", ".git/config", "include/.GIT/config"), "a path into")
REFUSED |= dict.fromkeys(("b.h", "dangling.h", "loop", "fifo.h", "include", "s"), "no regular file")
REFUSED |= dict.fromkeys(("out/a.h", "sibling/a.h"), "a symlink out of it")


@pytest.mark.parametrize(("rel", "found"), REFUSED.items())
def test_refuses_what_is_no_file_of_the_tree_without_opening_it(tree: Path, rel: str, found: str) -> None:
    with pytest.raises(Refused) as refused:
        read(tree, rel)
    (problem,) = refused.value.problems
    assert problem.file == rel
    assert problem.help
    assert problem.found.startswith(found)


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
