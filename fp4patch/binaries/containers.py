"""Walks through wheels, directories, tars and container images, and gives each file as a stream.

Nothing is unpacked, except archives inside archives that can only be read with random access: a temporary file.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import posixpath
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self, cast

import zstandard

from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.errors import BinaryError, UsageError

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
_MOST_SPOOLED = 1 << 32  # bytes of an archive inside an archive
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
    *(ValueError, IndexError, NotImplementedError, RuntimeError, zstandard.ZstdError),
)
"""Exceptions of the archive readers for damage, such as a name that is no UTF-8 or is empty, or an impossible
length."""


@dataclass(frozen=True)
class Member:
    """One file: where it is, how long it is, and what to read it from, once."""

    name: str
    size: int
    stream: Readable
    link: str = ""
    """File that a hard link names; it has the content."""
    regular: bool = True


@dataclass(frozen=True, kw_only=True)
class IndexedLayer(Member):
    """A layer of an image whose files are read one by one; nothing is read from its own stream."""

    members: Iterator[Member]


@dataclass(frozen=True)
class Image:
    """One image of an archive: what to call it, its platform, and its layers."""

    name: str
    platform: str
    """``linux/arm64``; empty where it is not stated."""
    layers: tuple[str, ...]
    """Names of the archive's members, the lowest layer first."""


def kind(head: bytes) -> str:
    """Return what begins with these 512 bytes: ``zip``, ``tar``, ``compressed``, ``code``, or nothing."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    if head.startswith(tuple(_COMPRESSED)):
        return "compressed"
    # ELF, a fatbin, an archive of objects, a Windows library.
    return "code" if head.startswith((b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>\n", b"MZ")) else ""


def check_kind(name: str, head: bytes) -> None:
    """Raise BinaryError for a library without contents, and for a cubin or fatbin that is none, by its first bytes.

    A container leaves the mount points of the driver's libraries behind, which are empty.
    """
    base = PurePosixPath(name).name
    lost = not head.strip(b"\0") or head.startswith(b"version https://git-lfs")
    device = base.endswith((".cubin", ".fatbin")) and not kind(head)
    if device or (lost and re.search(r"\.so(\.\d+)*$", base) and not re.match(r"lib(cuda|nv|\w*nvidia)", base)):
        raise BinaryError(f"{name} has no contents of its kind", help="get it again")


def may_hold_code(name: str) -> bool:
    """Return whether a file can hold device code, by the suffix of its name."""
    return PurePosixPath(name).suffix not in _TEXTS


def zipped(file: Path | IO[bytes], name: str) -> Iterator[Member]:
    """Yield the files of a wheel or another zip that may hold code. Raises BinaryError for a damaged one.

    A member that is damaged, or made to exhaust memory, raises BinaryError when it is read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or not may_hold_code(entry.filename):
                    continue
                with _opened(archive, entry, name) as stream:
                    yield Member(entry.filename, entry.file_size, stream)
    except _DAMAGES as error:
        raise BinaryError(f"{name} is damaged, or is not a wheel: {error}", help="download it again") from error


