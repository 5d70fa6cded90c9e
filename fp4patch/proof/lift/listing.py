"""Read ``nvdisasm -json`` of a cubin: the instructions of one kernel, every field and every operand accounted for.

The disassembler's text for people (``sass.py``) is enough to judge what kind of code there is; to execute it, each
operand must be known to the last sign. A key, an attribute or an operand of an unknown form is an error, never passed
over.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from fp4patch.core.errors import ProofError
from fp4patch.core.extra import install

STEP = 16
"""Bytes of an instruction, from sm_70 on."""

_REPORT = "this nvdisasm writes text that fp4patch does not recognize: please report it with the listing"


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
class Symbol:
    """The name of a function, where a call leads."""

    name: str


@dataclass(frozen=True)
class Place:
    """``32@lo((probe + 0xf0))``: half of an address in a function, which the linker writes."""

    function: str
    offset: int
    high: bool


Operand = Register | Integer | Real | Constant | Memory | Special | Symbol | Place


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``text`` is as the disassembler wrote it."""

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
    instructions: tuple[Instruction, ...]
    words: tuple[int, ...] = ()
    """Constant bank 2: the kernel's own constants, among them tables of its branches."""


# --- the document ----------------------------------------------------------------------------------------------------

_FUNCTION_KEYS = {"function-name", "start", "length", "other-attributes", "sass-instructions"}
_INSTRUCTION_KEYS = {"predicate", "opcode", "operands", "other-attributes"}
_ATTRIBUTES = {"control-flow", "subroutine-call", "inter-warp-barrier"}
"""Attributes that repeat facts of the opcode."""


def read(
    text: str, *, kernel: str = "probe", subroutines: Mapping[str, int] | None = None, words: tuple[int, ...] = ()
) -> Listing:
    """Return the kernel's instructions from what ``nvdisasm -json`` wrote.

    ``subroutines`` holds the addresses that the cubin's symbol table gives for names that a CALL may have; ``words``
    are the kernel's own constants. Padding after the code's end is left out: NOPs, and the branch to itself before
    them. ProofError if the document, or an operand, is not understood.
    """
    head, functions = _document(text)
    try:
        functions = _whole(functions)
        listing = _kernel(head, functions, kernel)
        others, places = _subroutines(functions, listing)
        entry = min((one.address for one in listing.instructions), default=0)
        known = {**(subroutines or {}), kernel: entry, **places}
        code = (*listing.instructions, *others)
        return replace(listing, instructions=tuple(_located(one, known) for one in code), words=words)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProofError(f"nvdisasm's JSON is not of the form that is known: {error!r}", help=_REPORT) from error


def _kernel(head: dict[str, Any], functions: list[dict[str, Any]], kernel: str) -> Listing:
    version = head.get("SM", {}).get("version", {})
    major, minor = version.get("major"), version.get("minor")
    if not (isinstance(major, int) and isinstance(minor, int)):
        raise ProofError("nvdisasm's JSON does not state the architecture of its code", help=_REPORT)
    found = [function for function in functions if function.get("function-name") == kernel]
    if len(found) != 1:
        names = ", ".join(str(function.get("function-name")) for function in functions) or "no function"
        raise ProofError(
            f"the listing holds {names}, where {kernel} is to be executed",
            help='a probe has exactly one kernel: extern "C" __global__ void probe(…)',
        )
    (function,) = found
    _known(function, _FUNCTION_KEYS, f"function {kernel}")
    _known(function["other-attributes"], set(), f"function {kernel}")
    rows = function["sass-instructions"]
    if function["length"] != STEP * len(rows):
        raise ProofError(f"{kernel} is {function['length']} bytes and {len(rows)} instructions long", help=_REPORT)
    instructions = [_instruction(row, function["start"] + STEP * number) for number, row in enumerate(rows)]
    return Listing(kernel=kernel, arch=(major, minor), instructions=_without_padding(instructions))


def _subroutines(functions: list[dict[str, Any]], listing: Listing) -> tuple[list[Instruction], dict[str, int]]:
    """Return the code of the functions that a linked kernel calls, laid out behind it, and the address of each."""
    code, places = list[Instruction](), dict[str, int]()
    by_name = {function["function-name"]: function for function in functions}
    wanted = _called(listing.instructions)
    while wanted:
        name = wanted.pop()
        if name in places or name not in by_name:
            continue
        start = max(one.address for one in (*listing.instructions, *code)) + STEP
        rows = by_name[name]["sass-instructions"]
        body = _without_padding([_instruction(row, STEP * number) for number, row in enumerate(rows)])
        code += [_moved(one, start) for one in body]
        places[name] = start
        wanted |= _called(body)
    return code, places


def _called(code: Iterable[Instruction]) -> set[str]:
    calls = (one for one in code if one.opcode.startswith("CALL.ABS"))
    return {operand.name for one in calls for operand in one.operands if isinstance(operand, Symbol)}


def _moved(instruction: Instruction, by: int) -> Instruction:
    """Return an instruction that is located further on, with the address that it jumps to."""
    operands = instruction.operands
    if instruction.opcode.split(".")[0] in _JUMPS and isinstance(operands[-1], Integer):
        operands = (*operands[:-1], Integer(operands[-1].value + by))
    return replace(instruction, address=instruction.address + by, operands=operands)


_JUMPS = ("BRA", "BSSY")


