"""Lanes are alike only where the machine code does the same to each value; symbols mean what the host computes."""

from __future__ import annotations

import gzip
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from test_semantics import CASES, golden_texts, instruction

from fp4patch.sass.bit_functions import OTHER, Bit, Symbols, Word
from fp4patch.sass.c_evaluator import Evaluator, NotFollowedError
from fp4patch.sass.flow import flow
from fp4patch.sass.lane_equality import groups, lane_functions, rotations
from fp4patch.sass.listing import Listing, read
from fp4patch.sass.operands import LAYOUTS, Operands
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.translate import RUNTIME, runtime

LISTINGS = Path(__file__).parent / "golden/listings"
APART = tuple((lane,) for lane in range(8))


def listing(name: str) -> Listing:
    return read(gzip.decompress((LISTINGS / f"cutlass-{name}.txt.gz").read_bytes()).decode(), arch=(9, 0))


def found(one: Listing, bits: int = 32) -> tuple[tuple[int, ...], ...]:
    return groups(lane_functions(one, flow(one), lanes=8, bits=bits, stored=4))


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("4.2.1.next2.encode-float-x8", 32),
        ("4.7.0.next3.encode-float-x8", 32),
        ("4.7.0.next3.encode-half-x8", 16),
        ("4.7.0.next3.encode-bfloat16-x8", 16),
        ("4.7.0.pristine.encode-float-x8", 32),
        ("4.7.0.pristine.encode-half-x8", 16),
    ],
)
def test_code_without_loops_does_the_same_to_each_value(name: str, bits: int) -> None:
    assert found(listing(name), bits) == (tuple(range(8)),)


def test_code_with_loops_is_not_followed() -> None:
    assert found(listing("4.2.1.pristine.encode-float-x8")) == APART


def test_kernels_with_the_same_function_are_found_and_others_are_told_apart() -> None:
    symbols = Symbols()

    def functions(one: Listing) -> set[object]:
        return set(lane_functions(one, flow(one), lanes=8, bits=32, stored=4, symbols=symbols))

    usual = functions(listing("4.7.0.next3.encode-float-x8"))
    assert len(usual) == 1
    assert None not in usual
    assert functions(changed(0xC0, "6.115436553955078125e-05", "6.11543655395507812e-05")) == usual  # the same float
    assert functions(changed(0xC0, "6.115436553955078125e-05", "6.1154e-05")) > usual
    assert not functions(listing("4.7.0.pristine.encode-float-x8")) & usual


def changed(address: int, before: str, after: str) -> Listing:
    """The code of eight floats by half_pair with one instruction changed."""
    one = listing("4.7.0.next3.encode-float-x8")
    (old,) = (i for i in one.instructions if i.address == address)
    assert before in old.text
    new = replace(instruction(old.text.replace(before, after)), address=address)
    return replace(one, instructions=tuple(new if i is old else i for i in one.instructions))


@pytest.mark.parametrize(
    ("address", "before", "after", "alone"),
    [
        (0xC0, "6.115436553955078125e-05", "6.11543655395507812e-05", ()),  # the same float
        (0xC0, "6.115436553955078125e-05", "6.1154e-05", (0,)),
        (0x100, "FMUL R7, R8", "FMUL R7, |R8|", (4,)),
        (0x1B0, "0.0003662109375, 0.0003662109375", "0.0003662109375, 0.000244140625", (4,)),
        (0x1E0, "|R8|", "|R7|", (5, 7)),  # other values
        (0x160, "-RZ", "R4", (0, 2)),  # depends on another value
        (0x270, "0xf0f0f0f", "0xf0f0f0e", (0,)),
        (0x230, "0x8080808", "0x8080818", (1,)),
        (0x110, "R6, R6, R13", "R6, R13, R6", (0, 2)),  # values swapped
    ],
)
def test_a_lane_that_is_treated_otherwise_is_apart(
    address: int, before: str, after: str, alone: tuple[int, ...]
) -> None:
    there = found(changed(address, before, after))
    rest = tuple(lane for lane in range(8) if lane not in alone)
    assert rest in there
    assert all((lane,) in there or lane in rest for lane in range(8))


