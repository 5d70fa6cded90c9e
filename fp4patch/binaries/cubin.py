"""Reader of cubins, which are ELF files: the architecture with its suffix, and the position of the code.

The number of the architecture is in the header's flags. The suffix is in the command line that ptxas keeps in
``.note.nv.tkinfo``: of 712 cubins in four wheels, flags and ``.nv.compat`` name another one for 204.
"""

import re
from dataclasses import dataclass

import numpy as np

from fp4patch.binaries.stream_reader import Window
from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError
from fp4patch.sass.elf import DAMAGES, EXECUTABLE, HEADER, NOTE, SECTION, SYMBOL, SYMTAB, Elf, Header

_EM_CUDA = 190
_LOADED = (2, 3)  # executables, and libraries; not objects
_PROCESSORS = {62: "x86-64", 183: "arm64"}
_OS_ABI = (0x33, 0x41)  # up to SM90; from SM100 on
_READ = (SYMTAB, NOTE)
_STORED = range(1, 8)  # the common types of section with bytes in the file: code, tables, texts, notes
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("rest", "<u8", 2)])
_ENTRY = 0x10  # st_other of a kernel; device functions have it not

# One of the note's texts is "-arch sm_120f -m 64 ".
_ARCH = re.compile(rb"-arch sm_(\d+)([af]?)\b")

LARGEST = 1 << 30
"""Bytes that one cubin may have: the largest of vLLM 0.33 has 15 MB. More is a damaged length, or meant to do harm."""


@dataclass(frozen=True)
class DeviceFunction:
    """The code of a kernel or device function."""

    name: str
    begin: int
    end: int
    kernel: bool


@dataclass(frozen=True)
class Cubin:
    """Facts about a cubin without its code."""

    arch: Arch
    functions: tuple[DeviceFunction, ...]
    """Functions in the order of the file."""


def cubin_length(window: Window) -> int | None:
    """Return the length of the ELF file at the window's position; None if it is no cubin.

    BinaryError is raised if the end of the input cuts it off.
    """
    head = window.peek(HEADER.size)
    if len(head) < HEADER.size:
        return None
    fields = Header._make(HEADER.unpack(head))
    if fields.machine != _EM_CUDA or fields.ident[7] not in _OS_ABI:
        return None
    length = max(fields.phoff + fields.phentsize * fields.phnum, fields.shoff + fields.shentsize * fields.shnum)
    if length <= min(LARGEST, window.size - window.position):
        # ptxas puts the tables last. Other tools put them first, and then the sections determine the end of the file.
        table = window.peek(length)[fields.shoff : fields.shoff + SECTION.size * fields.shnum]
        rows = SECTION.iter_unpack(table[: len(table) // SECTION.size * SECTION.size])
        length = max(length, *(begin + size for _, kind, _, _, begin, size, *_ in rows if kind in _STORED), 0)
    window.require(length, "a cubin")
    return length if length <= LARGEST else None


def check_whole(window: Window) -> None:
    """Raise BinaryError if an ELF file is shorter than its header states."""
    head = window.peek(HEADER.size)
    if len(head) == HEADER.size and head[4] == 2:  # 2: 64 bits
        fields = Header._make(HEADER.unpack(head))
        window.require(fields.shoff + fields.shentsize * fields.shnum, "the ELF file")


def processor(window: Window) -> str:
    """Return the processor of a library or program of 64 bits: ``x86-64`` or ``arm64``; empty of any other file."""
    head = window.peek(HEADER.size)
    if len(head) < HEADER.size or not head.startswith(b"\x7fELF\x02"):
        return ""
    fields = Header._make(HEADER.unpack(head))
    return _PROCESSORS.get(fields.machine, "") if fields.type in _LOADED else ""


def parse(data: bytes, name: str) -> Cubin:
    """Read a cubin; BinaryError where its tables lead outside of it."""
    try:
        return _parse(Elf(data))
    except DAMAGES as error:
        raise BinaryError(
            f"{name} is damaged: a cubin's tables do not fit it ({error})", help="get it again"
        ) from error


def _parse(elf: Elf) -> Cubin:
    if elf.header.machine != _EM_CUDA:
        raise ValueError("not for CUDA")
    data = elf.data
    # Others may have no bytes in the file, whatever their type: what is reserved in shared memory, for one.
    read = [section for section in elf.sections if section.flags & EXECUTABLE or section.kind in _READ]
    # Together no more than the file: one place read as thousands of sections would take hours.
    if any(section.end > len(data) for section in read) or sum(section.size for section in read) > len(data):
        raise ValueError("section")
    kernels = _kernels(elf)
    functions, note = [], b""
    for index, section in enumerate(elf.sections):
        if section.flags & EXECUTABLE and section.size:
            name = elf.name(section).removeprefix(".text.")
            functions.append(DeviceFunction(name, section.begin, section.end, index in kernels))
        elif section.kind == NOTE and elf.name(section) == ".note.nv.tkinfo":
            note += elf.content(section)
    functions.sort(key=lambda function: function.begin)
    return Cubin(_arch(elf.header, note), tuple(functions))


def _kernels(elf: Elf) -> set[int]:
    kernels = set[int]()
    for table in (section for section in elf.sections if section.kind == SYMTAB):
        symbols = np.frombuffer(elf.content(table)[: table.size // SYMBOL.size * SYMBOL.size], _SYMBOL)
        kernels |= set(symbols["section"][symbols["other"] & _ENTRY != 0].tolist())
    return kernels


def _arch(head: Header, note: bytes) -> Arch:
    """Return the architecture; with the suffix ``a``, which loads on the fewest GPUs, where the note is gone."""
    new = head.ident[8] >= 8  # the version of the ABI, with SM100
    number = head.flags >> 8 & 0xFF if new else head.flags & 0xFF
    said = _ARCH.search(note)
    suffix = said[2].decode() if said and int(said[1]) == number else "a" if number >= 90 else ""
    return Arch(number // 10, number % 10, suffix)  # type: ignore[arg-type]  # the three that there are
