"""Archives are unpacked into the directory and nowhere else."""

import io
import os
import tarfile
import tempfile
from contextlib import nullcontext
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import wheel

from fp4patch.core.errors import SourceError
from fp4patch.sources.archive import extract, read_files


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


def damaged(kind: str, path: Path) -> Path:
    """Return an archive with one file, of which the end or some bytes in the middle are not as they were."""
    noise = bytes(range(256)) * 100
    if "wheel" in kind:
        archive = wheel(path.with_suffix(".whl"), {"p/a": noise.decode("latin-1")})
    else:
        archive = sdist(path.with_suffix(".tar.gz"), [(tarfile.TarInfo("v-1/p/a"), noise)])
    whole = archive.read_bytes()
    middle = len(whole) // 2
    archive.write_bytes(whole[:-30] if "cut" in kind else whole[:middle] + b"\0damage\0" + whole[middle + 8 :])
    return archive


@pytest.mark.parametrize("kind", ["wheel, cut", "wheel, changed", "sdist, cut"])
def test_a_damaged_archive_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    archive = damaged(kind, tmp_path / "a")
    with pytest.raises(SourceError, match="is damaged"):
        extract(archive, "p", tmp_path / "out")
    with pytest.raises(SourceError, match="is damaged"):
        read_files(archive, "p", {"a"})
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


KINDS = [
    tarfile.REGTYPE,
    tarfile.AREGTYPE,
    tarfile.CONTTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
]


@st.composite
def members(draw: st.DrawFn) -> tarfile.TarInfo:
    """One member, of any kind. Files have other names than directories, so that each fits beside each."""
    kind = draw(st.sampled_from(KINDS))
    where = draw(st.lists(st.sampled_from(["v-1", "p", "..", ".", ""]), max_size=3))
    first = draw(st.sampled_from(["v-1/", "v-1/", "v-1/", "./v-1/", "", "/", "//", "../"]))
    last = draw(st.sampled_from(["dir", "dir/.."] if kind == tarfile.DIRTYPE else ["f", "g", "..", "f\0ü"]))
    member = tarfile.TarInfo(first + "/".join([*where, last]))
    member.type = kind
    member.mode = draw(st.integers(0, 0o7777))
    member.uid = member.gid = draw(st.sampled_from([0, 1234]))
    member.linkname = draw(st.sampled_from(["f", "../f", "../../../f", "/etc/passwd", "v-1/f"]))
    return member


def listing(tree: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return content, mode and owner of each file of a tree; there is nothing but files and directories."""
    paths = [path for path in tree.rglob("*") if path.is_symlink() or not path.is_dir()]
    assert not [path for path in paths if path.is_symlink() or not path.is_file()]
    return {
        str(path.relative_to(tree)): (path.read_bytes(), path.stat().st_mode & 0o7777, path.stat().st_uid)
        for path in paths
    }


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="Python's own filter came with 3.11.4")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(members(), max_size=8))
def test_what_is_written_is_what_pythons_own_filter_lets_through(made: list[tarfile.TarInfo]) -> None:
    """Of the regular files below the leading directory, with the same bytes, modes and owner; all else is left out."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        archive = sdist(work / "v-1.tar.gz", [(member, str(at).encode()) for at, member in enumerate(made)])

        def taken(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
            parts = PurePosixPath(member.name).parts
            if member.name.startswith("/") or {"..", "f\0ü"} & {*parts} or len(parts) < 2 or not member.isfile():
                return None  # the filter strips the slash, and goes up where that stays inside
            return tarfile.data_filter(member, path).replace(name="/".join(parts[1:]), deep=False)

        (work / "theirs").mkdir()
        with tarfile.open(archive) as tar:
            tar.extractall(work / "theirs", filter=taken)
        theirs = listing(work / "theirs")
        with nullcontext() if theirs else pytest.raises(SourceError, match="holds no directory"):
            extract(archive, "", work / "ours")
        ours = listing(work / "ours") if (work / "ours").exists() else {}
        assert ours == theirs
        assert {path.name for path in work.iterdir()} <= {"v-1.tar.gz", "theirs", "ours"}
        assert {owner for _, _, owner in ours.values()} <= {os.getuid()}
        assert read_files(archive, "", theirs) == {name: content for name, (content, _, _) in theirs.items()}
