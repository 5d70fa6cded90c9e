"""Read a disassembler's listing into instructions, and account for every line of it.

A line that no documented form matches is an error with the line: a listing that was half understood proves nothing.
Written for ``nvdisasm -c`` of CUDA 12.9 to 13.5, code for sm_90 and later.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache

from fp4patch.sass import elf
from fp4patch.sass.error import SassError
from fp4patch.sass.instruction import Instruction, InstructionClass

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


@cache
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
STEP = 16  # bytes of an instruction, from sm_70 on
# By experiment (ptxas 13.0.88): before each kernel for sm_87 these set the convergence barriers, once.
_ON_SM87 = (
    "ISETP.NE.U32.AND P0, PT, RZ, UR2, PT",
    "",  # @P0 BRA to the end of these
    "BMOV.32 B0, 0xffffffff",
    *(f"BMOV.32.CLEAR B{barrier}, B{barrier - 1}" for barrier in range(1, 16)),
    "BMOV.32 B15, 0x0",
    "UMOV UR2, 0x1",
)


Code = tuple[list[Instruction], dict[str, int]]
"""A section's instructions, with the padding, and label name to address; two labels may share an address."""


@lru_cache(maxsize=32)  # targets of a generation often have the same listing
def read_sections(text: str) -> dict[str, Code]:
    """Return the instructions and labels of each section ``.text.<name>``; SassError with a line that has no known
    form."""
    code: dict[str, Code] = {}
    section, name = "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _INSTRUCTION.fullmatch(line):
            if not name:
                raise _not_understood(number, line, "code outside of a section of code")
            instructions, _ = code[name]
            instructions.append(_instruction(found, number, line, expected=len(instructions) * STEP))
        elif found := _SECTION.fullmatch(line):
            section = found["name"]
            name = section.removeprefix(".text.") if section.startswith(".text.") else ""
            if name:
                code.setdefault(name, ([], {}))
        elif found := _LABEL.fullmatch(line):
            if name and found["name"] not in (name, section):
                instructions, places = code[name]
                places[found["name"]] = len(instructions) * STEP
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
        operands=" ".join((found["operands"] or "").split()),
        cls=cls,
    )


def without_padding(instructions: list[Instruction], places: Mapping[str, int]) -> tuple[Instruction, ...]:
    """Return the instructions without what pads the code after its end, and without the row before sm_87's kernels."""
    kept = list(instructions)
    while kept and kept[-1].opcode == "NOP" and not kept[-1].predicate:
        kept.pop()
    if kept and kept[-1].opcode == "BRA" and not kept[-1].predicate:
        target = _TARGET.fullmatch(kept[-1].operands)
        if target and places.get(target["label"]) == kept[-1].address:
            kept.pop()
    first = len(_ON_SM87)
    start = {f"@P0 BRA `({label})" for label, address in places.items() if address == first * STEP}
    alike = len(kept) > first and all(i.text == text for i, text in zip(kept, _ON_SM87, strict=False) if text)
    return tuple(kept[first:] if alike and kept[1].text in start else kept)


def labels(instructions: tuple[Instruction, ...], places: Mapping[str, int]) -> dict[int, str]:
    """Return one label for each address: of several, one that an instruction names."""
    spoken = set(_TARGET.findall("\n".join(i.operands for i in instructions)))
    inside = sorted(places.items(), key=lambda place: (place[1], place[0] in spoken))
    return {address: name for name, address in inside if address <= instructions[-1].address}


def _not_understood(number: int, line: str, why: str) -> SassError:
    return SassError(f"line {number} of the listing is not understood ({why}): {line.strip()}", help=_REPORT)


# --- the object file -------------------------------------------------------------------------------------------------


@contextmanager
def opened(cubin: bytes) -> Iterator[elf.Elf]:
    """Read the tables of a cubin; SassError where they are damaged."""
    try:
        yield elf.Elf(cubin)
    except elf.DAMAGES as error:
        raise SassError("the object file is not a cubin", help="compile it again") from error


@lru_cache(maxsize=4)  # it is asked for each kernel of a cubin
def loaded_sections(cubin: bytes) -> list[tuple[str, bytes]]:
    """Name and bytes of each section that is loaded with content."""
    with opened(cubin) as file:
        loaded = (section for section in file.sections if section.kind == elf.PROGBITS and section.flags & elf.ALLOC)
        return [(file.name(section), file.content(section)) for section in loaded]


def own_constants(kernel: str, cubin: bytes) -> tuple[int, ...]:
    """Return the words of a kernel's constant bank 2; none if the linker or the driver would still change them."""
    name = f".nv.constant2.{kernel}"
    with opened(cubin) as file:
        by_name = {file.name(section): section for section in file.sections}
        changed = any(file.content(by_name[at]) for at in (f".rel{name}", f".rela{name}") if at in by_name)
        content = file.content(by_name[name]) if name in by_name and not changed else b""
    return struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4])


def own_shared(kernel: str, cubin: bytes) -> int:
    """Return the bytes of a kernel's own shared memory, with those of the system before them."""
    with opened(cubin) as file:
        return next((one.size for one in file.sections if file.name(one) == f".nv.shared.{kernel}"), 0)


_PARAMETER = 0x1704  # EIATTR_KPARAM_INFO with a size


def parameters(kernel: str, cubin: bytes) -> tuple[tuple[int, int], ...]:
    """Return the offset and the size in bytes of each parameter of a kernel (EIATTR_KPARAM_INFO)."""
    found = dict[int, tuple[int, int]]()
    with opened(cubin) as file:
        sections = [section for section in file.sections if file.name(section) == f".nv.info.{kernel}"]
        content = file.content(sections[0]) if sections else b""
    at = 0
    while at + 4 <= len(content):
        form, kind, size = struct.unpack_from("<BBH", content, at)
        if (kind << 8 | form) == _PARAMETER:
            _, ordinal, offset, features = struct.unpack_from("<IHHI", content, at + 4)
            found[ordinal] = (offset, features >> 18)
        at += 4 + (size if form == 4 else 0)
    return tuple(found[ordinal] for ordinal in sorted(found))


_FUNCTION = 2  # the type in st_info


@lru_cache(maxsize=4)
def functions(cubin: bytes) -> dict[str, int]:
    """Return the functions of a cubin: by name, the address in its section. A kernel's subroutines are among them."""
    with opened(cubin) as file:
        tables = [section for section in file.sections if section.kind == elf.SYMTAB]
        symbols = ((table, symbol) for table in tables for symbol in file.symbols(table))
        return {file.name_of(table, one): one.value for table, one in symbols if one.info & 15 == _FUNCTION}
