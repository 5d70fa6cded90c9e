"""The parser on golden listings (nvdisasm/regen.sh makes them), on lines that it must refuse, and on cubins."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.errors import ProofError
from fp4patch.proof import machine_code
from fp4patch.proof.listing import SassListing
from fp4patch.sass.error import SassError
from fp4patch.sass.instruction import InstructionClass
from fp4patch.sass.text import classify

GOLDEN = Path(__file__).parents[1] / "sass/nvdisasm"
LISTINGS = sorted(GOLDEN.glob("*.txt"))


def read(text: str, arch: str = "sm_121a") -> SassListing:
    return machine_code.unit_listing(text, cubin((".text.probe", CODE, b"code")))


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: path.stem)
def test_every_golden_listing_is_understood(path: Path) -> None:
    text = path.read_text()
    listing = read(text)
    printed = re.findall(r"/\*[0-9a-f]{4}\*/", text)
    start = listing.instructions[0].address
    assert start == (320 if path.stem.endswith("sm_87") else 0)
    padding = len(printed) - start // 16 - len(listing.instructions)
    # What is left out is the branch to itself and the NOPs after it, before sm_87's kernels a row, and nothing else.
    tail = [line.split("*/", 1)[1].split() for line in text.splitlines() if re.search(r"/\*[0-9a-f]{4}\*/", line)]
    assert [words[0].rstrip(";") for words in tail[-padding:]] == ["BRA"] + ["NOP"] * (padding - 1)
    assert listing.instructions[-1].opcode in ("EXIT", "RET.REL.NODEC")
    assert [i.address for i in listing.instructions] == list(range(start, start + 16 * listing.size, 16))


def test_predicates_branches_and_classes_are_read() -> None:
    listing = read(golden("branches.sm_121a"))
    assert any(i.predicate.startswith("@P") for i in listing.instructions)
    assert any(i.predicate.startswith("@!P") for i in listing.instructions)
    assert read(golden("spills.sm_90"), "sm_90").count(InstructionClass.LOCAL) > 32
    assert listing.count(InstructionClass.LOCAL) == 0
    for cls in ("branch", "convert", "f64", "memory", "control", "compare", "float", "integer", "move"):
        assert listing.count(InstructionClass(cls)), cls
    for instruction in listing.instructions:
        for target in re.findall(r"`\((\.L_x_\d+)\)", instruction.operands):
            assert target in listing.labels.values(), instruction.text


@pytest.mark.parametrize(
    ("opcode", "cls"),
    [
        ("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C", InstructionClass.FP4),
        ("F2FP.F16.E2M1.UNPACK_B", InstructionClass.FP4),
        ("F2FP.SATFINITE.E2M3.F32.PACK_AB_MERGE_C", InstructionClass.CONVERT),
        ("F2F.F64.F32", InstructionClass.F64),
        ("MUFU.RCP64H", InstructionClass.F64),
        ("MUFU.RCP", InstructionClass.FLOAT),
        ("HADD2.F32", InstructionClass.CONVERT),
        ("HADD2", InstructionClass.FLOAT),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", InstructionClass.MMA),
        ("IADD.64", InstructionClass.INTEGER),
        ("BRA.U", InstructionClass.BRANCH),
        ("BSSY.RECONVERGENT", InstructionClass.CONTROL),
        ("SHFL.IDX", InstructionClass.OTHER),
        ("FROB", None),
    ],
)
def test_modifiers_decide_the_class_where_opcodes_do_not(opcode: str, cls: InstructionClass | None) -> None:
    assert classify(opcode) is cls


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("        /*0090*/                   FROB.E2M1 R0, R5, R4 ;", "unknown instruction FROB"),
        ("        /*0090*/                   F2FP.SATFINITE.E2M1 R0, R5, R4", "no known form of line"),
        ("        /*00a0*/                   MOV R0, R5 ;", "address 0xa0 where 0x90 follows"),
        ("        /*0090*/            @P1P2  MOV R0, R5 ;", "no known form of line"),
        ("        /*0090*/                   { MOV R0, R5 ;", "no known form of line"),
        ("        .frob  8", "no known form of line"),
        ("nvdisasm warning : something", "no known form of line"),
    ],
)
def test_a_line_of_no_known_form_is_refused_with_the_line(line: str, why: str) -> None:
    lines = golden("e2m1.sm_121a").splitlines()
    number = next(n for n, old in enumerate(lines) if "F2FP" in old)
    lines[number] = line
    with pytest.raises(SassError) as caught:
        read("\n".join(lines))
    assert f"line {number + 1} " in caught.value.message
    assert why in caught.value.message
    assert line.strip() in caught.value.message


@given(st.data())
def test_a_lost_instruction_never_goes_unnoticed(data: st.DataObject) -> None:
    lines = golden("e2m1.sm_121a").splitlines()
    code = [n for n, line in enumerate(lines) if "/*" in line and "NOP" not in line]
    lost = data.draw(st.sampled_from(code))
    with pytest.raises(SassError):
        read("\n".join(lines[:lost] + lines[lost + 1 :]))


def test_a_listing_without_code_is_refused() -> None:
    for text in ("", "\t.target\tsm_121a\n", re.sub(r"(?m)^ +/\*.*\n", "", golden("e2m1.sm_121a"))):
        with pytest.raises(ProofError, match="holds no instruction"):
            read(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BMOV.32.CLEAR B7, B6", "BMOV.32.CLEAR B7, B5"),
        ("UMOV UR2, 0x1", "UMOV UR2, 0x2"),
        ("@P0 BRA `(.L_x_0)", "@P0 BRA `(.L_x_1)"),
        ("@P0 BRA `(.L_x_0)", "     EXIT"),
    ],
)
def test_what_begins_as_a_kernel_of_sm_87_and_differs_is_code(old: str, new: str) -> None:
    text = golden("branches.sm_87")
    assert text.count(old) == 1
    assert read(text, "sm_87").size + 20 == read(text.replace(old, new), "sm_87").size


def test_a_unit_of_sm_87_counts_each_kernel_from_its_own_code() -> None:
    text = golden("branches.sm_87")
    both = read(text + text.replace("probe", "second"), "sm_87")
    one = read(text, "sm_87")
    assert both.size == 2 * one.size
    assert [address for address, name in both.labels.items() if name == "probe"] == [320]
    assert [address for address, name in both.labels.items() if name == "second"] == [
        both.instructions[one.size].address
    ]
    addresses = [i.address for i in both.instructions]
    assert addresses == sorted(set(addresses))


def test_each_kernel_of_an_object_file_has_its_own_code() -> None:
    text = golden("e2m1.sm_121a").replace("probe", "alpha") + golden("branches.sm_121a").replace("probe", "beta")
    content = cubin((".text.alpha", CODE, b"a"), (".text.beta", CODE, b"b"))
    beta, alpha = machine_code.kernel_listings(text, content, ["beta", "alpha"])
    assert (alpha.size, beta.size) == (read(golden("e2m1.sm_121a")).size, read(golden("branches.sm_121a")).size)
    assert alpha.code_sha256 != beta.code_sha256
    with pytest.raises(ProofError, match=r"no instruction of \.text\.gamma"):
        machine_code.kernel_listings(text, content, ["gamma"])


# --- cubins, made by hand: name, flags, content ---

CODE, DATA = 0x6, 0x2  # alloc + exec, alloc


def cubin(*sections: tuple[str, int, bytes]) -> bytes:
    """An ELF file with these sections, and the table of their names last."""
    names = b"\0"
    body = b""
    rows = [(0, 0, 0, 0, 0)]
    for name, flags, content in (*sections, (".shstrtab", 0, b"")):
        at, names = len(names), names + name.encode() + b"\0"
        data = names if name == ".shstrtab" else content
        rows.append((at, 3 if name == ".shstrtab" else 1, flags, 64 + len(body), len(data)))
        body += data
    headers = b"".join(struct.pack("<IIQQQQIIQQ", *row[:3], 0, *row[3:], 0, 0, 1, 0) for row in rows)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return head + body + headers


def test_the_digest_is_of_code_and_constants_alone() -> None:
    code, table = (".text.probe", CODE, b"code"), (".nv.constant3", DATA, b"table")
    digest = machine_code.code_digest(cubin(code, table, (".debug_frame", 0, b"one")))
    assert digest == machine_code.code_digest(cubin(table, code, (".debug_frame", 0, b"another")))
    assert digest != machine_code.code_digest(cubin((".text.probe", CODE, b"node"), table))
    assert digest != machine_code.code_digest(cubin(code, (".nv.constant3", DATA, b"fable")))


def test_a_shared_bank_of_constants_counts_only_if_the_code_reads_it() -> None:
    """Other kernels of the object file may have put their own constants there."""
    listing, code = read(golden("e2m1.sm_121a")), (".text.probe", CODE, b"code")
    (bank,) = {bank for one in listing.instructions for bank in re.findall(r"c\[0x(\d)\]", one.operands)}

    def same(number: str) -> bool:
        one, other = (cubin(code, (f".nv.constant{number}", DATA, table)) for table in (b"table", b"fable"))
        digests = {machine_code.code_digest(content, "probe", listing.instructions) for content in (one, other)}
        return len(digests) == 1

    assert (same(bank), same("4")) == (False, True)


def test_a_cubin_with_other_kernels_or_none_is_refused() -> None:
    with pytest.raises(ProofError, match="no code"):
        machine_code.must_have_one_kernel(cubin((".nv.constant3", DATA, b"table")))
    with pytest.raises(ProofError, match=r"holds other, probe, where \.text\.probe alone"):
        machine_code.must_have_one_kernel(cubin((".text.other", CODE, b"x"), (".text.probe", CODE, b"x")))
    machine_code.must_have_one_kernel(cubin((".text.probe", CODE, b"x"), (".text.__cuda_sm3x_div", CODE, b"x")))
    for broken in (b"", b"not an object file", cubin((".text.probe", CODE, b"x"))[:70]):
        with pytest.raises(SassError, match="not a cubin"):
            machine_code.code_digest(broken)


# --- whole source files ----------------------------------------------------------------------------------------------


def test_the_kernels_of_a_source_file_follow_one_another() -> None:
    one, two = golden("e2m1.sm_121a"), golden("branches.sm_121a")
    first, second = read(one), read(two)
    both = read(two.replace("probe", "zeta") + one.replace("probe", "alpha"))
    assert [i.opcode for i in both.instructions] == [i.opcode for i in (*first.instructions, *second.instructions)]
    assert [i.address for i in both.instructions] == list(range(0, 16 * both.size, 16))
    assert both.labels[0] == "alpha"
    assert both.labels[16 * first.size] == "zeta"
    assert both.count(InstructionClass.FP4) == 1
    assert {*second.labels.values()} - {"probe"} <= {*both.labels.values()}
