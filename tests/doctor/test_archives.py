"""Archives of sources are looked at as trees; nothing of a hostile one comes outside of its directory."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4patch import cli
from fp4patch.core.errors import UsageError
from fp4patch.sources import unpacked

KERNEL = b'asm("cvt.rn.satfinite.e2m1x2.f32 b, x, y;");\n'
SETUP = b'from torch.utils import cpp_extension\nflags = ["-gencode=arch=compute_121a,code=sm_121a"]\n'


def packed(file: Path, *members: tuple[str, bytes | str, bytes]) -> Path:
    """Make an archive of members: name, content or the target of a link, and the type of a tar's member."""
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as made:
            for name, content, _ in members:
                made.writestr(name, content)
        return file
    with tarfile.open(file, "w:gz") as tar:
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(content) if isinstance(content, bytes) else 0
            info.linkname = "" if isinstance(content, bytes) else content
            tar.addfile(info, io.BytesIO(content if isinstance(content, bytes) else b""))
    return file


@pytest.mark.parametrize("name", ["mine-1.0.tar.gz", "mine.zip"])
def test_a_project_in_an_archive_is_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    regular = tarfile.REGTYPE
    file = packed(tmp_path / name, ("mine-1.0/csrc/a.cu", KERNEL, regular), ("mine-1.0/setup.py", SETUP, regular))
    assert cli.run(["doctor", "--for", "gb10", "--cuda", "13.0", str(file)]) == 0
    out = capsys.readouterr().out
    assert "! sm_121  yes, with a reservation" in out
    assert "mine-1.0  2 files read" in out
    assert "fp4patch-" not in out


def test_a_known_tree_in_an_archive_is_recognised(
    pristine_tree: Callable[[str, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cutlass-4.8.0.zip"
    root = pristine_tree("cutlass", "4.8.0")
    with zipfile.ZipFile(file, "w") as made:
        for path in root.rglob("*"):
            if path.is_file():
                made.write(path, f"cutlass-4.8.0/{path.relative_to(root)}")
    cli.run(["doctor", "--cuda", "13.0", str(file)])
    assert "NVIDIA CUTLASS 4.8.0  cutlass-4.8.0" in capsys.readouterr().out


def test_nothing_is_written_outside_and_no_link_or_device_is_made(tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    file = packed(
        tmp_path / "a.tar.gz",
        ("../out.cu", KERNEL, tarfile.REGTYPE),
        ("/tmp/out.cu", KERNEL, tarfile.REGTYPE),
        ("a/link", "../../..", tarfile.SYMTYPE),
        ("a/link/out.cu", KERNEL, tarfile.REGTYPE),
        ("a/hard", "/etc/passwd", tarfile.LNKTYPE),
        ("a/device", b"", tarfile.CHRTYPE),
        ("a/pipe", b"", tarfile.FIFOTYPE),
        ("a/same", b"1", tarfile.REGTYPE),
        ("a/same/below.cu", b"2", tarfile.REGTYPE),
        ("a/own.cu", KERNEL, tarfile.REGTYPE),
    )
    assert unpacked.is_of_sources(file, (".cu",), (".so",))
    root = unpacked.unpack(file, to)
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*")) == [
        "link",
        "link/out.cu",
        "own.cu",
        "same",
    ]
    assert not any(path.is_symlink() for path in root.rglob("*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "to"]


def test_an_archive_that_is_too_large_or_damaged_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = packed(tmp_path / "a.tar.gz", ("a/a.cu", b"\0" * 5000, tarfile.REGTYPE))
    monkeypatch.setattr(unpacked, "LARGEST", 4000)
    with pytest.raises(UsageError, match="unpacks to more than"):
        unpacked.unpack(file, tmp_path)
    monkeypatch.undo()
    (tmp_path / "b.tar.gz").write_bytes(file.read_bytes()[:60])
    with pytest.raises(UsageError, match="is damaged"):
        unpacked.unpack(tmp_path / "b.tar.gz", tmp_path)
    for content in (b"", b"\0" * 1000, file.read_bytes()[:60]):
        (tmp_path / "b.tar.gz").write_bytes(content)
        assert cli.run(["doctor", str(tmp_path / "b.tar.gz")]) in (1, 2)
        assert capsys.readouterr().err.startswith("error: ")


def test_an_archive_of_compiled_code_is_none_of_sources(tmp_path: Path) -> None:
    file = packed(tmp_path / "a.zip", ("a/a.cu", KERNEL, b""), ("a/a.so", b"1", b""))
    assert not unpacked.is_of_sources(file, (".cu",), (".so",))
