"""Safe extraction of one directory from a wheel or a source archive: nothing outside, no links, no devices."""

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from fp4patch.core.errors import SourceError


def extract(archive: Path, subtree: str, to: Path) -> int:
    """Write the files below ``subtree`` of the archive into ``to`` and return their number.

    In a source archive the single leading directory (``vllm-0.16.0/``) is not part of a name. SourceError is raised for
    a name that would leave ``to``, for a damaged archive, and if there is no such directory.
    """
    count = 0
    with _readable(archive):
        for name, mode, content in _members(archive):
            if inside := _below(name, subtree, archive):
                path = to / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(content, path, executable=bool(mode & 0o100))
                count += 1
    if not count:
        raise SourceError(
            f"{archive.name} holds no directory {subtree!r}", help="the pin in target.toml is wrong; please report it"
        )
    return count


def read_files(archive: Path, subtree: str, names: Collection[str]) -> dict[str, bytes]:
    """Return the contents of some files below ``subtree`` of the archive, as far as it has them."""
    found: dict[str, bytes] = {}
    with _readable(archive):
        for name, _, content in _members(archive):
            inside = str(_below(name, subtree, archive))
            if inside in names:
                with content() as source:
                    found[inside] = source.read()
            if len(found) == len(names):
                break
    return found


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"{archive.name} is damaged: {error}", help=f"delete {archive} and fetch again") from error


def _write(content: Callable[[], IO[bytes]], path: Path, *, executable: bool) -> None:
    with content() as source, path.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    if executable:
        path.chmod(0o755)


def _members(archive: Path) -> Iterator[tuple[str, int, Callable[[], IO[bytes]]]]:
    """Yield name, mode bits and an opener of each regular file in the archive's order; no links and devices."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir():
                    yield entry.filename, entry.external_attr >> 16, partial(wheel.open, entry)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                # extractfile returns None for entries that are no files; they are left out here.
                if member.isfile() and (content := tar.extractfile(member)):
                    yield member.name.partition("/")[2], member.mode, partial(_same, content)


def _same(content: IO[bytes]) -> IO[bytes]:
    return content


def _below(name: str, subtree: str, archive: Path) -> PurePosixPath | None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise SourceError(
            f"{archive.name} holds {name!r}, which would be written outside the tree", help="do not use this archive"
        )
    if not subtree:
        return path
    return path.relative_to(subtree) if path.is_relative_to(subtree) else None
