"""A code is a function of its value alone, the same in each lane, or it is not; symbols mean what the host computes."""

import gzip
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from listings import ARCH, document
from test_semantics import CASES, golden_texts, instruction

from fp4patch.sass.bit_functions import OTHER, Bit, Symbols, Word
from fp4patch.sass.expressions import Set, statements
from fp4patch.sass.flow import flow
from fp4patch.sass.folding import Folder, NotFollowedError, extended
from fp4patch.sass.lane_equality import lane_functions, loops
from fp4patch.sass.listing import Listing, read
from fp4patch.sass.operands import LAYOUTS, Operands
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.translate import RUNTIME, runtime

LISTINGS = Path(__file__).parent / "golden/listings"


def listing(name: str) -> Listing:
    return read(gzip.decompress((LISTINGS / f"cutlass-{name}.txt.gz").read_bytes()).decode(), arch=(9, 0))


def found(one: Listing, bits: int = 32, stored: int = 4, symbols: Symbols | None = None) -> tuple[tuple[int, ...], ...]:
    return lane_functions(one, flow(one), lanes=8, bits=bits, stored=stored, symbols=symbols)


@pytest.mark.parametrize(
    ("name", "bits", "stored"),
    [
        ("4.2.1.next2.encode-float-x8", 32, 4),
        ("4.7.0.next3.encode-float-x8", 32, 4),
        ("4.7.0.next3.encode-half-x8", 16, 4),
        ("4.7.0.pristine.encode-half-x8", 16, 4),
        # Four values together select bytes of a table, each by bits of its own.
        ("4.7.0.next3.e2m1-to-half-x8", 4, 16),
        ("4.7.0.next3.e2m1-to-float-x8", 4, 32),
    ],
)
def test_code_without_loops_does_the_same_to_each_value(name: str, bits: int, stored: int) -> None:
    assert len(set(found(listing(name), bits, stored))) == 1


def test_code_with_loops_is_not_followed() -> None:
    one = listing("4.2.1.pristine.encode-float-x8")
    assert loops(flow(one))
    with pytest.raises(NotFollowedError, match="a loop"):
        found(one)


def test_kernels_with_the_same_function_are_found_and_others_are_told_apart() -> None:
    symbols = Symbols()
    usual = set(found(listing("4.7.0.next3.encode-float-x8"), symbols=symbols))
    same = changed(0xC0, "6.115436553955078125e-05", "6.11543655395507812e-05")  # the same float
    assert set(found(same, symbols=symbols)) == usual
    assert set(found(changed(0xC0, "6.115436553955078125e-05", "6.1154e-05"), symbols=symbols)) > usual
    assert not set(found(listing("4.7.0.pristine.encode-float-x8"), symbols=symbols)) & usual


def changed(address: int, before: str, after: str) -> Listing:
    """The code of eight floats by half_pair with one instruction changed."""
    one = listing("4.7.0.next3.encode-float-x8")
    (old,) = (i for i in one.instructions if i.address == address)
    assert before in old.text
    new = replace(instruction(old.text.replace(before, after)), address=address)
    return replace(one, instructions=tuple(new if i is old else i for i in one.instructions))


@pytest.mark.parametrize(
    ("address", "before", "after", "apart"),
    [
        (0xC0, "6.115436553955078125e-05", "6.1154e-05", (0,)),
        (0x100, "FMUL R7, R8", "FMUL R7, |R8|", (4,)),
        (0x270, "0xf0f0f0f", "0xf0f0f0e", (0,)),
        (0x230, "0x8080808", "0x8080818", (1,)),
    ],
)
def test_a_lane_that_is_treated_otherwise_is_apart(
    address: int, before: str, after: str, apart: tuple[int, ...]
) -> None:
    functions = found(changed(address, before, after))
    others = {function for lane, function in enumerate(functions) if lane not in apart}
    assert len(others) == 1
    assert not others & {functions[lane] for lane in apart}


@pytest.mark.parametrize(
    ("address", "before", "after"),
    [
        (0x1E0, "|R8|", "|R7|"),  # another value
        (0x160, "-RZ", "R4"),  # one more
        (0x110, "R6, R6, R13", "R6, R13, R6"),  # values swapped
    ],
)
def test_a_code_of_other_values_is_named(address: int, before: str, after: str) -> None:
    with pytest.raises(NotFollowedError, match="depends on more than its value"):
        found(changed(address, before, after))


