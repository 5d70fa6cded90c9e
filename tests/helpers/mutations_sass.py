"""Small changes to a kernel's machine code, one at a time, as the disassembler would write them.

Each changes one opcode, modifier, immediate, register or predicate of one instruction. The result need not be code that
a compiler would emit: an executor must notice that it computes something else.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SWAPS = {
    "FADD": "FMUL",
    "FMUL": "FADD",
    "HMUL2": "HADD2",
    "IADD3": "LOP3.LUT",
    "FSEL": "SEL",
    "SEL": "FSEL",
    "SHF.L.U32": "SHF.R.U32.HI",
    "SHF.R.U32.HI": "SHF.L.U32",
    "IMAD.WIDE": "IMAD.WIDE.U32",
    "MOV": "IMAD.MOV.U32",
}
COMPARISONS = {"GT": "GE", "GE": "GT", "LT": "LE", "LE": "LT", "EQ": "NE", "NE": "EQ", "GTU": "GEU", "GEU": "GTU"}
_REGISTER = re.compile(r"\bR(\d+)\b")
_PREDICATE = re.compile(r"\bP(\d)\b")
_HEX = re.compile(r"(?<![\w.])-?0x[0-9a-f]+(?![\w])")
_REAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.x])")
_LINE = re.compile(
    r"(?P<head>\s*/\*(?P<address>[0-9a-f]+)\*/\s+)(?P<predicate>@\S+)?\s*(?P<opcode>[A-Z]\S*)\s*(?P<operands>[^;]*?)\s*;\n"
)
Row = dict[str, str]
"""The parts of an instruction's line."""
Mutate = Callable[[Row, random.Random], Row | None]


@dataclass(frozen=True)
class Mutant:
    """A listing with one change, and a description of the change."""

    text: str
    kind: str
    change: str
    """Description: ``0x0110 FMUL R4,R7,6.1e-05 -> FADD R4,R7,6.1e-05``."""


def mutants(listing: str, *, seed: int) -> Iterator[Mutant]:
    """Yield mutants of a listing (``nvdisasm -c``) without end, each another change; the seed decides their order."""
    chance = random.Random(seed)
    lines = listing.splitlines(keepends=True)
    code = [(at, found) for at, line in enumerate(lines) if (found := _LINE.fullmatch(line))]
    code = code[: max(number for number, (_, found) in enumerate(code) if found["opcode"] == "EXIT") + 1]  # no padding
    seen = set[str]()
    for _ in range(100_000):
        at, found = chance.choice(code)
        kind, mutate = chance.choice(list(_KINDS.items()))
        one = found.groupdict()
        changed = mutate(one, chance)
        if changed is None or changed == one:
            continue
        change = f"0x{one['address']} {_shown(one)} -> {_shown(changed)}"
        if change in seen:
            continue
        seen.add(change)
        written = f"{one['head']}{_shown(changed)} ;\n"
        yield Mutant("".join([*lines[:at], written, *lines[at + 1 :]]), kind, change)


def _shown(one: Row) -> str:
    return " ".join(part for part in (one["predicate"], one["opcode"], one["operands"]) if part)


def _opcode(one: Row, chance: random.Random) -> Row | None:
    name = one["opcode"]
    return one | {"opcode": SWAPS[name]} if name in SWAPS else None


def _modifier(one: Row, chance: random.Random) -> Row | None:
    name, *modifiers = one["opcode"].split(".")
    if not modifiers:
        return None
    at = chance.randrange(len(modifiers))
    if modifiers[at] in COMPARISONS:
        modifiers[at] = COMPARISONS[modifiers[at]]
    else:
        del modifiers[at]
    return one | {"opcode": ".".join([name, *modifiers])}


def _operand(new: Callable[[re.Match[str], random.Random], str], *patterns: re.Pattern[str]) -> Mutate:
    """Return the change of one operand that one of the patterns finds."""

    def change(one: Row, chance: random.Random) -> Row | None:
        operands = one["operands"] or ""
        places = [place for pattern in patterns for place in pattern.finditer(operands)]
        if not places:
            return None
        place = chance.choice(places)
        return one | {"operands": operands[: place.start()] + new(place, chance) + operands[place.end() :]}

    return change


def _immediate(place: re.Match[str], chance: random.Random) -> str:
    if "0x" in place[0]:
        return f"{int(place[0], 16) ^ 1 << chance.randrange(max(4, abs(int(place[0], 16)).bit_length())):#x}"
    return repr(float(place[0]) * chance.choice((2.0, 0.5, 1.25, -1.0)) or 1.0)


def _register(place: re.Match[str], chance: random.Random) -> str:
    return f"R{max(0, int(place[1]) + chance.choice((-2, -1, 1, 2)))}"


def _predicate(place: re.Match[str], chance: random.Random) -> str:
    return f"P{(int(place[1]) + chance.choice((1, 2, 5))) % 7}"


_KINDS: dict[str, Mutate] = {
    "opcode": _opcode,
    "modifier": _modifier,
    "immediate": _operand(_immediate, _HEX, _REAL),
    "register": _operand(_register, _REGISTER),
    "predicate": _operand(_predicate, _PREDICATE),
}
