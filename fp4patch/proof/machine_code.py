"""The machine code of probes: what a cubin of a probe has, its listing, and what says that two are the same code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.proof.listing import SassListing
from fp4patch.sass import text as sass
from fp4patch.sass.error import SassError
from fp4patch.sass.instruction import Instruction
from fp4patch.sass.text import STEP, loaded_sections, read_sections, without_padding

KERNEL = "probe"
"""The one kernel of every probe, ``extern "C"``, so that its name is not mangled."""


def kernel_of(probe: str, there: Collection[str]) -> str:
    """Return the name of a probe's kernel in an object file with these: its own one, if it was compiled with others."""
    return KERNEL if KERNEL in there else f"{KERNEL}_{re.sub(r'[^0-9A-Za-z]', '_', probe.partition('/')[2])}"


@contextmanager
def proof_errors() -> Iterator[None]:
    """Raise what the reader of machine code does not understand as ProofError. A decorator too."""
    try:
        yield
    except SassError as error:
        raise ProofError(error.message, help=error.help) from error


@proof_errors()
def functions(cubin: bytes) -> dict[str, int]:
    """Return the functions of a cubin, and their addresses; ProofError if it is none."""
    return sass.functions(cubin)


@proof_errors()
def parse(text: str, *, arch: Arch, registers: int, code_sha256: str) -> SassListing:
    """Read ``nvdisasm -c`` of a cubin with the one kernel ``probe``; ProofError with the line that is not understood.

    What pads the code after its end is left out: the branch to itself and the NOPs that follow the last EXIT. So are
    the instructions that ptxas puts before every kernel for sm_87.
    """
    remedy = f'the probe needs one kernel: extern "C" __global__ void {KERNEL}(…)'
    return _listing(read_sections(text, only=KERNEL), KERNEL, arch, registers, code_sha256, remedy)


@proof_errors()
def parse_several(text: str, *, arch: Arch, log: str, cubin: bytes, kernels: Iterable[str]) -> dict[str, SassListing]:
    """Read ``nvdisasm -c`` of a cubin with several probes, by the names of their kernels. ProofError as of ``parse``.

    ``log`` is the text of ``ptxas -v`` on the same cubin.
    """
    used = dict(_REGISTERS_OF.findall(log))
    code = {name: found for name, found in read_sections(text).items() if name in used}
    remedy = "take `together` out of the probe's table: compiled alone it is named probe"
    banks = {name: _banks(instructions) for name, (instructions, _) in code.items()}
    return {
        kernel: _listing(
            code, kernel, arch, int(used.get(kernel, 0)), _digest_of(kernel, cubin, banks.get(kernel, set())), remedy
        )
        for kernel in kernels
    }


def _listing(
    code: Mapping[str, sass.Code], kernel: str, arch: Arch, registers: int, code_sha256: str, remedy: str
) -> SassListing:
    """Return the listing of one kernel; ProofError with the remedy if there is no code of it."""
    kept = without_padding(*code[kernel]) if kernel in code else ()
    if not kept:
        raise ProofError(f"the listing for {arch} holds no instruction of .text.{kernel}", help=remedy)
    return SassListing(KERNEL, arch, kept, sass.labels(kept, code[kernel][1]), registers, code_sha256)


@proof_errors()
def parse_unit(text: str, *, arch: Arch, registers: int, code_sha256: str) -> SassListing:
    """Read ``nvdisasm -c`` of a cubin with any number of kernels, as one listing.

    They follow one another in the order of their names, each with its name as a label and without its padding;
    addresses are counted on. ``registers`` is the largest number of any. ProofError as of ``parse``.
    """
    instructions: list[Instruction] = []
    labels: dict[int, str] = {}
    code = read_sections(text)
    for name in sorted(code):
        start = instructions[-1].address + STEP if instructions else 0
        kept = without_padding(*code[name])
        labels |= (
            {start + address: label for address, label in sass.labels(kept, code[name][1]).items()} if kept else {}
        )
        labels[start + kept[0].address if kept else start] = name
        instructions += (replace(instruction, address=start + instruction.address) for instruction in kept)
    if not instructions:
        raise ProofError(
            f"the listing for {arch} holds no instruction",
            help="the source instantiates no kernel on that architecture",
        )
    return SassListing(
        function=f"{len(code)} kernels",
        arch=arch,
        instructions=tuple(instructions),
        labels=labels,
        registers=registers,
        code_sha256=code_sha256,
    )


