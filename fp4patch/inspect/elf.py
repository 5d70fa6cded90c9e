"""Reader of cubins, which are ELF files: the architecture with its suffix, the compiler, and the position of the code.

The number of the architecture is in the header's flags, and the suffix only in part: CUDA 12 marks ``a`` there, CUDA 13
in ``.nv.compat``, and ``f`` is only in the command line that ptxas keeps in ``.note.nv.tkinfo``. So that note is read
first.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fp4patch.inspect.window import Window

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

_EM_CUDA = 190
_OS_ABI = (0x33, 0x41)  # up to SM90; from SM100 on
_PROGBITS, _SYMTAB, _NOTE, _CALLS, _COMPAT, _EXECUTABLE = 1, 2, 7, 0x70000001, 0x70000086, 0x4
_READ = (_SYMTAB, _NOTE, _CALLS, _COMPAT)
_STORED = range(1, 8)  # the common types of section with bytes in the file: code, tables, texts, notes
_ENTRY = 0x10  # st_other of a kernel; device functions have it not

# The note's texts: "Cuda compilation tools, release 13.0, V13.0.88" and "-arch sm_120f -m 64 ".
_RELEASE = re.compile(rb"Cuda compilation tools, release \d+\.\d+, V(\d+(?:\.\d+)+)")
_RELEASE_LENGTH = 64
_ARCH = re.compile(rb"-arch sm_(\d+)([af]?)\b")

_TEXT = re.compile(rb"[\x20-\x7e]{12,500}")
_MESSAGE = re.compile(
    rb"architecture-specific|without targeting|only supports? sm|not available on this device"
    rb"|no device code compatible|without CUTE_ARCH_\w+_ENABLED",
    re.IGNORECASE,
)
"""Texts that programs print where they run on another architecture: TransformerEngine, CUTLASS, CuTe, ggml."""

LARGEST = 1 << 30
"""Bytes that one cubin may have: the largest of vLLM 0.33 has 15 MB. More is a damaged length, or meant to do harm."""


@dataclass(frozen=True)
class Function:
    """The code of a kernel or device function."""

    name: str
    begin: int
    end: int
    kernel: bool
    calls: frozenset[str] = frozenset()
    """Names of the functions that it calls, as the compiler lists them."""


@dataclass(frozen=True)
class Cubin:
    """Facts about a cubin without its code."""

    arch: Arch
    compiler: str
    """``13.0.88``; empty if the file does not state it (before CUDA 12.8 for SM100)."""
    functions: tuple[Function, ...]
    """Functions in the order of the file."""
    says: tuple[str, ...] = ()
    """Messages about a wrong architecture among its data."""


def cubin_length(window: Window) -> int | None:
    """Return the length of the ELF file at the window's position; None if it is no cubin.

    BinaryError is raised if the end of the input cuts it off.
    """
    head = window.peek(_HEADER.size)
    if len(head) < _HEADER.size:
        return None
    fields = _HEADER.unpack(head)
    if fields[2] != _EM_CUDA or head[7] not in _OS_ABI:
        return None
    phoff, shoff, phentsize, phnum, shentsize, shnum = fields[5], fields[6], *fields[9:13]
    length = max(phoff + phentsize * phnum, shoff + shentsize * shnum)
    if length <= min(LARGEST, window.size - window.position):
        # ptxas puts the tables last. Other tools put them first, and then the sections determine the end of the file.
        table = window.peek(length)[shoff : shoff + _SECTION.size * shnum]
        whole = table[: len(table) // _SECTION.size * _SECTION.size]
        stored = (section for section in _SECTION.iter_unpack(whole) if section[1] in _STORED)
        length = max(length, *(section[4] + section[5] for section in stored), 0)
    room = window.size - window.position
    if length > room:
        raise BinaryError(
            f"{window.name} is damaged: the cubin at byte {window.position} has {length} bytes, and {room} follow",
            help="it was cut off, or is not what its name says; get it again",
        )
    return length if length <= LARGEST else None


def check_whole(head: bytes, size: int, name: str) -> None:
    """Raise BinaryError if an ELF file is shorter than its header states."""
    if len(head) < _HEADER.size or head[4] != 2:  # 2: 64 bits
        return
    fields = _HEADER.unpack_from(head)
    needed = fields[6] + fields[11] * fields[12]
    if needed > size:
        raise BinaryError(
            f"{name} is damaged: its section table ends at byte {needed}, and the file has {size}",
            help="it was cut off; get it again",
        )


def parse(data: bytes, name: str) -> Cubin:
    """Read a cubin; BinaryError where its tables lead outside of it."""
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError) as error:
        raise BinaryError(
            f"{name} is damaged: a cubin's tables do not fit it ({error})", help="get it again"
        ) from error


def compiler(pieces: Iterable[bytes]) -> str:
    """Return the release that a cubin names, given its bytes from the beginning; empty if it names none."""
    tail = b""
    for piece in pieces:
        if found := _RELEASE.search(tail + piece):
            return found[1].decode()
        tail = piece[-_RELEASE_LENGTH:]
    return ""


def _parse(data: bytes) -> Cubin:
    head = _HEADER.unpack_from(data)
    shoff, shnum, shstrndx = head[6], head[12], head[13]
    if head[2] != _EM_CUDA:
        raise ValueError("not for CUDA")
    if not 0 < shoff + shnum * _SECTION.size <= len(data) or shstrndx >= shnum:
        raise ValueError("section table")
    sections = [_SECTION.unpack_from(data, shoff + _SECTION.size * i) for i in range(shnum)]
    # Others may have no bytes in the file, whatever their type: what is reserved in shared memory, for one.
    read = [section for section in sections if section[2] & _EXECUTABLE or section[1] in _READ]
    # Together no more than the file: one place read as thousands of sections would take hours.
    if any(section[4] + section[5] > len(data) for section in read) or sum(section[5] for section in read) > len(data):
        raise ValueError("section")
    names = sections[shstrndx][4]
    kernels, calls = _kernels(data, sections), _calls(data, sections)
    unsearched = len(data)  # bytes that are searched for messages, together: sections of data may overlap
    functions, note, compat, says = [], b"", b"", dict[str, None]()
    for index, section in enumerate(sections):
        kind, flags, begin, size = section[1], section[2], section[4], section[5]
        if kind == _COMPAT:
            compat = data[begin : begin + size]
        elif flags & _EXECUTABLE and size:
            name = _text(data, names + section[0]).removeprefix(".text.")
            functions.append(Function(name, begin, begin + size, index in kernels, frozenset(calls.get(index, ()))))
        elif kind == _NOTE and _text(data, names + section[0]) == ".note.nv.tkinfo":
            note += data[begin : begin + size]
        elif (
            kind == _PROGBITS
            and size <= unsearched
            and _text(data, names + section[0]).startswith((".nv.global", ".nv.constant"))
        ):
            unsearched -= size
            texts = (found[0] for found in _TEXT.finditer(data, begin, begin + size))
            says.update((text.decode().strip(), None) for text in texts if _MESSAGE.search(text))
    functions.sort(key=lambda function: function.begin)
    return Cubin(_arch(head, note, compat), compiler([note]), tuple(functions), tuple(says))


def _kernels(data: bytes, sections: list[tuple[int, ...]]) -> set[int]:
    """Return the sections that hold a kernel."""
    found = set()
    for section in sections:
        if section[1] == _SYMTAB:
            begin, size = section[4], section[5]
            for _, _, other, where, _, _ in _SYMBOL.iter_unpack(data[begin : begin + size - size % _SYMBOL.size]):
                if other & _ENTRY:
                    found.add(where)
    return found


def _calls(data: bytes, sections: list[tuple[int, ...]]) -> dict[int, set[str]]:
    """Return for each section of code the names of the functions that it calls, by the compiler's call graph."""
    found: dict[int, set[str]] = {}
    for section in sections:
        if section[1] != _CALLS:
            continue
        symbols, begin, size = sections[section[6]], section[4], section[5]
        for caller, callee in struct.iter_unpack("<II", data[begin : begin + size - size % 8]):
            if caller and max(caller, callee) < symbols[5] // _SYMBOL.size:
                where = _SYMBOL.unpack_from(data, symbols[4] + caller * _SYMBOL.size)[3]
                name = _SYMBOL.unpack_from(data, symbols[4] + callee * _SYMBOL.size)[0]
                at = sections[symbols[6]][4] + name
                found.setdefault(where, set()).add(data[at : at + 64].partition(b"\0")[0].decode(errors="replace"))
    return found


