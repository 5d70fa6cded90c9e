"""Layers with a table of contents, of which single files can be read: eStargz and zstd:chunked.

Both are usual layers, with each file, or each chunk of a large one, compressed by itself, and a JSON table of their
offsets near the end. The manifest of the image has the digest of the table, and the table those of the files.

- eStargz: https://github.com/containerd/stargz-snapshotter/blob/main/docs/estargz.md
- zstd:chunked: ManifestInfoKey and the types beside it in the Go module github.com/containers/storage/pkg/chunked
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import zstandard

from fp4patch.binaries.containers import Member, may_hold_code
from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.errors import BinaryError

Open = Callable[[int, int], AbstractContextManager[Readable]]
"""Opens the bytes of a layer from an offset to an end."""

_STARGZ = "containerd.io/snapshot/stargz/toc.digest"
_CHUNKED = "io.github.containers.zstd-chunked.manifest-"
_FOOTER = 51
"""Bytes at the end of an eStargz layer: an empty gzip member whose extra field has the table's offset."""
_OFFSET = re.compile(rb"SG\x16\0([0-9a-f]{16})STARGZ")
_TABLE = "stargz.index.json"
_LARGEST_TABLE = 1 << 27
_GAP, _TOGETHER = 1 << 18, 1 << 24
"""Bytes between two files that are transferred rather than requested apart, and most bytes of such a request."""
_CHECKED_FIRST = 1 << 24
"""Bytes of a chunk up to which its digest is compared before it is used."""
_ZSTD_STEP = 1 << 12
"""Bytes of zstd that are unpacked at a time: a block of three bytes can unpack to 128 KiB."""
_DAMAGED = "do not use this image"
_DAMAGES = (ValueError, LookupError, TypeError, AttributeError, OverflowError, EOFError, zlib.error, tarfile.TarError)
"""Exceptions for a table of contents that is not one."""


@dataclass(frozen=True)
class Layer:
    """A layer and the bytes that its parts are read from."""

    name: str
    size: int
    annotations: Mapping[str, str]
    open: Open

    def range(self, begin: int, end: int) -> bytes:
        """Return the bytes of a range."""
        with self.open(begin, end) as stream:
            return b"".join(iter(lambda: stream.read(1 << 20), b""))


@dataclass(frozen=True)
class _Chunk:
    begin: int
    end: int
    size: int
    """Bytes, uncompressed."""
    inner: int
    """Bytes before it, uncompressed, at its offset."""
    digest: str


@dataclass
class _File:
    name: str
    size: int
    digest: str
    link: str = ""
    chunks: list[_Chunk] = field(default_factory=list)