@proof_errors()
def code_digest(cubin: bytes, *, whole_unit: bool = False) -> str:
    """SHA-256 of the kernel's code and of all constants that it can read, of a cubin with the one kernel ``probe``.

    The constants count: a table that decides the result is outside of the code. ``whole_unit``: of all kernels that
    there are.
    """
    sections = loaded_sections(cubin)
    code = [name for name, _ in sections if name.startswith(".text.")]
    if not whole_unit and code != [f".text.{KERNEL}"]:
        raise ProofError(
            f"the probe's object file holds {', '.join(code) or 'no code'}, where .text.{KERNEL} alone is expected",
            help=f'a probe has exactly one kernel: extern "C" __global__ void {KERNEL}(…)',
        )
    digest = hashlib.sha256()
    for name, content in sorted(sections):
        digest.update(f"{name}:{len(content)}:".encode() + content)
    return digest.hexdigest()


@proof_errors()
def same_code(kernel: str, listing: SassListing, one: bytes, other: bytes) -> bool:
    """Tell whether a kernel is the same in two cubins; ``listing`` is that of the first one."""
    banks = _banks(listing.instructions)
    return _digest_of(kernel, one, banks) == _digest_of(kernel, other, banks)


@proof_errors()
def has_subroutines(cubin: bytes) -> bool:
    """Return whether functions of the compiler (for a division) were linked to the kernel ``probe``."""
    code = [name.removeprefix(".text.") for name, _ in loaded_sections(cubin) if name.startswith(".text.")]
    others = [name for name in code if name != KERNEL]
    return KERNEL in code and bool(others) and all(name.startswith("__cuda_sm") for name in others)


_ADDRESS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/", re.MULTILINE)
_BANK = re.compile(r"\.nv\.constant(\d+)")  # all kernels of the cubin share it; of one kernel: .nv.constant0.probe
_READS_BANK = re.compile(r"\bcx?\[(\w+)\]")  # c[0x4][0x8]; the number of the bank may be in a register


def _banks(instructions: Iterable[Instruction]) -> set[str]:
    """Return the constant banks that instructions read, as they name them: ``0x4``."""
    return {bank for one in instructions for bank in _READS_BANK.findall(one.operands)}


def _digest_of(kernel: str, cubin: bytes, banks: Collection[str]) -> str:
    """SHA-256 of one kernel's code, its own constants, and what it may read of those that all kernels of the cubin
    share.

    Of shared constant banks these are ``banks``; all of them if the code names one by a register.
    """
    numbers = {int(bank, 16) for bank in banks if bank.startswith("0x")}
    known = len(numbers) == len(banks)
    sections = loaded_sections(cubin)
    kernels = [name.removeprefix(".text.") for name, _ in sections if name.startswith(".text.")]
    digest = hashlib.sha256()
    for name, content in sorted(sections):
        owner = next((one for one in kernels if name.endswith(f".{one}")), kernel)
        shared = _BANK.fullmatch(name)
        if owner == kernel and not (shared and known and int(shared[1]) not in numbers):
            digest.update(f"{name.removesuffix(f'.{kernel}')}:{len(content)}:".encode() + content)
    return digest.hexdigest()


@proof_errors()
def check_whole(text: str, cubin: bytes) -> None:
    """ProofError unless a cubin's listing has every instruction: one that was cut off reads like a short one."""
    written = len(_ADDRESS.findall(text))
    held = sum(len(content) for name, content in loaded_sections(cubin) if name.startswith(".text.")) // STEP
    if written != held:
        raise ProofError(
            f"the listing has {written} instructions, and the object file {held}",
            help="the disassembler was cut off, or is damaged: run it again with an empty cache",
        )


_REGISTERS = re.compile(r"Used (\d+) registers")
_REGISTERS_OF = re.compile(r"Compiling entry function '(\w+)'(?:(?!Compiling entry).)*?Used (\d+) registers", re.DOTALL)


def registers(log: str, *, whole_unit: bool = False) -> int:
    """Registers per thread, from the output of ``ptxas -v`` for the one kernel; ProofError if there is none.

    ``whole_unit``: the largest number of any kernel.
    """
    found: list[str] = _REGISTERS.findall(log)
    if whole_unit and found:
        return max(map(int, found))
    if len(found) != 1:
        raise ProofError(
            f"ptxas spoke of {len(found)} kernels, where one is expected",
            help=f'a probe has exactly one kernel: extern "C" __global__ void {KERNEL}(…)',
        )
    return int(found[0])