def _arch(head: tuple[bytes | int, ...], note: bytes, compat: bytes) -> Arch:
    ident, flags = head[0], head[7]
    assert isinstance(ident, bytes)
    assert isinstance(flags, int)
    new = ident[8] >= 8  # the version of the ABI, with SM100
    number = flags >> 8 & 0xFF if new else flags & 0xFF
    said = _ARCH.search(note)
    if said and int(said[1]) == number:
        return _make(number, said[2].decode())
    if flags & (0x8 if new else 0x800):
        return _make(number, "a")
    tags = _tags(compat)
    return _make(number, "a" if tags.get(9) else "f" if tags.get(2) == 2 else "")


def _tags(compat: bytes) -> dict[int, int]:
    """Return the small attributes of ``.nv.compat``: format, tag, value (16 bits); format 4 is followed by so many
    bytes."""
    tags, at = {}, 0
    while at + 4 <= len(compat):
        form, tag, value = struct.unpack_from("<BBH", compat, at)
        tags[tag] = value & 0xFF
        at += 4 + (value if form == 4 else 0)
    return tags


def _make(number: int, suffix: str) -> Arch:
    checked: Literal["", "a", "f"] = "a" if suffix == "a" else "f" if suffix == "f" else ""
    return Arch(number // 10, number % 10, checked)


def _text(data: bytes, begin: int) -> str:
    end = data.index(b"\0", begin)
    return data[begin:end].decode(errors="replace")
