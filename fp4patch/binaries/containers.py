"""Walks through wheels, directories and tars, and gives each file as a stream; nothing is unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import posixpath
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

import zstandard

from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.errors import BinaryError

_TEXTS = frozenset(
    (
        # sources
        ".py",
        ".pyi",
        ".pyc",
        ".h",
        ".hpp",
        ".cpp",
        ".cc",
        ".c",
        ".inc",
        ".inl",
        ".cmake",
        # data and documents
        ".json",
        ".yaml",
        ".yml",
        ".toml",
        ".txt",
        ".md",
        ".rst",
        ".jinja",
        ".j2",
        # pages and pictures
        ".js",
        ".ts",
        ".html",
        ".css",
        ".svg",
        ".png",
    )
)
"""Files that hold no machine code; looking into each would take longer than into those that do."""

_BOMB = 300
"""Bytes from one compressed byte: zeros give deflate's limit of 1032, the most repetitive library measured 20."""
_HEAD = 512
_AR, _AR_HEAD = b"!<arch>\n", 60
_DEBIAN = _AR + b"debian-binary"
_FP4 = re.compile(rb"fp4|e2m1", re.IGNORECASE)
WHITEOUT = ".wh."
"""Beginning of a file's name in a layer that deletes the rest of the name."""
_HARMLESS = 1 << 28  # bytes; below this, a file of zeros is no burden

_DAMAGES = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    MemoryError,
    ValueError,
    IndexError,
    NotImplementedError,
    RuntimeError,
    zstandard.ZstdError,
)
"""Exceptions of the archive readers for damage, such as a name that is no UTF-8 or is empty, or an impossible
length."""


@dataclass(frozen=True)
class Member:
    """One file: where it is, how long it is, and what to read it from, once."""

    name: str
    size: int
    stream: Readable
    regular: bool = True


def kind(head: bytes) -> str:
    """Return what begins with these 512 bytes: ``zip``, ``tar``, ``compressed``, ``deb``, ``code``, or nothing."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[257:262] == b"ustar":
        return "tar"
    if head.startswith(tuple(_COMPRESSED)):
        return "compressed"
    if head.startswith(_DEBIAN):
        return "deb"
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


def is_source(name: str) -> bool:
    """Return whether a file is a CUDA source, which a package may compile when it runs; those of examples are not."""
    # Example: /tests/
    return name.endswith((".cu", ".cuh")) and not re.search(r"(^|/)(tests?|examples?|benchmarks?)/", name)


def has_fp4(text: bytes) -> bool:
    """Return whether a source says that it is about FP4."""
    return bool(_FP4.search(text))


def zipped(file: Path | IO[bytes], name: str) -> Iterator[Member]:
    """Yield the files of a wheel or another zip that may hold code.

    Raises BinaryError for a damaged one, and for one that was made to exhaust the machine. A member that is damaged
    raises it when it is read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or not may_hold_code(entry.filename):
                    continue
                if entry.file_size > _HARMLESS and entry.file_size > _BOMB * max(1, entry.compress_size):
                    raise BinaryError(
                        f"{name}: {entry.filename} claims {entry.file_size} bytes, unpacked from {entry.compress_size}",
                        help="no library compresses that well: do not use this wheel",
                    )
                with archive.open(entry) as stream:
                    yield Member(entry.filename, entry.file_size, stream)
    except _DAMAGES as error:
        raise BinaryError(f"{name} is damaged, or is not a wheel: {error}", help="download it again") from error


def debian(stream: Readable, name: str) -> Iterator[Member]:
    """Yield the files that a Debian package installs. Raises BinaryError for a damaged one."""
    archive = _Part(stream, sys.maxsize, name)
    archive.exactly(len(_AR))
    while True:
        head = archive.exactly(_AR_HEAD)
        size = head[48:58].decode(errors="replace").strip()
        if not size.isdecimal():
            raise BinaryError(f"{name} is damaged: it has an invalid header", help="get it again")
        if head.startswith(b"data.tar"):
            found, member = opened(Member("data.tar", int(size), _Part(stream, int(size), name)))
            if found == "tar":
                yield from tar(member.stream, name)
            return
        archive.exactly(int(size) + int(size) % 2)


class _Part:
    """A part of a stream."""

    def __init__(self, stream: Readable, size: int, name: str) -> None:
        self._stream = stream
        self._left = size
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        """As a file's."""
        piece = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(piece)
        return piece

    def exactly(self, size: int) -> bytes:
        """Return as many bytes; BinaryError where there are fewer."""
        content = b""
        while len(content) < size <= _HARMLESS and (piece := self.read(size - len(content))):
            content += piece
        if len(content) < size:
            raise BinaryError(f"{self._name} is cut off", help="get it again")
        return content


def folder(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files below a directory that may hold code, with their sizes, each once; no links that leave it."""
    seen = set()
    root = path.resolve()
    for place, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            file = Path(place, name)
            if not may_hold_code(name) or not file.is_file():
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
        with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                place = posixpath.normpath(f"/{member.name}").lstrip("/") + "/" * member.isdir()
                size = member.size if content else 0
                yield Member(place, size, content or io.BytesIO(), regular=content is not None)
    except _DAMAGES as error:
        raise BinaryError(f"{name} is damaged, or is not a tar: {error}", help="create or download it again") from error


class Peeked:
    """A stream whose beginning was looked at, and is read again; BinaryError where it is damaged."""

    def __init__(self, stream: Readable, name: str) -> None:
        self._stream = stream
        self._name = name
        self._unread = b""
        while len(self._unread) < _HEAD and (piece := self._read(_HEAD - len(self._unread))):
            self._unread += piece
        self.head = self._unread

    def read(self, size: int = -1, /) -> bytes:
        """As a file's; the beginning comes first, perhaps alone."""
        if self._unread:
            given = self._unread if size < 0 else self._unread[:size]
            self._unread = self._unread[len(given) :]
            return given
        return self._read(size)

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except _DAMAGES as error:
            raise BinaryError(f"{self._name} is damaged: {error}", help="get it again") from error


def opened(member: Member) -> tuple[str, Member]:
    """Return a member's kind, and the member to read it from: of a compressed tar the tar.

    Nothing else that is compressed has a kind here: no program loads it.
    """
    stream = Peeked(member.stream, member.name)
    if member.regular and not PurePosixPath(member.name).name.startswith(WHITEOUT):
        check_kind(member.name, stream.head)
    found = kind(stream.head)
    if found == "compressed":
        reader = next(reader for magic, reader in _COMPRESSED.items() if stream.head.startswith(magic))
        stream = Peeked(reader(cast("IO[bytes]", stream)), member.name)
        found = "tar" if kind(stream.head) == "tar" else ""
    return found, replace(member, stream=stream)


_COMPRESSED: Mapping[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda plain: cast("IO[bytes]", gzip.GzipFile(fileobj=plain)),
    b"\x28\xb5\x2f\xfd": lambda plain: cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(plain)),
    b"\xfd7zXZ\0": lambda plain: cast("IO[bytes]", lzma.LZMAFile(plain)),  # noqa: SIM115 - as the others, closed with the file
    b"BZh": lambda plain: cast("IO[bytes]", bz2.BZ2File(plain)),
}
"""First bytes of the compressed formats of layers and packages, and their readers, which use only ``read``."""
