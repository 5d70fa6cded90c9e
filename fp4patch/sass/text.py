"""Read a disassembler's listing into instructions, and account for every line of it.

A line that no documented form matches is an error with the line: a listing that was half understood proves nothing.
Written for ``nvdisasm -c`` of CUDA 12.9 to 13.5, code for sm_90 and later.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.sass import elf
from fp4patch.sass.instruction import Instruction, InstructionClass, SassListing

KERNEL = "probe"
"""The one kernel of every probe, ``extern "C"``, so that its name is not mangled."""


def kernel_of(probe: str, there: Collection[str]) -> str:
    """Return the name of a probe's kernel in an object file with these: its own one, if it was compiled with others."""
    return KERNEL if KERNEL in there else f"{KERNEL}_{re.sub(r'[^0-9A-Za-z]', '_', probe.partition('/')[2])}"


_REPORT = "report the line, and which release of nvdisasm wrote it"

# --- classes of instructions -----------------------------------------------------------------------------------------
# The opcodes of sm_90 to sm_12x: the Hopper and Blackwell tables of the instruction set reference in NVIDIA's "CUDA
# Binary Utilities", and four that compilers emit and the tables do not have (F2FP, RED, ARRIVES, R2B). A U in front is
# the same operation on uniform registers. Modifiers follow after a dot; where they decide the class, see classify.

_OPCODES: Mapping[InstructionClass, str] = {
    InstructionClass.CONVERT: """
        F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP""",
    InstructionClass.MMA: """
        BGMMA BMMA HGMMA HMMA IGMMA IMMA OMMA QGMMA QMMA UTCHMMA UTCIMMA UTCOMMA UTCQMMA""",
    InstructionClass.FLOAT: """
        FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FHADD FHADD2 FHFMA FHFMA2 FHMUL2 FMNMX FMNMX3 FMUL FMUL2 FMUL32I
        FSWZADD HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I MUFU UFADD UFFMA UFMNMX UFMUL VHMNMX""",
    InstructionClass.F64: "DADD DFMA DMMA DMUL DSETP",
    InstructionClass.INTEGER: """
        BMSK BREV DECOMPRESS FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I LEA LOP
        LOP3 LOP32I POPC SGXT SHF SHL SHR SPARSIFY UBMSK UBREV UFLO UIABS UIADD3 UIMAD UIMNMX ULEA ULOP ULOP3 ULOP32I
        UPOPC USGXT USHF USHL USHR UVIADD UVIMNMX VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3""",
    InstructionClass.COMPARE: """
        FSEL FSET FSETP HSET2 HSETP2 ISETP PLOP3 PSETP SEL UFSEL UFSET UFSETP UISETP UPLOP3 UPSETP USEL VISET""",
    InstructionClass.MEMORY: """
        ATOM ATOMG ATOMS CCTL CCTLL CCTLT LD LDC LDCU LDG LDGMC LDGSTS LDS LDSM LDT LDTM QSPC RED REDAS REDG REDS ST
        STAS STG STS STSM STT STTM SUATOM SULD SURED SUST UBLKCP UBLKL2CCTL UBLKPF UBLKRED ULDC UMEMSETS UREDGR USTGR
        UTCATOMSWS UTCCP UTMACCTL UTMACMDFLUSH UTMAL2CCTL UTMALDG UTMAPF UTMAREDG UTMASTG""",
    InstructionClass.LOCAL: "LDL STL",
    InstructionClass.BRANCH: "BRA BRX BRXU CALL JMP JMX JMXU RET",
    InstructionClass.CONTROL: """
        ACQBULK ACQSHMINIT ARRIVES B2R BAR BMOV BPT BREAK BSSY BSYNC CGAERRBAR DEPBAR ELECT ENDCOLLECTIVE ERRBAR EXIT
        FENCE GETLMEMBASE KILL LDGDEPBAR MEMBAR NANOSLEEP NOP PREEXIT R2B RPCMOV SETCTAID SETLMEMBASE SYNCS SYNCSU
        UCGABAR_ARV UCGABAR_WAIT UGETNEXTWORKID USETMAXREG USYNCS UTCBAR UTCSHIFT UVIRTCOUNT WARPGROUP WARPGROUPSET
        WARPSYNC YIELD""",
    InstructionClass.MOVE: """
        CS2R CS2UR LEPC MOV MOV32I MOV64IUR MOVM P2R PRMT R2P R2UR S2R S2UR UCLEA ULEPC UMOV UP2UR UPRMT UR2UP""",
    InstructionClass.OTHER: """
        CREDUX MATCH PMTRIG REDUX SHFL TEX TLD TLD4 TMML TXD TXQ VOTE VOTEU""",
}
CLASS_OF: Mapping[str, InstructionClass] = {
    opcode: cls for cls, opcodes in _OPCODES.items() for opcode in opcodes.split()
}
"""Every opcode that is known, and its class."""


