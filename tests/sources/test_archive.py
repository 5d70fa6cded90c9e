"""Archives are unpacked into the directory and nowhere else."""

import io
import tarfile
from pathlib import Path

import pytest
from support import wheel

from fp4patch.core.errors import SourceError
from fp4patch.sources.archive import extract


def sdist(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_takes_one_folder_of_a_wheel(tmp_path: Path) -> None:
    archive = wheel(tmp_path / "a.whl", {"p/data/include/a.h": "A", "p/data2/b.h": "B", "p/__init__.py": ""})
    extract(archive, "p/data", tmp_path / "out")
    assert [str(f.relative_to(tmp_path / "out")) for f in (tmp_path / "out").rglob("*.h")] == ["include/a.h"]


def test_drops_the_leading_folder_of_a_source_archive_and_keeps_executables(tmp_path: Path) -> None:
    script = tarfile.TarInfo("vllm-1.0/tools/run.sh")
    script.mode = 0o755
    archive = sdist(
        tmp_path / "vllm-1.0.tar.gz", [(script, b"#!/bin/sh\n"), (tarfile.TarInfo("vllm-1.0/setup.py"), b"")]
    )
    extract(archive, "", tmp_path / "out")
    assert (tmp_path / "out/tools/run.sh").stat().st_mode & 0o111
    assert not (tmp_path / "out/setup.py").stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["../evil.h", "p/../../evil.h", "/evil.h"])
def test_a_name_that_would_leave_the_folder_does_not(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    extract(wheel(tmp_path / "a.whl", {name: "x", "p/a": ""}), "p", tmp_path / "in/out")
    archive = sdist(tmp_path / "a-1.tar.gz", [(tarfile.TarInfo(f"a-1/{name}"), b"x"), (tarfile.TarInfo("a-1/b"), b"")])
    extract(archive, "", tmp_path / "in/two")
    assert {path.name for path in tmp_path.iterdir()} == {"a.whl", "a-1.tar.gz", "in"}
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"out", "two"}


def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    link = tarfile.TarInfo("x-1/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = sdist(tmp_path / "x-1.tar.gz", [(link, b""), (tarfile.TarInfo("x-1/a"), b"1")])
    extract(archive, "", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]


def test_a_folder_that_is_not_in_the_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no directory 'q'"):
        extract(wheel(tmp_path / "a.whl", {"p/a": "x"}), "q", tmp_path / "out")


def test_a_damaged_archive_is_one_clear_error(tmp_path: Path) -> None:
    whole = wheel(tmp_path / "a.whl", {"p/a": "x" * 1000}).read_bytes()
    (tmp_path / "a.whl").write_bytes(whole[:-30])
    with pytest.raises(SourceError, match="is damaged"):
        extract(tmp_path / "a.whl", "p", tmp_path / "out")
