"""Extraction of device code from a stream of bytes: fatbins at any position, and cubins outside of any.

A fatbin is what nvcc makes of one translation unit: a header, then for each target an entry with its cubin or PTX. The
driver chooses among the entries of one fatbin. NVIDIA does not document the container; this reader was compared with
cuobjdump's output (tests/binaries/test_fatbin.py does so again). Layout, little-endian:

    container  0 magic ba55ed50, 4 version 1 (16 bits), 6 header size 16 (16 bits), 8 bytes that follow (64 bits)
    entry      0 kind, 2 version 0101 (16 bits each), 4 header size (32), 8 payload with padding (64),
               16 payload as compressed (32), 24 minor and major version of what is inside (16 each),
               28 architecture (32), 40 flags (64), 56 payload uncompressed (64)
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from fp4patch.binaries.cubin import LARGEST, cubin_length
from fp4patch.binaries.stream_reader import Window
from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError

CONTAINER = b"\x50\xed\x55\xba\x01\x00\x10\x00"
"""First bytes of a fatbin."""
_BEGINNINGS = (CONTAINER, b"\x7fELF\x02\x01\x01")  # the second: an ELF file that may be one for CUDA

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")

_KINDS = {1: "ptx", 2: "cubin", 8: "lto"}
_SKIPPED = (4, 16, 32, 64)
"""Forms of other tools (an old copy of a cubin, indices); none has code that the driver loads."""

_ARCH_SPECIFIC = 0x100000
_FAMILY_SPECIFIC = 0x200000
_LZ4 = 0x2000
_ZSTD = 0x8000

FIRST_WITH_FP4 = 10
"""The first major version with FP4 instructions. The cubins of older ones are not read, unless they may be empty."""
_SMALL = 4096
"""Bytes; a cubin without functions takes less (1,464 for sm_80, nvcc 13.0.88), as one with a kernel can."""


@dataclass(frozen=True)
class FatbinEntry:
    """A cubin or PTX as it is stored."""

    kind: str
    """``cubin``, ``ptx`` or ``lto``."""
    arch: Arch
    compression: str
    """``none``, ``lz4`` or ``zstd``."""
    size: int
    """Bytes, uncompressed."""
    payload: bytes
    """Contents; none of a larger cubin for older architectures."""
    isa: str = ""
    """Version of PTX: ``9.0``."""


@dataclass(frozen=True)
class DriverModule:
    """Contents of one driver module: a fatbin's entries, or one cubin."""

    name: str
    """Name for messages: the file's, and where a fatbin begins in it."""
    entries: Iterator[FatbinEntry]
    """The entries as they are read: each payload replaces the one before it in memory, unless the reader keeps it."""
    container: bool
    """True if it is a fatbin."""


def driver_modules(window: Window) -> Iterator[DriverModule]:
    """Yield every fatbin and every cubin outside of any, in the order of the file.

    Raises BinaryError for a container or a cubin that the file's end cuts off.
    """
    while window.seek(_BEGINNINGS):
        at = window.position
        if window.peek(4) == b"\x7fELF":
            length = cubin_length(window)
            if length is None:
                window.skip(4, "a magic number")
                continue
            cubin = window.take(length, "a cubin")
            entry = FatbinEntry("cubin", Arch(0, 0), "none", length, cubin)
            yield DriverModule(window.name, iter([entry]), container=False)
            continue
        if not _plausible(window):
            window.skip(4, "a magic number")  # the magic number as data: a program that reads fatbins has it
            continue
        _, _, _, length = _CONTAINER.unpack(window.take(_CONTAINER.size, "a fatbin"))
        window.require(length, "a fatbin")
        entries = _entries(window, window.position + length)
        yield DriverModule(f"{window.name} (fatbin at byte {at})", entries, container=True)
        for _ in entries:
            pass  # what the reader left


def unpack(entry: FatbinEntry, name: str) -> bytes:
    """Return the cubin or PTX itself; BinaryError where it is damaged."""
    import lz4.block  # noqa: PLC0415 - few files need it

    if entry.compression == "none":
        return entry.payload
    try:
        if entry.compression == "lz4":
            return bytes(lz4.block.decompress(entry.payload, uncompressed_size=entry.size))
        if zstandard.frame_content_size(entry.payload) not in (-1, entry.size):
            raise ValueError("its frame and its entry disagree on its size")
        return zstandard.ZstdDecompressor().decompress(entry.payload, max_output_size=entry.size)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError, MemoryError) as error:
        message = f"{name} is damaged: the {entry.kind} for {entry.arch} does not unpack ({error})"
        raise BinaryError(message, help="get the file again") from error


def _plausible(window: Window) -> bool:
    """Return whether a plausible first entry follows."""
    head = window.peek(_CONTAINER.size + _ENTRY.size)
    if len(head) < _CONTAINER.size:
        return False
    if len(head) < _CONTAINER.size + _ENTRY.size:
        return True  # cut off: reported when it is read
    return _sane(_ENTRY.unpack_from(head, _CONTAINER.size), _CONTAINER.unpack_from(head)[3])


def _sane(fields: tuple[int, ...], room: int) -> bool:
    kind, version, header, padded, packed = fields[:5]
    return (
        (kind in _KINDS or kind in _SKIPPED)
        and version >> 8 == 1
        and _ENTRY.size <= header <= 4096
        and header + padded <= room
        and packed <= padded
    )


def _entries(window: Window, end: int) -> Iterator[FatbinEntry]:
    while window.position + _ENTRY.size <= end:
        at = window.position
        fields = _ENTRY.unpack(window.peek(_ENTRY.size))
        if not _sane(fields, end - at):
            raise BinaryError(
                f"{window.name} is damaged: the fatbin entry at byte {at} is not valid", help="get the file again"
            )
        kind, _, header, padded, packed, _, minor, major, sm, _, _, flags, _, unpacked = fields
        compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else "none"
        size = unpacked if compression != "none" else padded
        if size > LARGEST:
            raise BinaryError(
                f"{window.name}: the fatbin entry at byte {at} claims {size} bytes"
                " unpacked, which is more than any real cubin has",
                help="it is damaged, or was made to exhaust memory; do not use it",
            )
        window.take(header, "a fatbin entry")
        kept = padded if compression == "none" else packed
        if sm // 10 < FIRST_WITH_FP4 and kind != 1 and kept > _SMALL:  # a GPU may load any PTX
            kept = 0
        after = window.position + padded
        if kind in _KINDS:
            suffix = "a" if flags & _ARCH_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
            suffix = suffix if sm >= 90 else ""  # no older target has one
            yield FatbinEntry(
                _KINDS[kind],
                Arch(sm // 10, sm % 10, suffix),  # type: ignore[arg-type]  # the three that there are
                compression,
                size,
                window.take(kept, "a fatbin entry's payload"),
                f"{major}.{minor}" if kind == 1 else "",
            )
        window.skip(after - window.position, "a fatbin entry's payload")
    window.take(end - window.position, "a fatbin")
