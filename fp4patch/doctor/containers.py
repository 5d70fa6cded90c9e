"""Walks through wheels, folders, tars and container images, and gives each file as a stream: nothing is unpacked."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Self, cast

from fp4patch.errors import BinaryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fp4patch.doctor.window import Readable

_TEXTS = frozenset(
    (
        *(".py", ".pyi", ".pyc", ".h", ".hpp", ".cuh", ".cu", ".cpp", ".cc", ".c", ".inc", ".inl", ".cmake"),
        *(".json", ".yaml", ".yml", ".toml", ".txt", ".md", ".rst", ".jinja", ".j2"),
        *(".js", ".ts", ".html", ".css", ".svg", ".png"),
    )
)
"""Files that hold no machine code; looking into each would take longer than into those that do."""

_BOMB = 300
"""Bytes from one compressed byte: zeros give deflate's limit of 1032, the most repetitive library measured 20."""
_HEAD = 512
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_HARMLESS = 1 << 28  # bytes; below this, a file of zeros is no burden
_LONGEST_HEADER = 1 << 20
"""Bytes of a tar's extended header, which tarfile takes into memory: names and times of one file."""

_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)

_DAMAGES = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, MemoryError),
    *(ValueError, IndexError, NotImplementedError, RuntimeError),
)
"""What the readers of archives raise on damage: a name that is no UTF-8 or is empty, a length that nothing has."""


@dataclass(frozen=True)
class Member:
    """One file: where it is, how long it is, and what to read it from, once."""

    name: str
    size: int
    stream: Readable


def is_zip(head: bytes) -> bool:
    """By its first bytes."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def is_tar(head: bytes) -> bool:
    """By its first 512 bytes; compressed ones count."""
    return head[257:262] == b"ustar" or head[:2] == b"\x1f\x8b" or head[:4] == b"\x28\xb5\x2f\xfd"


def wheel(path: Path) -> Iterator[Member]:
    """The files of a wheel that may hold code; BinaryError for a damaged one, and for one made to exhaust memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or PurePosixPath(entry.filename).suffix in _TEXTS:
                    continue
                if entry.file_size > _HARMLESS and entry.file_size > _BOMB * max(1, entry.compress_size):
                    raise BinaryError(
                        f"{path.name}: {entry.filename} claims {entry.file_size} bytes,"
                        f" unpacked from {entry.compress_size}",
                        help="no library is as repetitive; the wheel is damaged, or made to do harm: do not use it",
                    )
                with archive.open(entry) as stream:
                    yield Member(entry.filename, entry.file_size, _Guarded(stream, path.name))
    except _DAMAGES as error:
        raise BinaryError(f"{path.name} is damaged, or no wheel: {error}", help="download it again") from error


def folder(path: Path) -> Iterator[tuple[Path, int]]:
    """The files below a folder that may hold code, with their sizes, each once; links that leave it are left alone."""
    seen = set()
    root = path.resolve()
    for place, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            file = Path(place, name)
            if file.suffix in _TEXTS or not file.is_file() or not file.resolve().is_relative_to(root):
                continue
            stat = file.stat()
            if (stat.st_dev, stat.st_ino) not in seen:
                seen.add((stat.st_dev, stat.st_ino))
                yield file, stat.st_size


def tar(stream: Readable, name: str) -> Iterator[Member]:
    """The regular files of a tar, compressed or not, as they come; BinaryError for a damaged one."""
    try:
        with tarfile.open(fileobj=_decompressed(Peeked(stream)), mode="r|", tarinfo=_Header) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield Member(member.name.removeprefix("./"), member.size, _Guarded(content, name))
    except _DAMAGES as error:
        raise BinaryError(f"{name} is damaged, or no tar: {error}", help="make it, or get it, again") from error


class _Header(tarfile.TarInfo):
    """A header of a tar; one that would have tarfile read without bounds is refused."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As tarfile's."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _EXTENDED and header.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


class _Guarded:
    """A member of an archive, which may turn out to be damaged when it is read."""

    def __init__(self, stream: IO[bytes], archive: str) -> None:
        self._stream, self._archive = stream, archive

    def read(self, size: int = -1, /) -> bytes:
        """As a file's; BinaryError where the archive is damaged."""
        try:
            return self._stream.read(size)
        except _DAMAGES as error:
            raise BinaryError(f"{self._archive} is damaged: {error}", help="get it again") from error


