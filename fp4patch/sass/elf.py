"""The reader of ELF files: header, section table and symbols (System V ABI; 64 bits, little-endian).

A damaged file raises ValueError, IndexError or struct.error: :data:`DAMAGES`.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DAMAGES = (struct.error, IndexError, ValueError)

# Types of sections.
PROGBITS = 1
SYMTAB = 2
STRTAB = 3
NOTE = 7
ALLOC, EXECUTABLE = 0x2, 0x4
"""Flags of sections."""


class Header(NamedTuple):
    """The fields of the header, with the names of the ABI."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int


class Section(NamedTuple):
    """One section; ``begin`` is its offset in the file."""

    name_at: int
    kind: int
    flags: int
    address: int
    begin: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def end(self) -> int:
        """Offset of its end."""
        return self.begin + self.size


class Symbol(NamedTuple):
    """One symbol; ``section`` is the index of its section."""

    name_at: int
    info: int
    other: int
    section: int
    value: int
    size: int


class Elf:
    """The tables of an ELF file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header = head = Header._make(HEADER.unpack_from(data))
        if head.ident[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not an ELF file of 64 bits")
        if not 0 < head.shoff + head.shnum * SECTION.size <= len(data) or head.shstrndx >= head.shnum:
            raise ValueError("section table")
        table = data[head.shoff : head.shoff + head.shnum * SECTION.size]
        self.sections = tuple(map(Section._make, SECTION.iter_unpack(table)))
        if self.sections[0].kind or self.sections[head.shstrndx].kind != STRTAB:
            raise ValueError("section table")
        self._names = self.sections[head.shstrndx].begin

    def name(self, section: Section) -> str:
        """Return the name of a section."""
        return self.text(self._names + section.name_at)

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section."""
        return self.data[section.begin : section.end]

    def symbols(self, table: Section) -> Iterator[Symbol]:
        """Yield the symbols of a symbol table."""
        content = self.content(table)
        return map(Symbol._make, SYMBOL.iter_unpack(content[: len(content) // SYMBOL.size * SYMBOL.size]))

    def symbol(self, table: Section, number: int) -> Symbol:
        """Return one symbol of a symbol table."""
        return Symbol._make(SYMBOL.unpack_from(self.data, table.begin + number * SYMBOL.size))

    def name_of(self, table: Section, symbol: Symbol) -> str:
        """Return the name of a symbol."""
        return self.text(self.sections[table.link].begin + symbol.name_at)

    def text(self, begin: int) -> str:
        """Return the text at an offset of the file, up to its zero."""
        return self.data[begin : self.data.index(b"\0", begin)].decode(errors="replace")