@contextmanager
def _opened(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Iterator[Readable]:
    if entry.file_size > _HARMLESS and entry.file_size > _BOMB * max(1, entry.compress_size):
        yield _Refused(
            f"{name}: {entry.filename} claims {entry.file_size} bytes, unpacked from {entry.compress_size}",
            "no library compresses that well: the wheel is damaged, or was made to exhaust memory; do not use it",
        )
        return
    try:
        stream = archive.open(entry)
    except _DAMAGES as error:
        yield _Refused(f"{name} is damaged: {error}", "get it again")
        return
    with stream:
        yield _Guarded(stream, name)


class _Refused:
    """A member that is not read: the attempt raises BinaryError."""

    def __init__(self, message: str, help: str) -> None:  # noqa: A002 - as BinaryError's
        self._message, self._help = message, help

    def read(self, _size: int = -1, /) -> bytes:
        """Raise BinaryError."""
        raise BinaryError(self._message, help=self._help)


@contextmanager
def spooled(stream: Readable, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """Copy a stream into a temporary file, for readers that need its size or random access; BinaryError for a bomb."""
    with tempfile.SpooledTemporaryFile(max_size=1 << 26) as file:
        size = 0
        while piece := stream.read(1 << 20):
            size += len(piece)
            if size > _MOST_SPOOLED:
                raise BinaryError(f"{name} has more than {_MOST_SPOOLED} bytes", help="unpack it, and name the result")
            file.write(piece)
        file.seek(0)
        yield file, size


def folder(path: Path, *, texts: bool = False) -> Iterator[tuple[Path, int]]:
    """Yield the files below a directory that may hold code, with their sizes, each once.

    Links that leave it are left alone; so are files with the names of texts, unless ``texts`` is set.
    """
    seen = set()
    root = path.resolve()
    for place, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            file = Path(place, name)
            if (file.suffix in _TEXTS and not texts) or not file.is_file():
                continue
            if file.is_symlink() and not file.resolve().is_relative_to(root):
                continue
            stat = file.stat()
            if (stat.st_dev, stat.st_ino) not in seen:
                seen.add((stat.st_dev, stat.st_ino))
                yield file, stat.st_size


def tar(stream: Readable, name: str) -> Iterator[Member]:
    """Yield the files of a tar as they come. Raises BinaryError for a damaged one.

    All that is not a regular file is empty, and the name of a directory ends with a slash. A name is the one below the
    directory that the tar is unpacked to.
    """
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|", tarinfo=_Header) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                place = _place(member.name) + "/" * member.isdir()
                if content is not None:
                    yield Member(place, member.size, _Guarded(content, name))
                else:
                    link = _place(member.linkname) if member.islnk() else ""
                    yield Member(place, 0, io.BytesIO(), link, regular=False)
    except _DAMAGES as error:
        raise BinaryError(f"{name} is damaged, or is not a tar: {error}", help="create or download it again") from error


def _place(name: str) -> str:
    return posixpath.normpath(f"/{name}").lstrip("/")


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


@contextmanager
def opened(member: Member) -> Iterator[tuple[str, Member]]:
    """Yield a member's kind, and the member to read it from; of a compressed one, what is inside."""
    stream = Peeked(member.stream)
    found = kind(stream.head)
    if member.regular and not PurePosixPath(member.name).name.startswith(_WHITEOUT):
        check_kind(member.name, stream.head)
    if found == "compressed":
        reader = next(reader for magic, reader in _COMPRESSED.items() if stream.head.startswith(magic))
        stream = Peeked(_Guarded(reader(cast("IO[bytes]", stream)), member.name))
        found = kind(stream.head)
        if found in ("code", "zip"):  # whose size must be known
            with spooled(stream, member.name) as (file, size):
                yield found, Member(member.name, size, Peeked(file))
            return
    yield found, replace(member, stream=stream)


_COMPRESSED: Mapping[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda plain: cast("IO[bytes]", gzip.GzipFile(fileobj=plain)),
    b"\x28\xb5\x2f\xfd": lambda plain: cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(plain)),
    b"BZh": lambda plain: cast("IO[bytes]", bz2.BZ2File(plain)),
    b"\xfd7zXZ\0": lambda plain: cast("IO[bytes]", lzma.LZMAFile(plain)),  # noqa: SIM115 - it opens nothing
}
"""First bytes of each compressed format, and its reader. The reader uses only ``read`` of the file."""


def may_describe(name: str) -> bool:
    """Return whether ``images`` may need a member of an image's tar."""
    return name in ("manifest.json", "index.json") or name.startswith("blobs/")


def is_layout(path: Path) -> bool:
    """Return whether a directory is an image: an OCI layout, or an unpacked ``docker save``."""
    return (path / "blobs").is_dir() and any((path / name).is_file() for name in ("index.json", "manifest.json"))


def layout(path: Path) -> Iterator[Member]:
    """Yield the files of a directory that is an image, as those of its tar would come."""
    for file, size in folder(path, texts=True):
        try:
            with file.open("rb") as stream:
                yield Member(file.relative_to(path.resolve()).as_posix(), size, _Guarded(stream, str(file)))
        except OSError as error:
            raise BinaryError(f"cannot read {file}: {error.strerror}", help="check its permissions") from error


def images(documents: dict[str, bytes]) -> tuple[list[Image], list[str]] | None:
    """Return the images of an archive by its JSON, and the names of those whose manifests are not in it.

    None if it is no image. Raises BinaryError where the JSON is damaged.
    """
    try:
        if "index.json" in documents:  # an OCI layout, also in what docker has saved since version 25
            return _indexed(documents)
        if "manifest.json" in documents:  # docker save
            saved = json.loads(documents["manifest.json"])
            return [
                Image(", ".join(one.get("RepoTags") or ()), "", tuple(map(str, one["Layers"]))) for one in saved
            ], []
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BinaryError(f"the image's manifest is damaged: {error!r}", help="save the image again") from error
    return None


_TAG, _KIND = "org.opencontainers.image.ref.name", "vnd.docker.reference.type"


def _indexed(documents: dict[str, bytes]) -> tuple[list[Image], list[str]]:
    """Follow an index to its manifests, perhaps by way of another. Attestations hold no code."""
    found, missing, seen = [], [], set()
    pending = [("", descriptor) for descriptor in json.loads(documents["index.json"])["manifests"]]
    while pending:
        inherited, descriptor = pending.pop(0)
        notes, on = descriptor.get("annotations") or {}, descriptor.get("platform") or {}
        tag = notes.get(_TAG) or inherited
        platform = platform_of(on)
        blob = _blob(descriptor)
        if is_attestation(descriptor) or (blob, platform) in seen:
            continue
        seen.add((blob, platform))
        if blob not in documents:
            missing.append(" ".join(filter(None, (tag, platform))) or descriptor["digest"])
            continue
        document = json.loads(documents[blob])
        if "layers" in document:
            layers = tuple(_blob(layer) for layer in document["layers"])
            stated = documents.get(_blob(document["config"]), b"{}") if "config" in document else b"{}"
            found.append(Image(tag, platform or platform_of(json.loads(stated)), layers))
        else:
            pending += [(tag, below) for below in document["manifests"]]
    return found, missing


def is_attestation(descriptor: dict[str, Any]) -> bool:
    """Return whether an entry of an index is no image, but what a builder attests of one."""
    return bool((descriptor.get("annotations") or {}).get(_KIND) == "attestation-manifest")


def platform_of(stated: dict[str, Any]) -> str:
    """Return ``linux/arm64``, as an index or an image's configuration states it; empty where it does not."""
    parts = (stated.get("os"), stated.get("architecture"))
    return "/".join(map(str, parts)) if all(parts) else ""


def _blob(descriptor: dict[str, Any]) -> str:
    return "blobs/" + str(descriptor["digest"]).replace(":", "/")


def visible(layers: list[list[str]], links: list[Mapping[str, str]]) -> set[tuple[int, str]]:
    """Return the layer of each file whose content is visible, given each layer's names: a later layer replaces or
    deletes files.

    ``.wh.NAME`` deletes NAME, ``.wh..wh..opq`` deletes everything that lower layers have in its directory (OCI image
    layer). A directory takes the place of a file, and a file or a link that of a directory. ``links`` has each hard
    link of a layer, and the file of this layer that it names.
    """
    seen: dict[str, int] = {}
    for number, names in enumerate(layers):
        gone, emptied, here = set[str](), set[str](), dict[str, int]()
        for name in names:
            place, _, base = name.rpartition("/")
            if base == _OPAQUE:
                emptied.add(place)
            elif base:
                gone.add(f"{place}/{base.removeprefix(_WHITEOUT)}".lstrip("/"))
                here[name] = number
        above = gone | emptied
        gone |= {name[:-1] for name in names if name.endswith("/")}
        lower = {name: layer for name, layer in seen.items() if name not in gone and not _has_above(name, above)}
        seen = lower | here
    found = {(number, name) for name, number in seen.items()}
    return found | {(number, links[number][name]) for number, name in found if name in links[number]}


def _has_above(name: str, places: Set[str]) -> bool:
    """Return whether one of the directories above a file is among these; all are below the root, ``""``."""
    return "" in places or any(name[:at] in places for at, letter in enumerate(name) if letter == "/")


@contextmanager
def save(reference: str) -> Iterator[IO[bytes]]:
    """An image as a tar, from the first engine on PATH; UsageError if there is none, or it has no such image."""
    for engine in ("docker", "podman"):
        if program := shutil.which(engine):
            break
    else:
        raise UsageError(
            f"there is no file or package {reference}, and there is no docker or"
            " podman that could have an image of that name",
            help="check the path; or save the image where it is (docker save -o FILE.tar) and name the file",
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
            raise UsageError(
                f"there is no file or package {reference}, and {engine} has no image of that name:"
                f" {words[-1] if words else 'no message'}",
                help=f"check the path; or check the image's name with `{engine} images`, or pull it",
            )
