"""Read the operands of one kernel's instructions: to execute them, each must be known to the last sign.

``sass`` reads what ``nvdisasm -c`` writes as lines; an operand of an unknown form is an error here, never passed over.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fp4patch.sass import text as sass
from fp4patch.sass.error import SassError
from fp4patch.sass.instruction import Instruction
from fp4patch.sass.text import STEP

_REPORT = "this nvdisasm writes text that is not recognized: please report it with the listing"


# --- operands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Register:
    """``R7``, ``UR4``, ``P0``, ``UP1`` or ``B2``, with what is done to its value when it is read."""

    file: Literal["R", "UR", "P", "UP", "B"]
    index: int | None
    """None: RZ and URZ, which are zero, or PT and UPT, which are true."""
    negated: bool = False
    """``-R7``."""
    absolute: bool = False
    """``|R7|``; with ``negated``, -|R7|."""
    inverted: bool = False
    """``~R7``, or ``!P0``."""
    part: str = ""
    """Selected part: ``H0_H0``, ``H1_H1``, ``B0`` to ``B3``; ``64`` for a pair; ``X4`` for an index that
    is scaled."""


@dataclass(frozen=True)
class Integer:
    """``0x80``, ``-0x1``."""

    value: int


@dataclass(frozen=True)
class Real:
    """A floating-point immediate, ``0.99755859375``, ``-1.5e-05``, ``+INF``: a decimal exact enough for its type."""

    text: str


@dataclass(frozen=True)
class Constant:
    """``c[0x0][0x210]`` or ``c[0x3][R4+0x10]``."""

    bank: int
    offset: int
    register: Register | None = None
    negated: bool = False
    absolute: bool = False
    inverted: bool = False


@dataclass(frozen=True)
class Memory:
    """``[R2.64+0x10]``, ``desc[UR4][R2.64]``, ``[UR4]``: a base, and a uniform register and an offset to be added."""

    base: Register
    offset: int = 0
    uniform: Register | None = None
    descriptor: Register | None = None


@dataclass(frozen=True)
class Special:
    """``SR_TID.X``, a special register."""

    name: str


@dataclass(frozen=True)
class FunctionName:
    """The name of a function, where a call leads."""

    name: str


Operand = Register | Integer | Real | Constant | Memory | Special | FunctionName


@dataclass(frozen=True)
class Decoded:
    """One instruction with its operands. ``text`` is as the disassembler wrote it."""

    address: int
    opcode: str
    """With its modifiers: ``FMNMX.XORSIGN``."""
    operands: tuple[Operand, ...]
    predicate: Register | None
    """It is executed where this holds; None: always."""
    text: str


@dataclass(frozen=True)
class Listing:
    """One kernel. Its instructions are ``STEP`` apart."""

    kernel: str
    arch: tuple[int, int]
    """Compute capability: (12, 1)."""
    instructions: tuple[Decoded, ...]
    words: tuple[int, ...] = ()
    """Constant bank 2: the kernel's own constants, among them tables of its branches."""


# --- the kernel ------------------------------------------------------------------------------------------------------


def read(text: str, *, arch: tuple[int, int], kernel: str = "", words: tuple[int, ...] = ()) -> Listing:
    """Return a kernel's instructions from what ``nvdisasm -c`` wrote of a cubin.

    ``arch`` is its compute capability. Without a name, the kernel is the first one. ``words`` are its own constants.
    Functions of the compiler that are linked to it follow it. Padding after the code's end is left out: NOPs, and the
    branch to itself before them. SassError if a line or an operand is not understood.
    """
    sections = sass.read_sections(text)
    kernel = kernel or next(iter(sections), "")
    if kernel not in sections:
        raise SassError(
            f"the listing holds {', '.join(sections) or 'no function'}, where {kernel or 'one'} is to be executed",
            help="name a kernel of the cubin",
        )
    starts, code = {kernel: 0}, _code(kernel, sections, 0)
    wanted = _called(code)
    while wanted:
        name = wanted.pop()
        if name in sections and name not in starts:
            starts[name] = code[-1].address + STEP
            code += (body := _code(name, sections, starts[name]))
            wanted |= _called(body)
    located = tuple(_located(one, starts) for one in code)
    return Listing(kernel=kernel, arch=arch, instructions=located, words=words)


def _code(name: str, sections: Mapping[str, sass.Code], start: int) -> list[Decoded]:
    """Return the instructions of a section that is located at ``start``."""
    instructions, places = sections[name]
    labels = {label: start + address for label, address in places.items()}
    kept = sass.without_padding(instructions, places)
    return [_decoded(one, start + one.address, labels) for one in kept]


def _called(code: Iterable[Decoded]) -> set[str]:
    calls = (one for one in code if one.opcode.startswith("CALL.ABS"))
    return {operand.name for one in calls for operand in one.operands if isinstance(operand, FunctionName)}


def _located(instruction: Decoded, starts: Mapping[str, int]) -> Decoded:
    """Return an instruction with addresses where the disassembler writes names of functions."""

    def located(one: Operand) -> Operand:
        if isinstance(one, FunctionName) and instruction.opcode.startswith("CALL.") and one.name in starts:
            return Integer(starts[one.name])
        return one

    return replace(instruction, operands=tuple(map(located, instruction.operands)))