def test_each_group_gets_every_input() -> None:
    assert rotations([tuple(range(8))]) == (0,)
    assert rotations([(0, 2, 4, 6), (1, 3, 5, 7)]) == (0, 1)
    assert rotations([(0, 1, 2, 3), (4, 5, 6, 7)]) == (0, 4)
    assert rotations(APART) == tuple(range(8))
    assert rotations([(0,)]) == (0,)


def integers() -> list[str]:
    """Instructions of every known form that compute with integers alone."""
    texts = {text for text, _, _ in CASES}
    texts |= {text for text in golden_texts() if " " in text}
    opcodes = ("MOV", "SEL", "IADD", "IMAD", "LEA", "SHF.", "LOP3", "PLOP3", "PRMT", "ISETP", "VI", "UI", "US", "UL")
    found: dict[object, str] = {}
    for text in sorted(texts):
        opcode = text.split()[0]
        if opcode in TABLE and opcode.startswith(opcodes) and "c[" not in text:
            found.setdefault((opcode, text.count("-"), text.count("~"), text.count("0x")), text)
    return list(found.values())


def test_symbols_mean_what_the_host_computes(tmp_path: Path) -> None:
    """Registers are parts of one long value; the diagrams of the results are evaluated for random ones."""
    rng, lines, expected = random.Random(7), [], []
    for number, text in enumerate(integers()):
        operands = Operands(instruction(text), LAYOUTS[12])
        body = TABLE[instruction(text).opcode].emit(operands)
        names = sorted(operands.read)
        symbols = Symbols()
        whole = symbols.of_value(0, 32 * len(names))
        zero = Bit(0, None)
        registers: dict[str, Word] = {
            name: whole[at :: len(names)] if "p" not in name else (whole[at], *(zero,) * 31)
            for at, name in enumerate(names)
        }
        evaluator = Evaluator(symbols, lambda _: (OTHER,) * 32, lambda _, bits: (OTHER,) * bits)
        try:
            written = evaluator.run(body, registers, lambda *_: None)
        except NotFollowedError:
            pytest.fail(text)
        for _ in range(3):
            values = {name: rng.getrandbits(1 if "p" in name else 32) for name in names}
            atoms = {whole[at :: len(names)][bit].diagram: values[name] >> bit & 1 for at, name in enumerate(names)
                     for bit in range(32)}  # fmt: skip
            lines += ["{", *(f"uint32_t {name} = {value:#x}u;" for name, value in values.items()), "{", *body, "}"]
            lines += [f'printf("{number} {name} %x\\n", {name});' for name in written] + ["}"]
            expected += [(text, name, evaluated(symbols, word, atoms)) for name, word in written.items()]
    (tmp_path / RUNTIME).write_text(runtime())
    program = ["#include <stdio.h>", '#include "runtime.h"', "int main(void) {", *lines, "return 0; }"]
    (tmp_path / "main.c").write_text("\n".join(program))
    subprocess.run(["gcc", "-std=gnu11", "-w", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    known = 0
    for (text, name, word), line in zip(expected, out.splitlines(), strict=True):
        value = int(line.split()[2], 16)
        for bit, got in enumerate(word):
            known += got is not None
            assert got is None or got == value >> bit & 1, (text, name, bit)
    assert known > 32 * len(expected) * 0.8


def evaluated(symbols: Symbols, word: Word, atoms: dict[int, int]) -> list[int | None]:
    """The bits of a word; None for one that depends on an operation that is not followed."""
    bits: list[int | None] = []
    values = {symbols._parts[diagram][0]: value for diagram, value in atoms.items() if diagram > 1}
    for bit in word:
        at = bit.diagram
        while at > 1 and symbols._parts[at][0] in values:
            at = symbols._parts[at][1 + values[symbols._parts[at][0]]]
        bits.append(at if at in (0, 1) else None)
    return bits