class Peeked:
    """A stream whose beginning was looked at, and is read again."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.head = b""
        while len(self.head) < _HEAD and (piece := stream.read(_HEAD - len(self.head))):
            self.head += piece
        self._unread = self.head

    def read(self, size: int = -1, /) -> bytes:
        """As a file's; the beginning comes first, perhaps alone."""
        if self._unread:
            given = self._unread if size < 0 else self._unread[:size]
            self._unread = self._unread[len(given) :]
            return given
        return self._stream.read(size)


def _decompressed(stream: Peeked) -> IO[bytes]:
    """What tarfile and gzip call of a file is its ``read`` alone."""
    plain = cast("IO[bytes]", stream)
    if stream.head[:2] == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=plain))
    if stream.head[:4] == b"\x28\xb5\x2f\xfd":
        return cast("IO[bytes]", _Zstandard(plain))
    return plain


class _Zstandard:
    """A stream that is compressed by zstd."""

    def __init__(self, stream: IO[bytes]) -> None:
        import zstandard  # noqa: PLC0415 - few images have such layers

        self._damage = zstandard.ZstdError
        self._stream = zstandard.ZstdDecompressor().stream_reader(stream)

    def read(self, size: int = -1, /) -> bytes:
        """As a file's; OSError where it is damaged."""
        try:
            return self._stream.read(size)
        except self._damage as error:
            raise OSError(str(error)) from error


def may_describe(name: str) -> bool:
    """Whether a member of an image's tar is one that ``layer_order`` may ask for."""
    return name in ("manifest.json", "index.json") or name.startswith("blobs/")


def layer_order(documents: dict[str, bytes]) -> list[str] | None:
    """The members of an image's tar that are its layers, the lowest first, by its JSON; None if it is no image."""
    try:
        if "manifest.json" in documents:  # docker save
            return [str(layer) for layer in json.loads(documents["manifest.json"])[0]["Layers"]]
        pending = [json.loads(documents["index.json"])] if "index.json" in documents else []
        while pending:  # an OCI layout: an index leads to manifests, perhaps by way of another
            document = pending.pop(0)
            if "layers" in document:
                return [_blob(layer) for layer in document["layers"]]
            pending += [json.loads(documents[_blob(m)]) for m in document["manifests"] if _blob(m) in documents]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise BinaryError(f"the image's manifest is damaged: {error!r}", help="save the image again") from error
    return None


def _blob(descriptor: dict[str, str]) -> str:
    return "blobs/" + descriptor["digest"].replace(":", "/")


def visible(layers: list[list[str]]) -> set[tuple[int, str]]:
    """Which file of which layer a container sees, given each layer's names: a later one replaces, or takes away.

    ``.wh.NAME`` takes away NAME, ``.wh..wh..opq`` all that lower layers have in its folder (OCI image layer).
    """
    seen: dict[str, int] = {}
    for number, names in enumerate(layers):
        for name in names:
            folder_of, _, base = name.rpartition("/")
            prefix = f"{folder_of}/" if folder_of else ""
            if base == _OPAQUE:
                seen = {n: i for n, i in seen.items() if i == number or not n.startswith(prefix)}
            elif base.startswith(_WHITEOUT):
                gone = prefix + base.removeprefix(_WHITEOUT)
                seen = {n: i for n, i in seen.items() if i == number or (n != gone and not n.startswith(f"{gone}/"))}
            else:
                seen[name] = number
    return {(number, name) for name, number in seen.items()}


@contextmanager
def save(reference: str) -> Iterator[IO[bytes]]:
    """An image as a tar, from the first engine on PATH; BinaryError if there is none, or it has no such image."""
    for engine in ("docker", "podman"):
        if program := shutil.which(engine):
            break
    else:
        raise BinaryError(
            f"there is no docker and no podman on PATH to read the image {reference} with",
            help="install one; or save the image where it is (docker save -o FILE.tar) and name the file",
        )
    command = [program, "save", *(["--format", "oci-archive"] if engine == "podman" else []), "--", reference]
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        assert running.stdout is not None
        try:
            head = running.stdout.peek(1)[:1]  # type: ignore[attr-defined]  # a BufferedReader
            if head:
                yield running.stdout
        finally:
            running.stdout.close()
            running.terminate()
            running.wait()
        if not head:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()
            raise BinaryError(
                f"{engine} does not give the image {reference}: {words[-1] if words else 'it said nothing'}",
                help=f"check its name with `{engine} images`, or pull it",
            )
