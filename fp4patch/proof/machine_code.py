"""The machine code of probes: its listing, what a cubin of a probe has, and what says that two are the same code."""

import hashlib
import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.core.store import Store, key
from fp4patch.proof.listing import SassListing
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass import text as sass
from fp4patch.sass.elf import SYMTAB, Elf
from fp4patch.sass.instruction import Instruction
from fp4patch.sass.text import STEP, loaded_sections, opened, read_sections, without_padding

KERNEL = "probe"
"""The one kernel of every probe, ``extern "C"``, so that its name is not mangled."""


def kernel_of(probe: str, names: Collection[str]) -> str:
    """Return the name of a probe's kernel in an object file with these: its own one, if it was compiled with others."""
    return KERNEL if KERNEL in names else f"{KERNEL}_{re.sub(r'[^0-9A-Za-z]', '_', probe.partition('/')[2])}"


# Example: .visible .entry probe
_DEFINED = re.compile(r"^(?:\.\w+ )*\.(?:entry (\w+)|func\b)", re.MULTILINE)
# Example: ptxas a.ptx, line 9; error   : Unknown symbol
_REFUSED = re.compile(r"^ptxas .*, line (\d+); error .*", re.MULTILINE)


def refused_kernels(log: str, ptx: str) -> dict[str, str]:
    """Return what ptxas has to say of each kernel that it does not assemble; nothing if that is a function's fault."""
    kernels = {ptx.count("\n", 0, found.start()) + 1: found[1] or "" for found in _DEFINED.finditer(ptx)}
    said: dict[str, str] = {}
    for error in _REFUSED.finditer(log):
        kernel = next((name for line, name in reversed(kernels.items()) if line <= int(error[1])), "")
        said.setdefault(kernel, error[0])
    return {} if "" in said else said


def kernel_listings(text: str, cubin: bytes, kernels: Iterable[str]) -> list[SassListing]:
    """Return the listing of each of these kernels of a cubin, from what ``nvdisasm -c`` wrote of it.

    SassError with the line that is not understood. What pads the code after its end is left out: the branch to itself
    and the NOPs that follow the last EXIT. So are the instructions that ptxas puts before every kernel for sm_87.
    """
    code = read_sections(text)
    listings = []
    for name in kernels:
        instructions = without_padding(*code[name]) if name in code else ()
        if not instructions:
            raise ProofError(
                f"the listing holds no instruction of .text.{name}",
                help="a probe that is compiled with others has one kernel and no other function",
            )
        labels = sass.labels(instructions, code[name][1])
        listings.append(SassListing(instructions, labels, code_digest(cubin, name, instructions)))
    return listings


def unit_listing(text: str, cubin: bytes) -> SassListing:
    """Return all functions of a cubin as one listing.

    They follow one another in the order of their names, each with its name as a label and without its padding;
    addresses are counted on. SassError with a line that is not understood.
    """
    instructions: list[Instruction] = []
    labels: dict[int, str] = {}
    for name, (section, places) in sorted(read_sections(text).items()):
        start = instructions[-1].address + STEP if instructions else 0
        kept = without_padding(section, places)
        if kept:
            labels |= {start + address: label for address, label in sass.labels(kept, places).items()}
        labels[start + kept[0].address if kept else start] = name
        instructions += (replace(instruction, address=start + instruction.address) for instruction in kept)
    if not instructions:
        raise ProofError("the listing holds no instruction", help="the source instantiates no kernel for the target")
    return SassListing(tuple(instructions), labels, code_digest(cubin))


def must_have_one_kernel(cubin: bytes) -> None:
    """ProofError if there is another kernel beside ``probe``, or none; functions of the compiler may be linked to it,
    for a division."""
    code = [name.removeprefix(".text.") for name, _ in loaded_sections(cubin) if name.startswith(".text.")]
    if KERNEL not in code or not all(name == KERNEL or name.startswith("__cuda_sm") for name in code):
        raise ProofError(
            f"the probe's object file holds {', '.join(code) or 'no code'}, where .text.{KERNEL} alone is expected",
            help=f'a probe has exactly one kernel: extern "C" __global__ void {KERNEL}(…)',
        )