def classify(opcode: str) -> InstructionClass | None:
    """Return the class of ``OPCODE.MODIFIERS``; None for an opcode that is not in the table."""
    name, *modifiers = opcode.split(".")
    cls = CLASS_OF.get(name)
    if cls is None:
        return None
    if cls is InstructionClass.CONVERT and "E2M1" in modifiers:
        return InstructionClass.FP4
    if any(modifier in ("F64", "RCP64H", "RSQ64H") for modifier in modifiers):
        return InstructionClass.F64
    if name == "HADD2" and "F32" in modifiers:
        return InstructionClass.CONVERT  # how half becomes float
    return cls


# --- the forms of a line ---------------------------------------------------------------------------------------------

_IGNORED = re.compile(
    r"""
      \s*                                                       # an empty line
    | //-+\ [.\w$]+\ +-+                                        # //--------------- .text.probe -----------------
    | \s*\.(?:headerflags|elftype|target|section|sectioninfo|sectionflags|sectionentsize|align|global|globl|weak|local
        |type|size|other|file|loc|byte|short|word|dword|quad|string|zero|nv_debug_ptx_txt|callgraph)\b.*
                                                                #   .type  probe,@function
    | \s*//\#\#\s.*                                             # //## File "probe.cu", line 3
    """,
    re.VERBOSE,
)
_SECTION = re.compile(r"\s*\.section\s+(?P<name>[.\w$@]+).*")  # .section  .text.probe,"ax",@progbits
_LABEL = re.compile(r"(?P<name>[.$\w]+):")  # .L_x_3:   probe:   .text.probe:   $probe$__internal_0_$__cuda_sm3x_div:
_INSTRUCTION = re.compile(
    r"""
    \s*/\*(?P<address>[0-9a-f]{4,})\*/                          # /*01d0*/
    \s+(?:(?P<predicate>@!?U?P(?:\d+|T))\s+)?                   # @!P0, or nothing
    (?P<opcode>[A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)             # F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C
    (?:\s+(?P<operands>[^;\s][^;]*?))?                          # R14, R15, R14, RZ
    \s*;
    (?:\s*/\*\s*0x[0-9a-f]{16}\s*\*/)?                          # /* 0x000000ffff0a7208 */, with -hex
    """,
    re.VERBOSE,
)
_ENCODING = re.compile(r"\s*/\*\s*0x[0-9a-f]{16}\s*\*/")  # the second half of an instruction's bits, with -hex
_TARGET = re.compile(r"`\((?P<label>[.$\w]+)\)")  # BRA `(.L_x_0)
_ADDRESS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/", re.MULTILINE)
_STEP = 16  # bytes of an instruction, from sm_70 on
# By experiment (ptxas 13.0.88): before each kernel for sm_87 these set the convergence barriers, once.
_ON_SM87 = (
    "ISETP.NE.U32.AND P0, PT, RZ, UR2, PT",
    "",  # @P0 BRA to the end of these
    "BMOV.32 B0, 0xffffffff",
    *(f"BMOV.32.CLEAR B{barrier}, B{barrier - 1}" for barrier in range(1, 16)),
    "BMOV.32 B15, 0x0",
    "UMOV UR2, 0x1",
)


