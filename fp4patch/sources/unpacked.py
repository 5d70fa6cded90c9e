"""Archives of sources that people have: an sdist, a .zip of a repository; unpacked as untrusted input."""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from fp4patch.core.errors import UsageError

ARCHIVE = re.compile(r".*\.(?:tar(?:\.(?:gz|bz2|xz))?|tgz|zip)", re.IGNORECASE)
"""Names of archives that may hold sources."""
LARGEST = 1 << 31
"""Bytes of all files of an archive that is unpacked."""
_MOST = 200_000
"""Files of an archive that is unpacked."""
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, OSError)
_ENCRYPTED = 1


def is_of_sources(archive: Path, sources: tuple[str, ...], compiled: tuple[str, ...]) -> bool:
    """Return whether an archive has files of sources, by the ends of their names, and none that is compiled.

    One that is damaged has none.
    """
    found = False
    try:
        with _members(archive) as members:
            for name, _, _ in members:
                if name.name.endswith(compiled):
                    return False
                found |= name.name.endswith(sources)
    except UsageError as error:
        return found and "is damaged" not in error.message
    return found


def unpack(archive: Path, to: Path) -> Path:
    """Write the regular files of an archive into a directory; return it, or the only directory in it.

    A link, a device, or a name that leads outside is left out. UsageError: it is damaged or too large.
    """
    with _members(archive) as members:
        written = 0
        for name, opened, _ in members:
            path = to.joinpath(*name.parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    while piece := opened.read(1 << 20):
                        written += len(piece)
                        if written > LARGEST:
                            raise _too_large(archive)
                        file.write(piece)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue  # a file and a directory of one name: the first stays
    inner = list(to.iterdir())
    return inner[0] if len(inner) == 1 and inner[0].is_dir() else to


@contextmanager
def _members(archive: Path) -> Iterator[Iterator[tuple[PurePosixPath, IO[bytes], int]]]:
    """Yield the regular files with a safe name: name, content and size. UsageError: it is damaged or too large."""
    try:
        if archive.name.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as whole:
                yield _limited(archive, _of_zip(archive, whole))
        else:
            with tarfile.open(archive) as tar:
                yield _limited(archive, _of_tar(tar))
    except _DAMAGE as error:
        raise UsageError(f"{archive} is damaged: {error}", help="get it again") from error


def _limited(
    archive: Path, members: Iterator[tuple[PurePosixPath, IO[bytes], int]]
) -> Iterator[tuple[PurePosixPath, IO[bytes], int]]:
    total = 0
    for number, member in enumerate(members):
        total += member[2]
        if number >= _MOST or total > LARGEST:
            raise _too_large(archive)
        yield member


def _too_large(archive: Path) -> UsageError:
    limit = f"more than {_MOST:,} files or {LARGEST >> 30} GiB"
    return UsageError(f"{archive} unpacks to {limit}", help="unpack it yourself and name the directory")


def _of_zip(archive: Path, whole: zipfile.ZipFile) -> Iterator[tuple[PurePosixPath, IO[bytes], int]]:
    for entry in whole.infolist():
        kind = entry.external_attr >> 28  # the kind of a file as Unix has it: 8 is regular, 10 a link
        if entry.is_dir() or kind not in (0, 8) or not (name := _safe(entry.filename)):
            continue
        if entry.flag_bits & _ENCRYPTED:
            raise UsageError(f"{archive} is encrypted", help="unpack it yourself and name the directory")
        with whole.open(entry) as content:
            yield name, content, entry.file_size


def _of_tar(tar: tarfile.TarFile) -> Iterator[tuple[PurePosixPath, IO[bytes], int]]:
    for member in tar:
        content = tar.extractfile(member) if member.isreg() else None
        if content and (name := _safe(member.name)):
            yield name, content, member.size


def _safe(name: str) -> PurePosixPath | None:
    path = PurePosixPath(name)
    inside = path.parts and not path.is_absolute() and ".." not in path.parts and not re.search(r"[\0\\]", name)
    return path if inside else None