def _located(instruction: Instruction, functions: Mapping[str, int]) -> Instruction:
    """Return an instruction with addresses where the disassembler writes names of functions."""

    def located(one: Operand) -> Operand:
        if isinstance(one, Symbol) and instruction.opcode.startswith("CALL.") and one.name in functions:
            return Integer(functions[one.name])
        if isinstance(one, Place) and one.function in functions:
            return Integer(0 if one.high else functions[one.function] + one.offset)
        return one

    return replace(instruction, operands=tuple(map(located, instruction.operands)))


@lru_cache(maxsize=4)
def _document(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        head, functions = json.loads(text)
    except ValueError as error:
        raise ProofError(
            "what nvdisasm wrote is not its JSON",
            help=f"install a later one: {install('cuda')}",
        ) from error
    if not isinstance(head, dict) or not isinstance(functions, list):
        raise ProofError("nvdisasm's JSON is not a head and a list of functions", help=_REPORT)
    return head, functions


def _whole(functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the functions with their subroutines in them.

    nvdisasm before 13.5 lists the subroutines of a function behind it, each as a function of its own that starts where
    the one before ended, although the function's length includes them.
    """
    joined: list[dict[str, Any]] = []
    for function in functions:
        rows, before = function["sass-instructions"], joined[-1] if joined else None
        held = before["sass-instructions"] if before else []
        if before and STEP * len(held) < before["length"] and function["start"] == before["start"] + STEP * len(held):
            joined[-1] = before | {"sass-instructions": [*held, *rows]}
        else:
            joined.append(function)
    return joined


def _known(row: Any, keys: set[str], where: str) -> None:
    if strange := set(row) - keys:
        raise ProofError(f"{where} has {', '.join(sorted(strange))}, which is not understood", help=_REPORT)


_RUN_TOGETHER = re.compile(r"(?<![\w.\]])(R\d+|RZ)(?=\[)")
"""A register and the address behind it: nvdisasm before 13.5 writes ``LDG.E R4[R6.64]`` without a comma."""


def _instruction(row: dict[str, Any], address: int) -> Instruction:
    if not all(isinstance(row.get(key, ""), str) for key in ("predicate", "opcode", "operands")):
        raise TypeError(f"{address:#06x} is no text")
    row = row | {"operands": _RUN_TOGETHER.sub(r"\1,", row.get("operands", ""))}
    said = " ".join(str(row[key]) for key in ("predicate", "opcode", "operands") if row.get(key))
    where = f"{address:#06x} {said}"
    _known(row, _INSTRUCTION_KEYS, where)
    _known(row.get("other-attributes", {}), _ATTRIBUTES, where)
    # nvdisasm writes "PR P2R R0,RZ,0x2": all predicates are an operand there, which the opcode states, and no guard.
    predicate = row.get("predicate") if (row.get("predicate"), row.get("opcode")) != ("PR", "P2R") else None
    guard = _register(predicate.removeprefix("@")) if predicate else None
    if predicate and not (predicate.startswith("@") and guard and guard.file in ("P", "UP")):
        raise ProofError(f"the predicate of {where} is not understood", help=_REPORT)
    return Instruction(
        address=address,
        opcode=row["opcode"],
        operands=tuple(_operand(part, where) for part in _split(row.get("operands", ""))),
        predicate=guard,
        text=said,
    )


def _without_padding(instructions: list[Instruction]) -> tuple[Instruction, ...]:
    kept = list(instructions)
    while kept and kept[-1].opcode == "NOP":
        kept.pop()
    if kept and kept[-1].opcode == "BRA" and kept[-1].operands == (Integer(kept[-1].address),):
        kept.pop()
    return tuple(kept)


def _split(operands: str) -> list[str]:
    """At commas outside of brackets."""
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]|[^,\[])+", operands)] if operands else []


_REGISTER = re.compile(
    r"(?P<sign>[-~!]?)(?P<bar>\|?)(?P<file>UR|UP|R|P|B)(?P<index>Z|T|\d+)(?P=bar)"
    # .reuse applies to a cache, not to the value
    r"(?:\.reuse)?(?:\.(?P<part>H0_H0|H1_H1|H1|B[0-3]|64|X4|X8|X16|F32x2\.HI_LO(?:\.NP)?|F32))?(?:\.reuse)?"
)
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_REAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?|[-+](?:INF|QNAN)")
_CONSTANT = re.compile(
    r"(?P<sign>[-~]?)(?P<bar>\|?)c\[(?P<bank>0x[0-9a-f]+)\]"
    r"\[(?P<register>U?R(?:Z|\d+))?\+?(?P<offset>-?0x[0-9a-f]+)?\](?P=bar)"
)
_MEMORY = re.compile(
    r"(?:desc\[(?P<descriptor>UR\d+)\])?"
    r"\[(?P<base>U?R(?:Z|\d+)(?:\.(?:64|X4|X8|X16))?)(?:\+(?P<uniform>UR(?:Z|\d+)))?(?:\+?(?P<offset>-?0x[0-9a-f]+))?\]"
)
_SPECIAL = re.compile(r"SR_?[A-Za-z0-9_.]+")
_PLACE = re.compile(r"32@(?P<half>lo|hi)\(\((?P<function>[$_a-z][$\w]*) \+ (?P<offset>0x[0-9a-f]+)\)\)")
_SYMBOL = re.compile(r"[$_a-z][$\w]*")


def _operand(text: str, where: str) -> Operand:  # noqa: PLR0911 - one return a form
    if register := _register(text):
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
        return Symbol(text)
    if found := _PLACE.fullmatch(text):
        return Place(found["function"], int(found["offset"], 16), high=found["half"] == "hi")
    raise ProofError(f"operand {text} of {where} is not understood", help=_REPORT)


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