def parse(text: str, *, arch: Arch, registers: int, code_sha256: str) -> SassListing:
    """Read ``nvdisasm -c`` of a cubin with the one kernel ``probe``; ProofError with the line that is not understood.

    What pads the code after its end is left out: the branch to itself and the NOPs that follow the last EXIT. So are
    the instructions that ptxas puts before every kernel for sm_87.
    """
    remedy = f'the probe needs one kernel: extern "C" __global__ void {KERNEL}(…)'
    return _listing(read_sections(text, only=KERNEL), KERNEL, arch, registers, code_sha256, remedy)


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
    code: Mapping[str, Code], kernel: str, arch: Arch, registers: int, code_sha256: str, remedy: str
) -> SassListing:
    """Return the listing of one kernel; ProofError with the remedy if there is no code of it."""
    kept = _without_padding(*code[kernel]) if kernel in code else ()
    if not kept:
        raise ProofError(f"the listing for {arch} holds no instruction of .text.{kernel}", help=remedy)
    return SassListing(KERNEL, arch, kept, _labels(kept, code[kernel][1]), registers, code_sha256)


def parse_unit(text: str, *, arch: Arch, registers: int, code_sha256: str) -> SassListing:
    """Read ``nvdisasm -c`` of a cubin with any number of kernels, as one listing.

    They follow one another in the order of their names, each with its name as a label and without its padding;
    addresses are counted on. ``registers`` is the largest number of any. ProofError as of ``parse``.
    """
    instructions: list[Instruction] = []
    labels: dict[int, str] = {}
    code = read_sections(text)
    for name in sorted(code):
        start = instructions[-1].address + _STEP if instructions else 0
        kept = _without_padding(*code[name])
        labels |= {start + address: label for address, label in _labels(kept, code[name][1]).items()} if kept else {}
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


Code = tuple[list[Instruction], dict[str, int]]
"""A section's instructions, with the padding, and label name to address; two labels may share an address."""


def read_sections(text: str, *, only: str = "") -> dict[str, Code]:
    """Return the instructions and labels of each section ``.text.<name>``; ProofError with a line that has no known
    form. ``only``: there may be no other section."""
    code: dict[str, Code] = {}
    section, name = "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _INSTRUCTION.fullmatch(line):
            if not name:
                raise _not_understood(number, line, f"code outside of .text.{only}")
            instructions, _ = code[name]
            instructions.append(_instruction(found, number, line, expected=len(instructions) * _STEP))
        elif found := _SECTION.fullmatch(line):
            section = found["name"]
            name = section.removeprefix(".text.") if section.startswith(".text.") else ""
            if only and name and name != only:
                raise ProofError(
                    f"line {number} of the listing begins {section}: a probe has one kernel, named {KERNEL}",
                    help=f'declare it extern "C" __global__ void {KERNEL}(…), and no other',
                )
            if name:
                code.setdefault(name, ([], {}))
        elif found := _LABEL.fullmatch(line):
            if name and found["name"] not in (name, section):
                instructions, places = code[name]
                places[found["name"]] = len(instructions) * _STEP
        elif not (
            _IGNORED.fullmatch(line)
            or (_ENCODING.fullmatch(line) and any(instructions for instructions, _ in code.values()))
        ):
            raise _not_understood(number, line, "no known form of line")
    return code


def _instruction(found: re.Match[str], number: int, line: str, *, expected: int) -> Instruction:
    address = int(found["address"], 16)
    if address != expected:
        raise _not_understood(number, line, f"address {address:#x} where {expected:#x} follows")
    cls = classify(found["opcode"])
    if cls is None:
        raise _not_understood(number, line, f"unknown instruction {found['opcode'].split('.')[0]}")
    return Instruction(
        address=address,
        predicate=found["predicate"] or "",
        opcode=found["opcode"],
        operands=re.sub(r"\s+", " ", found["operands"] or ""),
        cls=cls,
    )


def _without_padding(instructions: list[Instruction], places: Mapping[str, int]) -> tuple[Instruction, ...]:
    kept = list(instructions)
    while kept and kept[-1].opcode == "NOP" and not kept[-1].predicate:
        kept.pop()
    if kept and kept[-1].opcode == "BRA" and not kept[-1].predicate:
        target = _TARGET.fullmatch(kept[-1].operands)
        if target and places.get(target["label"]) == kept[-1].address:
            kept.pop()
    first = len(_ON_SM87)
    start = {f"@P0 BRA `({label})" for label, address in places.items() if address == first * _STEP}
    alike = len(kept) > first and all(i.text == text for i, text in zip(kept, _ON_SM87, strict=False) if text)
    return tuple(kept[first:] if alike and kept[1].text in start else kept)