def has_table(annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations of a layer in an image's manifest state the digest of a table of contents."""
    return _STARGZ in annotations or f"{_CHUNKED}position" in annotations


def members(layer: Layer) -> Iterator[Member]:
    """Yield every file of a layer; the contents of those that can hold code are read, and others are empty.

    Raises BinaryError where the table, or a file that is read, does not have its digest.
    """
    try:
        files = _files(*_table(layer))
    except _DAMAGES as error:
        raise BinaryError(f"{layer.name}: its table of contents is damaged: {error!r}", help=_DAMAGED) from error
    reader = _Reader(layer, [file for file in files if may_hold_code(file.name) and file.chunks])
    try:
        for file in files:
            read = may_hold_code(file.name) and file.chunks
            content = _Content(reader.content(file)) if read else io.BytesIO()
            yield Member(file.name, file.size, content, file.link, regular=bool(read))
    finally:
        reader.close()


def _table(layer: Layer) -> tuple[Any, int]:
    """Return the table of contents, and the offset at which it begins."""
    notes = layer.annotations
    if _STARGZ in notes:
        found = _OFFSET.search(layer.range(layer.size - _FOOTER, layer.size))
        begin = int(found[1], 16) if found else layer.size
        if not 0 < layer.size - _FOOTER - begin <= _LARGEST_TABLE:
            raise ValueError("no footer")
        packed = layer.range(begin, layer.size - _FOOTER)
        unpacked = zlib.decompressobj(wbits=31).decompress(packed, _LARGEST_TABLE)
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
            text = archive.extractfile(_TABLE).read()  # type: ignore[union-attr]  # an AttributeError is damage
        _check(text, notes[_STARGZ], layer.name)
        return json.loads(text), begin
    begin, length, unpacked_length, kind = map(int, notes[f"{_CHUNKED}position"].split(":"))
    if kind != 1 or max(length, unpacked_length) > _LARGEST_TABLE:
        raise ValueError(f"a table of kind {kind} and {unpacked_length} bytes")
    packed = layer.range(begin, begin + length)
    _check(packed, notes[f"{_CHUNKED}checksum"], layer.name)
    return json.loads(zstandard.ZstdDecompressor().decompress(packed, max_output_size=unpacked_length)), begin


def _files(table: Any, table_begin: int) -> list[_File]:
    """Return the files of a table with their chunks; a link has no chunks, and the file that it names is one itself."""
    entries = table["entries"]
    offsets = sorted({*(int(entry.get("offset") or 0) for entry in entries), table_begin})
    end_of = dict(pairwise(offsets))
    files: list[_File] = []
    for entry in entries:
        kind, begin = entry["type"], int(entry.get("offset") or 0)
        if kind != "chunk":
            name = str(entry["name"]).removeprefix("./").strip("/") + "/" * (kind == "dir")
            link = str(entry.get("linkName") or "") if kind == "hardlink" else ""
            size, digest = int(entry.get("size") or 0), str(entry.get("digest") or "")
            files.append(_File(name, size, digest, link.removeprefix("./").strip("/")))
        file = files[-1]
        if kind not in ("reg", "chunk") or not file.size:
            continue
        at = int(entry.get("chunkOffset") or 0)
        size = int(entry.get("chunkSize") or 0) or file.size - at
        if at != sum(chunk.size for chunk in file.chunks) or size <= 0 or at + size > file.size:
            raise ValueError(f"the chunks of {file.name}")
        holes = entry.get("chunkType") == "zeros"
        end = begin if holes else int(entry.get("endOffset") or 0) or end_of.get(begin, table_begin)
        if not 0 <= begin <= end <= table_begin:
            raise ValueError(f"the offset of {file.name}")
        digest = entry.get("chunkDigest") or (file.digest if size == file.size else "")
        file.chunks.append(_Chunk(begin, end, size, int(entry.get("innerOffset") or 0), str(digest)))
    # An endOffset is that of the whole file: a chunk ends where the next one begins.
    for file in files:
        for number, (one, following) in enumerate(pairwise(file.chunks)):
            if one.begin < following.begin < one.end:
                file.chunks[number] = _Chunk(one.begin, following.begin, one.size, one.inner, one.digest)
    return files


class _Reader:
    """Reads the chunks of a layer in their order, those that are near each other by one request."""

    def __init__(self, layer: Layer, files: Sequence[_File]) -> None:
        self._layer = layer
        self._end_of_request: dict[int, int] = {}
        run: list[_Chunk] = []
        for chunk in sorted((c for file in files for c in file.chunks), key=lambda c: (c.begin, c.end)):
            near = run and chunk.begin - run[-1].end <= _GAP and chunk.end - run[0].begin <= _TOGETHER
            run = [*run, chunk] if near else [chunk]
            self._end_of_request |= dict.fromkeys((one.begin for one in run), max(one.end for one in run))
        self._request: AbstractContextManager[Readable] | None = None
        self._stream: Readable | None = None
        self._at = self._end = 0

    def close(self) -> None:
        """Give up the request in progress."""
        if self._request:
            self._request.__exit__(None, None, None)
        self._request = self._stream = None

    def content(self, file: _File) -> Iterator[bytes]:
        """Yield the contents of a file; BinaryError at its end, or at that of a chunk, if it has another digest."""
        whole = hashlib.sha256()
        for chunk in file.chunks:
            pieces = self._pieces(chunk, file.name)
            if chunk.size <= _CHECKED_FIRST and chunk.digest:
                content = b"".join(pieces)
                _check(content, chunk.digest, file.name)
                pieces = iter([content])
            for piece in pieces:
                whole.update(piece)
                yield piece
        if file.digest and f"sha256:{whole.hexdigest()}" != file.digest:
            raise BinaryError(f"{file.name} does not have its digest {file.digest}", help=_DAMAGED)

    def _pieces(self, chunk: _Chunk, name: str) -> Iterator[bytes]:
        if chunk.begin == chunk.end:
            for left in range(chunk.size, 0, -_TOGETHER):
                yield bytes(min(left, _TOGETHER))
            return
        skip, left = chunk.inner, chunk.size
        for piece in _unpacked(self._packed(chunk), name):
            wanted = piece[skip : skip + left]
            skip, left = max(0, skip - len(piece)), left - len(wanted)
            if wanted:
                yield wanted
            if not left:
                return
        raise BinaryError(f"{name} is cut off in its layer: {left} bytes are missing", help=_DAMAGED)

    def _packed(self, chunk: _Chunk) -> Iterator[bytes]:
        if self._stream is None or not self._at <= chunk.begin < self._end or chunk.end > self._end:
            self.close()
            self._at, self._end = chunk.begin, max(chunk.end, self._end_of_request[chunk.begin])
            self._request = self._layer.open(self._at, self._end)
            self._stream = self._request.__enter__()
        for _ in self._read(chunk.begin):
            pass
        yield from self._read(chunk.end)

    def _read(self, end: int) -> Iterator[bytes]:
        while self._stream and self._at < end and (piece := self._stream.read(min(1 << 18, end - self._at))):
            self._at += len(piece)
            yield piece


def _unpacked(packed: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield what a gzip member or a zstd frame unpacks to, at most some MiB at a time."""
    first = next(packed, b"")
    try:
        if first.startswith(b"\x1f\x8b"):
            gzip = zlib.decompressobj(wbits=31)
            for piece in chain([first], packed):
                rest = piece
                while rest and not gzip.eof:
                    yield gzip.decompress(rest, _TOGETHER)
                    rest = gzip.unconsumed_tail
        else:
            zstd = zstandard.ZstdDecompressor().decompressobj()
            for piece in chain([first], packed):
                for at in range(0, len(piece), _ZSTD_STEP):
                    if not zstd.eof:
                        yield zstd.decompress(piece[at : at + _ZSTD_STEP])
    except (zlib.error, zstandard.ZstdError) as error:
        raise BinaryError(f"{name} is damaged in its layer: {error}", help=_DAMAGED) from error


class _Content:
    """A file whose bytes come from an iterator."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._held = blocks, memoryview(b"")

    def read(self, size: int = -1, /) -> bytes:
        """As a file's; with a size, what is there, and at most that."""
        if size < 0:
            return bytes(self._held) + b"".join(self._blocks)
        while not self._held and (piece := next(self._blocks, None)) is not None:
            self._held = memoryview(piece)
        given, self._held = self._held[:size], self._held[size:]
        return bytes(given)


def _check(content: bytes, digest: str, name: str) -> None:
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise BinaryError(f"{name} does not have its digest {digest}", help=_DAMAGED)