_LABEL = re.compile(r"`\(([.$\w]+)\)")
_NOTE = re.compile(r'\s*\(\*".*?"\*\)')  # BRX R4 -0x130 (*"BRANCH_TARGETS .L_x_26,.L_x_27"*)
_NO_COMMA = re.compile(r"^(U?R\d+) (?=\S)")  # RET.REL.NODEC R10 `(probe)
# Example: 32@lo((probe + .L_x_0@srel))
_PLACE = re.compile(r"32@(?P<half>lo|hi)\(\([$\w]+ \+ (?P<label>[.$\w]+)@srel\)\)")


def _decoded(one: Instruction, address: int, labels: Mapping[str, int]) -> Decoded:
    """Return an instruction with its operands; ``labels`` are the addresses of the section's."""

    def place(found: re.Match[str]) -> str:
        """Half of an address in the function, which the linker writes; the lower one is all of it here."""
        if found["label"] not in labels:
            return found[0]
        return "0x0" if found["half"] == "hi" else f"{labels[found['label']]:#x}"

    operands = _NO_COMMA.sub(r"\1, ", _NOTE.sub("", one.operands))
    operands = _LABEL.sub(lambda found: f"{labels[found[1]]:#x}" if found[1] in labels else found[1], operands)
    operands = _PLACE.sub(place, operands)
    text = " ".join(part for part in (one.predicate, one.opcode, operands) if part)
    where = f"{address:#06x} {text}"
    parts = _split(operands)
    if one.opcode in ("P2R", "UP2UR", "R2P"):  # P2R R0, PR, RZ, 0x2: all predicates, which the opcode states
        parts = [part for part in parts if part not in ("PR", "UPR")]
    return Decoded(
        address=address,
        opcode=one.opcode,
        operands=tuple(_operand(part, where) for part in parts),
        predicate=_register(one.predicate.removeprefix("@")),
        text=text,
    )


def _split(operands: str) -> list[str]:
    """At commas outside of brackets and braces."""
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]|\{[^}]*\}|[^,\[{])+", operands)] if operands else []


# Example: -|R2|.reuse.H1_H1
_REGISTER = re.compile(
    r"(?P<sign>[-~!]?)(?P<bar>\|?)(?P<file>UR|UP|R|P|B)(?P<index>Z|T|\d+)(?P=bar)"
    # .reuse applies to a cache, not to the value
    r"(?:\.reuse)?(?:\.(?P<part>H0_H0|H1_H1|H1|B[0-3]|64|ROW|COL|X4|X8|X16|F32x2\.HI_LO(?:\.NP)?|F32))?(?:\.reuse)?"
)
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
# Example: -1.5e-05
_REAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?|[-+](?:INF|QNAN)")
# Example: -c[0x3][R2+0x10]
_CONSTANT = re.compile(
    r"(?P<sign>[-~]?)(?P<bar>\|?)c\[(?P<bank>0x[0-9a-f]+)\]"
    r"\[(?P<register>U?R(?:Z|\d+))?\+?(?P<offset>-?0x[0-9a-f]+)?\](?P=bar)"
)
# Example: desc[UR4][R2.64+UR6+-0x10]
_MEMORY = re.compile(
    r"(?:desc\[(?P<descriptor>UR\d+)\])?"
    r"\[(?P<base>U?R(?:Z|\d+)(?:\.(?:64|X4|X8|X16))?)(?:\+(?P<uniform>UR(?:Z|\d+)))?(?:\+?(?P<offset>-?0x[0-9a-f]+))?\]"
)
_RETURN = {"Rpc.LO": Register("R", 256), "Rpc.HI": Register("R", 257)}
"""The register of the return address, behind all others: code also keeps other values in it."""
# Example: {5,4,3,2,1,0}
_SPECIAL = re.compile(r"SR_?[A-Za-z0-9_.]+|SB\d|desc\[UR\d+\]|\{\d(?:,\d)*\}")
_SYMBOL = re.compile(r"[$_a-z][$\w]*")


def _operand(text: str, where: str) -> Operand:  # noqa: PLR0911 - one return a form
    if register := _register(text) or _RETURN.get(text):
        return register
    if _INTEGER.fullmatch(text):
        return Integer(int(text, 16))
    if _REAL.fullmatch(text):
        return Real(text)
    if found := _CONSTANT.fullmatch(text):
        return Constant(
            bank=int(found["bank"], 16),
            offset=int(found["offset"] or "0", 16),
            register=_register(found["register"] or ""),
            negated=found["sign"] == "-",
            absolute=bool(found["bar"]),
            inverted=found["sign"] == "~",
        )
    if found := _MEMORY.fullmatch(text):
        base = _register(found["base"])
        assert base
        return Memory(
            base=base,
            offset=int(found["offset"] or "0", 16),
            uniform=_register(found["uniform"] or ""),
            descriptor=_register(found["descriptor"] or ""),
        )
    if _SPECIAL.fullmatch(text):
        return Special(text)
    if _SYMBOL.fullmatch(text):
        return FunctionName(text)
    raise SassError(f"operand {text} of {where} is not understood", help=_REPORT)


def _register(text: str) -> Register | None:
    found = _REGISTER.fullmatch(text)
    if not found:
        return None
    file: Any = found["file"]
    predicate = file in ("P", "UP")
    if (found["index"] == "T") > predicate or (found["index"] == "Z") > (file in ("R", "UR")):
        return None
    if found["sign"] in ("-", "~") if predicate else found["sign"] == "!":
        return None
    if predicate and (found["bar"] or found["part"]):
        return None
    return Register(
        file=file,
        index=int(found["index"]) if found["index"].isdigit() else None,
        negated=found["sign"] == "-",
        absolute=bool(found["bar"]),
        inverted=found["sign"] in ("~", "!"),
        part=found["part"] or "",
    )