def _labels(instructions: tuple[Instruction, ...], places: Mapping[str, int]) -> dict[int, str]:
    """Return one label for each address: of several, one that an instruction names."""
    spoken = {found["label"] for i in instructions for found in _TARGET.finditer(i.operands)}
    inside = sorted(places.items(), key=lambda place: (place[1], place[0] in spoken))
    return {address: name for name, address in inside if address <= instructions[-1].address}


def _not_understood(number: int, line: str, why: str) -> ProofError:
    return ProofError(f"line {number} of the listing is not understood ({why}): {line.strip()}", help=_REPORT)


# --- the object file -------------------------------------------------------------------------------------------------


def code_digest(cubin: bytes, *, whole_unit: bool = False) -> str:
    """SHA-256 of the kernel's code and of all constants that it can read, of a cubin with the one kernel ``probe``.

    The constants count: a table that decides the result is outside of the code. ``whole_unit``: of all kernels that
    there are.
    """
    sections = _sections(cubin)
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


def same_code(kernel: str, listing: SassListing, one: bytes, other: bytes) -> bool:
    """Tell whether a kernel is the same in two cubins; ``listing`` is that of the first one."""
    banks = _banks(listing.instructions)
    return _digest_of(kernel, one, banks) == _digest_of(kernel, other, banks)


def has_subroutines(cubin: bytes) -> bool:
    """Return whether functions of the compiler (for a division) were linked to the kernel ``probe``."""
    code = [name.removeprefix(".text.") for name, _ in _sections(cubin) if name.startswith(".text.")]
    others = [name for name in code if name != KERNEL]
    return KERNEL in code and bool(others) and all(name.startswith("__cuda_sm") for name in others)


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
    sections = _sections(cubin)
    kernels = [name.removeprefix(".text.") for name, _ in sections if name.startswith(".text.")]
    digest = hashlib.sha256()
    for name, content in sorted(sections):
        owner = next((one for one in kernels if name.endswith(f".{one}")), kernel)
        shared = _BANK.fullmatch(name)
        if owner == kernel and not (shared and known and int(shared[1]) not in numbers):
            digest.update(f"{name.removesuffix(f'.{kernel}')}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def check_whole(text: str, cubin: bytes) -> None:
    """ProofError unless a cubin's listing has every instruction: one that was cut off reads like a short one."""
    written = len(_ADDRESS.findall(text))
    held = sum(len(content) for name, content in _sections(cubin) if name.startswith(".text.")) // _STEP
    if written != held:
        raise ProofError(
            f"the listing has {written} instructions, and the object file {held}",
            help="the disassembler was cut off, or is damaged: run it again with an empty cache",
        )


@contextmanager
def _opened(cubin: bytes) -> Iterator[elf.Elf]:
    try:
        yield elf.Elf(cubin)
    except elf.DAMAGES as error:
        raise ProofError("the probe's object file is not a cubin", help="compile again with an empty cache") from error


def _sections(cubin: bytes) -> list[tuple[str, bytes]]:
    """Name and bytes of each section that is loaded with content."""
    with _opened(cubin) as file:
        loaded = (section for section in file.sections if section.kind == elf.PROGBITS and section.flags & elf.ALLOC)
        return [(file.name(section), file.content(section)) for section in loaded]


def own_constants(kernel: str, cubin: bytes) -> tuple[int, ...]:
    """Return the words of a kernel's constant bank 2; none if the linker or the driver would still change them."""
    name = f".nv.constant2.{kernel}"
    with _opened(cubin) as file:
        by_name = {file.name(section): section for section in file.sections}
        changed = any(file.content(by_name[at]) for at in (f".rel{name}", f".rela{name}") if at in by_name)
        content = file.content(by_name[name]) if name in by_name and not changed else b""
    return struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4])


_FUNCTION = 2  # the type in st_info


def functions(cubin: bytes) -> dict[str, int]:
    """Return the functions of a cubin: by name, the address in its section. A kernel's subroutines are among them."""
    with _opened(cubin) as file:
        tables = [section for section in file.sections if section.kind == elf.SYMTAB]
        symbols = ((table, symbol) for table in tables for symbol in file.symbols(table))
        return {file.name_of(table, one): one.value for table, one in symbols if one.info & 15 == _FUNCTION}


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