HEAD = [
    "S2R R0,SR_TID.X",
    "S2R R8,SR_CTAID.X",
    "LDC R1,c[0x0][0x37c]",
    "LDC R9,c[0x0][0x360]",
    "IMAD R10,R8,R9,R0",
    "LDC.64 R2,c[0x0][0x380]",
    "LDC.64 R4,c[0x0][0x388]",
    "IMAD.WIDE R2,R10,0x4,R2",
    "IMAD.WIDE R4,R10,0x4,R4",
    "LDG.E R6,desc[UR4][R2.64]",
]
TAIL = ["STG.E desc[UR4][R4.64],R6", "EXIT"]
LEAKS = [
    ["LOP3.LUT R6,R6,R1,RZ,0x3c,!PT"],  # the stack pointer
    ["LOP3.LUT R6,R6,R20,RZ,0x3c,!PT"],  # what nothing wrote
    ["IADD3 R6,PT,PT,R6,UR9,RZ"],
    ["SEL R6,R6,RZ,P3"],
    ["ISETP.GT.AND P0,PT,R8,0x1,PT", "SEL R6,R6,RZ,P0"],  # indices, as a value and as a condition
    ["ISETP.GT.AND P0,PT,R8,0x1,PT", "@P0 LOP3.LUT R6,R6,0x1,RZ,0x3c,!PT"],
    ["ISETP.EQ.AND P0,PT,R8,0x12345,PT", "@!P0 BRA 0xd0", "LOP3.LUT R6,R6,0x1,RZ,0x3c,!PT"],
    ["FMUL R6,R6,R0"],
    ["ISETP.GE.AND P0,PT,R0,0x20,PT", "@P0 EXIT"],
    ["PRMT R6,R0,0x7610,R6"],
    ["ISETP.EQ.AND P0,PT,R9,0x100,PT", "@P0 IADD3 R6,PT,PT,R6,0x1,RZ"],  # sizes, and words that are no parameter
    ["LDC R7,c[0x0][0x370]", "IADD3 R6,PT,PT,R6,R7,RZ"],
    ["LDC R7,c[0x0][0x390]", "IADD3 R6,PT,PT,R6,R7,RZ"],
    ["IADD3 R6,PT,PT,R6,R4,RZ"],  # a pointer
    ["SHFL.BFLY PT,R7,R6,0x1,0x1f", "FADD R6,R6,R7"],  # another thread
    ["LDS R7,[RZ]", "FADD R6,R6,R7"],
    ["LDGDEPBAR"],  # what blocks alone execute
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 EXIT"],  # nothing is stored for some values
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "ISETP.LT.AND P0,PT,R6,0x1,PT", "@P0 MOV R6,R7"],
]
CLEAN = [
    [],
    ["PRMT R6,R6,0x7604,R1", "LOP3.LUT R6,R6,0xffff,RZ,0xc0,!PT", "PRMT R6,R6,0x4442,RZ"],
    ["PRMT R7,R20,0x7610,R6", "LOP3.LUT R6,R7,0xffff0000,RZ,0xc0,!PT"],
    ["SHF.R.U32.HI R7,RZ,0x10,R20", "LOP3.LUT R6,R7,0xffff0000,R6,0xea,!PT"],
    ["IMAD.U32 R7,R20,0x10000,RZ", "LOP3.LUT R6,R7,0xffff,RZ,0xc0,!PT"],
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "@!P0 MOV R7,0x2", "IADD3 R6,PT,PT,R6,R7,RZ"],
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "@P0 IADD3 R6,PT,PT,R6,R7,RZ"],
]


def code_of(body: list[str]) -> tuple[tuple[int, ...], ...]:
    one = read(document(*HEAD, *body, *TAIL), arch=ARCH)
    return lane_functions(one, flow(one), lanes=1, bits=32, stored=32)


@pytest.mark.parametrize("body", LEAKS, ids=str)
def test_what_is_no_value_of_the_record_reaches_no_code(body: list[str]) -> None:
    with pytest.raises(NotFollowedError):
        code_of(body)


@pytest.mark.parametrize("body", CLEAN, ids=str)
def test_bits_that_are_dropped_do_not_count(body: list[str]) -> None:
    assert len(code_of(body)) == 1


def test_records_that_are_no_power_of_two_are_followed() -> None:
    body = ["IMAD.WIDE R2,R10,0xc,R2", "IMAD.WIDE R4,R10,0x6,R4", "LDG.E R6,desc[UR4][R2.64+0x8]"]
    stores = ["LDG.E.64 R14,desc[UR4][R2.64]", "F2FP.F16.F32.PACK_AB R7,R15,R14", "F2F.F16.F32 R6,R6"]
    stored = ["STG.E desc[UR4][R4.64],R7", "STG.E.U16 desc[UR4][R4.64+0x4],R6", "EXIT"]
    for change, right in (("", True), ("@P0 IADD3 R6,PT,PT,R6,0x1,RZ", False)):
        rows = [*HEAD[:7], *body, "ISETP.EQ.AND P0,PT,R8,0x2710,PT", *([change] if change else []), *stores, *stored]
        one = read(document(*rows), arch=ARCH)
        if right:
            assert len(lane_functions(one, flow(one), lanes=3, bits=32, stored=16)) == 3
        else:
            with pytest.raises(NotFollowedError, match="code 2 depends on more"):
                lane_functions(one, flow(one), lanes=3, bits=32, stored=16)


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
    rng = random.Random(7)
    lines = []
    expected = []
    for number, text in enumerate(integers()):
        operands = Operands(instruction(text), LAYOUTS[12])
        effects = TABLE[instruction(text).opcode].emit(operands)
        body = statements(effects, 0)
        names = sorted(operands.read)
        symbols = Symbols()
        whole = symbols.of_value(0, 32 * len(names))
        zero = Bit(0, None)
        registers: dict[str, Word] = {
            name: whole[at :: len(names)] if "p" not in name else (whole[at], *(zero,) * 31)
            for at, name in enumerate(names)
        }
        folder = Folder(
            symbols,
            registers.__getitem__,
            constants=lambda _: (OTHER,) * 32,
            load=lambda _, bits: (OTHER,) * bits,
        )
        assert all(isinstance(effect, Set) for effect in effects), text
        written = {
            effect.register: extended(folder.word(effect.value), 32) for effect in effects if isinstance(effect, Set)
        }
        for _ in range(3):
            values = {name: rng.getrandbits(1 if "p" in name else 32) for name in names}
            atoms = {
                whole[at :: len(names)][bit].diagram: values[name] >> bit & 1
                for at, name in enumerate(names)
                for bit in range(32)
            }
            lines += ["{", *(f"uint32_t {name} = {value:#x}u;" for name, value in values.items()), "{", body, "}"]
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
