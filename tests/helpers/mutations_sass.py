"""Small changes to a kernel's machine code, one at a time, as the disassembler would write them.

Each changes one opcode, modifier, immediate, register or predicate of one instruction. The result need not be code that
a compiler would emit: an executor must notice that it computes something else.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Mutant:
    """A listing with one change, and a description of the change."""

    text: str
    kind: str
    change: str
    """Description: ``0x0110 FMUL R4,R7,6.1e-05 -> FADD R4,R7,6.1e-05``."""


def mutants(listing: str, *, seed: int) -> Iterator[Mutant]:
    """Yield mutants of a listing (``nvdisasm -json``) without end, each another change, in an order decided by the
    seed."""
    chance = random.Random(seed)
    document = json.loads(listing)
    code = document[1][0]["sass-instructions"]
    length = _length(code)
    seen = set[str]()
    for _ in range(100_000):
        at = chance.randrange(length)
        kind, mutate = chance.choice(list(_KINDS.items()))
        changed = mutate(copy.deepcopy(code[at]), chance)
        if changed is None or changed == code[at]:
            continue
        change = f"{at * 16:#06x} {_shown(code[at])} -> {_shown(changed)}"
        if change in seen:
            continue
        seen.add(change)
        copied = copy.deepcopy(document)
        copied[1][0]["sass-instructions"][at] = changed
        yield Mutant(json.dumps(copied), kind, change)


def _length(code: list[dict[str, Any]]) -> int:
    """Return the number of instructions up to the last EXIT; the rest is padding."""
    return max(at for at, one in enumerate(code) if one["opcode"] == "EXIT") + 1


def _shown(one: dict[str, Any]) -> str:
    predicate = one.get("predicate")
    return " ".join(str(part) for part in (predicate, one["opcode"], one.get("operands", "")) if part)


def _opcode(one: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    name = one["opcode"]
    return one | {"opcode": SWAPS[name]} if name in SWAPS else None


def _modifier(one: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    name, *modifiers = one["opcode"].split(".")
    if not modifiers:
        return None
    at = chance.randrange(len(modifiers))
    if modifiers[at] in COMPARISONS:
        modifiers[at] = COMPARISONS[modifiers[at]]
    else:
        del modifiers[at]
    return one | {"opcode": ".".join([name, *modifiers])}


def _immediate(one: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    operands = one.get("operands", "")
    places = [*_HEX.finditer(operands), *_REAL.finditer(operands)]
    if not places:
        return None
    place = chance.choice(places)
    if "0x" in place[0]:
        value = int(place[0], 16) ^ 1 << chance.randrange(max(4, abs(int(place[0], 16)).bit_length()))
        new = f"{value:#x}"
    else:
        new = repr(float(place[0]) * chance.choice((2.0, 0.5, 1.25, -1.0)) or 1.0)
    return one | {"operands": operands[: place.start()] + new + operands[place.end() :]}


def _register(one: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    operands = one.get("operands", "")
    places = list(_REGISTER.finditer(operands))
    if not places:
        return None
    place = chance.choice(places)
    number = max(0, int(place[1]) + chance.choice((-2, -1, 1, 2)))
    return one | {"operands": f"{operands[: place.start()]}R{number}{operands[place.end() :]}"}


def _predicate(one: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    operands = one.get("operands", "")
    places = list(_PREDICATE.finditer(operands))
    if not places:
        return None
    place = chance.choice(places)
    number = (int(place[1]) + chance.choice((1, 2, 5))) % 7
    return one | {"operands": f"{operands[: place.start()]}P{number}{operands[place.end() :]}"}


_KINDS = {
    "opcode": _opcode,
    "modifier": _modifier,
    "immediate": _immediate,
    "register": _register,
    "predicate": _predicate,
}