def defined_once(content: bytes) -> list[str]:
    """Return what an object file defines, and no other one may define: functions and variables that are not inline."""
    elf = Elf(content)
    tables = [section for section in elf.sections if section.kind == SYMTAB]
    symbols = ((symbol, elf.sections[table.link].begin) for table in tables for symbol in elf.symbols(table))
    return sorted(
        elf.text(names + symbol.name_at)
        for symbol, names in symbols
        if symbol.info >> 4 == _GLOBAL and symbol.info & 15 in _CODE_OR_DATA and symbol.section
    )


_GLOBAL, _CODE_OR_DATA = 1, (1, 2)
"""Binding and kinds of a symbol, by the ELF specification; what is inline is weak."""
_BANK = re.compile(r"\.nv\.constant(\d+)")  # all kernels of the cubin share it; of one kernel: .nv.constant0.probe
_READS_BANK = re.compile(r"\bcx?\[(\w+)\]")  # c[0x4][0x8]; the number of the bank may be in a register


def code_digest(cubin: bytes, kernel: str = "", instructions: Sequence[Instruction] = ()) -> str:
    """SHA-256 of all code of a cubin and of all constants: a table that decides the result is outside of the code.

    Of one kernel, its own code and constants count, and what it may read of those that all kernels of the cubin share:
    the banks that its instructions name, all of them if one names a bank by a register.
    """
    banks = set(_READS_BANK.findall("\n".join(instruction.operands for instruction in instructions)))
    numbers = {int(bank, 16) for bank in banks if bank.startswith("0x")}
    known = len(numbers) == len(banks)
    sections = loaded_sections(cubin)
    kernels = {name.removeprefix(".text.") for name, _ in sections if name.startswith(".text.")}
    digest = hashlib.sha256()
    for name, content in sorted(sections):
        last = name.rpartition(".")[2]
        owner = last if last in kernels else kernel
        shared = _BANK.fullmatch(name)
        if not kernel or (owner == kernel and not (shared and known and int(shared[1]) not in numbers)):
            digest.update(f"{name.removesuffix(f'.{kernel}')}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def disassemble(cubin: bytes, *, toolchain: Toolchain, runner: Runner, store: Store) -> str:
    """Return the output of ``nvdisasm -c`` for a cubin; ProofError for unsupported code.

    It takes a third of a second to start: it runs once for the targets of a generation that have the same code.
    """
    name = key("nvdisasm -c", toolchain.info.nvdisasm, toolchain.fingerprint, *_disassembled(cubin))
    if kept := store.get(name):
        return str(kept)
    with tempfile.TemporaryDirectory(prefix="fp4patch-sass-") as scratch:
        file = Path(scratch) / "probe.cubin"
        file.write_bytes(cubin)
        status, text, messages = runner.run([toolchain.nvdisasm, "-c", file], scratch=file.parent)
    if status != 0:
        raise ProofError(
            f"nvdisasm -c ended with status {status}: {messages.strip()}",
            help=f"nvdisasm {toolchain.info.nvdisasm} may not support this code",
        )
    store.put(name, text)
    return text


_NOT_DISASSEMBLED = (".debug", ".note", ".nv.capmerc", ".nv.compat", ".nv.merc", ".nv_debug")


def _disassembled(cubin: bytes) -> list[str | bytes]:
    """Return all that the listing of a cubin is made of: its generation, and the names and contents of its sections but
    for those about the target and the source."""
    with opened(cubin) as file:
        generation = (file.header.flags >> 8 & 0xFF or file.header.flags & 0xFF) // 10
        named = [(file.name(section), section) for section in file.sections]
        parts = [(name, file.content(section)) for name, section in named if not name.startswith(_NOT_DISASSEMBLED)]
    return [str(generation), *(part for section in parts for part in section)]
