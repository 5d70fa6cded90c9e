"""Safe extraction of one directory from a wheel or a source archive: nothing outside, no links, no devices.

Python's own filter for this came with 3.11.4, and let links lead outside until 3.11.5. So only regular files are taken;
each is written here by its checked name, with the permissions that the filter leaves it, and no other metadata.
"""

import gzip
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from fp4patch.core.errors import SourceError


def extract(archive: Path, subtree: str, to: Path) -> None:
    """Write the files below ``subtree`` of the archive into ``to``, which must not exist.

    In a source archive the single leading directory (``vllm-0.16.0/``) is not part of a name. SourceError is raised for
    a damaged archive, and if there is no such directory.
    """
    with tempfile.TemporaryDirectory(dir=to.parent) as work:
        tree = Path(work, "tree")
        with _damage_named(archive):
            for name, mode, content in _files(archive, subtree):
                path = tree / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file)
                if mode is not None:
                    path.chmod(mode)
        if not tree.is_dir():
            advice = "the pin in target.toml is wrong; please report it"
            raise SourceError(f"{archive.name} holds no directory {subtree!r}", help=advice)
        tree.rename(to)


def read_files(archive: Path, subtree: str, names: Collection[str]) -> dict[str, bytes]:
    """Return the contents of some files below ``subtree`` of the archive, as far as it has them."""
    with _damage_named(archive):
        return {str(name): content.read() for name, _, content in _files(archive, subtree) if str(name) in names}


def _files(archive: Path, subtree: str) -> Iterator[tuple[PurePosixPath, int | None, IO[bytes]]]:
    """Yield each regular file below ``subtree``: its name there, its permissions (None: the default), its content."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir() and (name := _below(subtree, PurePosixPath(entry.filename))):
                    with wheel.open(entry) as content:
                        yield name, None, content
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            inside = not path.is_absolute() and ".." not in path.parts
            if member.isfile() and inside and (name := _below(subtree, PurePosixPath(*path.parts[1:]))):
                packed = tar.extractfile(member)
                assert packed  # of a regular file
                yield name, _permissions(member.mode), packed


def _below(subtree: str, path: PurePosixPath) -> PurePosixPath | None:
    """Return the path relative to ``subtree``, or None if it is not below it, or might lead outside."""
    inside = path.is_relative_to(subtree) and ".." not in path.parts and "\0" not in str(path)
    return path.relative_to(subtree) if inside and path != PurePosixPath(subtree) else None


def _permissions(mode: int) -> int:
    """Return what a file gets: its owner reads and writes, others may not write, and no bit is special.

    Nobody executes what the owner may not.
    """
    return mode & (0o755 if mode & 0o100 else 0o644) | 0o600


@contextmanager
def _damage_named(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise SourceError(f"{archive.name} is damaged: {error}", help=f"delete {archive} and fetch again") from error
