"""What a GPU does not report: accesses outside of memory, values that nothing wrote, and deadlocks."""

import struct
from pathlib import Path

import pytest
from listings import ARCH, document

from fp4patch.sass import grid
from fp4patch.sass.error import SassError
from fp4patch.sass.translate import translate
from fp4patch.sass.warps import TABLE

OUT = 0x1_0000_0000
BASE = ("MOV R1,0x400", "S2R R0,SR_TID.X", "LDC.64 R2,c[0x0][0x380]")
"""Begin of the kernel's own shared memory, the thread, the array."""


def executed(
    folder: Path,
    *rows: str,
    threads: int = 32,
    shared: int = 0x400 + 256,
    unwritten: bool = False,
    races: bool = False,
) -> list[int]:
    """Words that a block of threads leaves in an array of 64, which begins as zeros."""
    kernel = translate(document(*BASE, *rows, "EXIT"), arch=ARCH, grid=True, shared=shared)
    out = grid.Array(OUT, bytes(256), writable=True)
    launch = grid.Launch((1, 1, 1), (threads, 1, 1), struct.pack("<Q", OUT), (out,), unwritten=unwritten, races=races)
    ((stored,), _) = grid.run(grid.build(folder, kernel, quick=True), kernel, launch)
    return list(struct.unpack("<64I", stored))


@pytest.mark.parametrize(
    ("rows", "message", "place"),
    [
        (["LDS R4,[R1]"], "load from shared memory that nothing wrote of 4 bytes at 0x400", "LDS R4,[R1]"),
        (["STS [R1+0x100],R0"], "store to shared memory of 4 bytes at 0x500", "STS [R1+0x100],R0"),
        (["STS [R1+-0x4],R0"], "store to shared memory of 4 bytes at 0x3fc", "STS [R1+-0x4],R0"),
        (["STS.64 [R1+0x4],R2"], "misaligned access of 8 bytes at 0x404", "STS.64 [R1+0x4],R2"),
        (["LDG.E.128 R4,desc[UR4][R2.64+0x8]"], "misaligned access of 16 bytes", "LDG.E.128 R4"),
        (["STG.E desc[UR4][R2.64+0x100],R0"], "stray store of 4 bytes at 0x100000100", "STG.E"),
        (["LDG.E R4,desc[UR4][R2.64+-0x4]"], "stray load of 4 bytes at 0xfffffffc", "LDG.E R4"),
        (
            ["ISETP.GT.AND P0,PT,R0,0x3,PT", "@P0 HMMA.16816.F32 R8,R12,R16,RZ"],
            "product of matrices by a part of a warp",
            "HMMA.16816.F32",
        ),
        (
            [
                "UMOV UR8,0x400",
                "UMOV UR4,0x1ffffe",  # one arrival is expected
                "UMOV UR5,0x7ffff800",
                "SYNCS.EXCH.64 URZ,[UR8],UR4",
                "SYNCS.ARRIVE.TRANS64.A1T0 RZ,[UR8],RZ",
                "SYNCS.ARRIVE.TRANS64 RZ,[UR8],R2",
                "SYNCS.ARRIVE.TRANS64.A1T0 RZ,[UR8],RZ",
                "SYNCS.ARRIVE.TRANS64 RZ,[UR8],R1",
                "SYNCS.ARRIVE.TRANS64.A1T0 RZ,[UR8],RZ",
            ],
            "mbarrier with more arrivals than it expects",
            "SYNCS.ARRIVE",
        ),
        (["BPT.TRAP 0x1"], "trap", "BPT.TRAP"),
    ],
)
def test_a_mistake_has_its_address_its_instruction_and_its_thread(
    rows: list[str], message: str, place: str, tmp_path: Path
) -> None:
    with pytest.raises(SassError) as found:
        executed(tmp_path, *rows)
    assert message in found.value.message
    assert place in found.value.help
    assert found.value.help.endswith(("thread 0 0 0", "thread 4 0 0"))


def test_a_word_of_shared_memory_may_be_read_where_it_was_written(tmp_path: Path) -> None:
    rows = ["IMAD R1,R0,0x4,R1", "STS [R1],R0", "LDS R4,[R1]", "IMAD.WIDE R2,R0,0x4,R2", "STG.E desc[UR4][R2.64],R4"]
    assert executed(tmp_path, *rows)[:33] == [*range(32), 0]


def test_a_launch_can_admit_reads_of_what_nothing_wrote(tmp_path: Path) -> None:
    rows = ["LDS R4,[R1]", "LOP3.LUT R4,R4,R4,RZ,0x3c,!PT", "STG.E desc[UR4][R2.64],R4"]
    assert executed(tmp_path, *rows, unwritten=True)[0] == 0
    with pytest.raises(SassError, match="load from shared memory of 4 bytes at 0x500"):
        executed(tmp_path, "LDS R4,[R1+0x100]", unwritten=True)


def test_a_generic_address_is_one_of_an_array(tmp_path: Path) -> None:
    rows = [
        "MOV R4,0x3f803f80",
        "ATOM.E.ADD.BF16x2.RN.STRONG.GPU P0,RZ,desc[UR4][R2.64],R4",
        "QSPC.E.S P1,RZ,[R2]",
        "@P1 ATOMS.CAST.SPIN P1,[R2],R4,R5",
        "LD.E R4,desc[UR4][R2.64]",
        "@P0 ST.E desc[UR4][R2.64+0x4],R4",
    ]
    assert executed(tmp_path, *rows, threads=1)[:3] == [0x3F803F80, 0x3F803F80, 0]
    with pytest.raises(SassError, match="stray load of 4 bytes at 0xfffffffc"):
        executed(tmp_path, "LD.E R4,desc[UR4][R2.64+-0x4]")


def test_all_that_wait_for_one_another_are_named(tmp_path: Path) -> None:
    rows = ["ISETP.GT.AND P0,PT,R0,0x1f,PT", "@P0 BRA 0x70", "BAR.SYNC 0x1,0x60", "EXIT", "BAR.SYNC 0x2,0x40"]
    with pytest.raises(SassError, match="all threads wait for one another") as found:
        executed(tmp_path, *rows, threads=64)
    assert found.value.help.splitlines() == [
        "block 0 0 0, warp 0: 32 threads wait at 0x0050 BAR.SYNC 0x1,0x60",
        "block 0 0 0, warp 1: 32 threads wait at 0x0070 BAR.SYNC 0x2,0x40",
    ]


def test_a_thread_that_looks_for_a_value_without_end_is_named(tmp_path: Path) -> None:
    rows = ["LDG.E R4,desc[UR4][R2.64]", "ISETP.EQ.AND P0,PT,R4,RZ,PT", "@P0 BRA 0x30"]
    with pytest.raises(SassError, match="all threads wait") as found:
        executed(tmp_path, *rows)
    assert "@P0 BRA" in found.value.help


def test_warps_wait_for_what_others_store(tmp_path: Path) -> None:
    """The first warp looks for a word that the second one stores: it lets it run."""
    rows = [
        "ISETP.GT.AND P0,PT,R0,0x1f,PT",
        "@P0 BRA 0x90",
        "LDG.E.STRONG.GPU R4,desc[UR4][R2.64+0x80]",
        "ISETP.EQ.AND P1,PT,R4,RZ,PT",
        "@P1 BRA 0x50",
        "BRA 0xb0",
        "MOV R4,0x7",
        "STG.E desc[UR4][R2.64+0x80],R4",
        "IMAD.WIDE R2,R0,0x4,R2",
        "@!P0 STG.E desc[UR4][R2.64],R4",
    ]
    assert executed(tmp_path, *rows, threads=64)[:33] == [7] * 33


def test_named_barriers_count_the_threads_that_only_arrive(tmp_path: Path) -> None:
    rows = [
        "ISETP.GT.AND P0,PT,R0,0x1f,PT",
        "@P0 BRA 0x90",
        "STS [R1],R0",
        "MEMBAR.ALL.CTA",
        "BAR.ARV 0x3,0x40",
        "EXIT",
        "BAR.SYNC.DEFER_BLOCKING 0x3,0x40",
        "LDS R4,[R1]",
        "IMAD.WIDE R2,R0,0x4,R2",
        "STG.E desc[UR4][R2.64],R4",
    ]
    assert executed(tmp_path, *rows, threads=64)[32:] == [31] * 32


def test_a_loop_of_elected_threads_lets_each_one_copy(tmp_path: Path) -> None:
    """As ptxas writes a copy that each thread shall make: one is elected at a time, and all go on together."""
    rows = [
        "MOV R4,RZ",
        "PLOP3.LUT P0,PT,PT,PT,PT,0x80,0x8",
        "@P0 ELECT P1,URZ,PT",
        "@P1 R2UR UR6,R0",
        "IADD3 R4,PT,PT,R4,UR6,RZ",
        "@P1 PLOP3.LUT P0,PT,P1,PT,PT,0x8,0x80",
        "PLOP3.LUT P1,PT,PT,PT,PT,0x8,0x80",
        "@P0 BRA.U.ANY 0x50",
        "IMAD.WIDE R2,R0,0x4,R2",
        "STG.E desc[UR4][R2.64],R4",
    ]
    assert executed(tmp_path, *rows)[:32] == [sum(range(32))] * 32


STORE = ["IMAD R6,R0,0x4,R1", "STS [R6],R0"]
"""Each thread stores to a word of its own."""
OTHERS = ["LOP3.LUT R7,R0,0x20,RZ,0x3c,!PT", "IMAD R7,R7,0x4,R1", "LDS R4,[R7]"]
"""Each thread loads the word of a thread in the other warp."""
BARRIER = ["BAR.SYNC.DEFER_BLOCKING 0x0"]
KEEP = ["IMAD.WIDE R2,R0,0x4,R2", "STG.E desc[UR4][R2.64],R4"]


@pytest.mark.parametrize(
    ("rows", "said", "places"),
    [
        ([*STORE, *OTHERS, *KEEP], "store to", ("LDS R4,[R7], warp 0", "STS [R6],R0, block 0 0 0, thread 32 0 0")),
        ([*STORE, *BARRIER, *OTHERS, "STS [R6],R4"], "load from", ("STS [R6],R4, warp 0", "LDS R4,[R7]")),
        ([*STORE, "STS [R1],R0"], "store to", ("STS [R1],R0, warp 0", "STS [R1],R0, block 0 0 0, thread 32 0 0")),
        (["ATOMS.ADD RZ,[R1],R0", "LDS R4,[R1]"], "store to", ("LDS R4,[R1], warp 0", "ATOMS.ADD")),
        (["STS.U8 [R1],R0", "ATOMS.ADD RZ,[R1],R0"], "store to", ("ATOMS.ADD", "STS.U8 [R1],R0")),
    ],
)
def test_a_race_names_both_accesses(rows: list[str], said: str, places: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(SassError, match=f"race of a {said} shared memory") as found:
        executed(tmp_path, *rows, threads=64, unwritten=True, races=True)
    first, _, second = found.value.help.partition("; then ")
    assert places[0] in first
    assert places[1] in second
    executed(tmp_path, *rows, threads=64, unwritten=True)  # without `races` it runs


@pytest.mark.parametrize(
    ("rows", "threads"),
    [
        ([*STORE, *BARRIER, *OTHERS, *KEEP], 64),
        ([*STORE, *BARRIER, *OTHERS, *BARRIER, "STS [R6],R4", *BARRIER, *OTHERS, *KEEP], 64),
        (["ATOMS.ADD RZ,[R1],R0", *BARRIER, "LDS R4,[R1]", *KEEP], 64),
        (["IMAD R6,R0,0x4,R1", "STS.U8 [R6],R0", "STS.U8 [R6+0x1],R0", "LDS.U8 R4,[R6+0x1]", *KEEP], 64),
        (["LDS R4,[R1]", *KEEP], 64),
        ([*STORE, "STS [R1],R0", "LDS R4,[R1]", *KEEP], 32),  # of one warp: not told apart
    ],
)
def test_what_a_barrier_orders_is_no_race(rows: list[str], threads: int, tmp_path: Path) -> None:
    executed(tmp_path, *rows, threads=threads, unwritten=True, races=True)


def _pipeline(waits: bool) -> list[str]:
    """The second warp stores and arrives at an mbarrier, for which the first one waits before it loads."""
    rows = [
        "UMOV UR8,0x4f8",
        "UMOV UR4,0x1fffc0",  # 32 arrivals are expected
        "UMOV UR5,0x7fff0000",
        "ISETP.GT.AND P0,PT,R0,0x1f,PT",
        "ISETP.EQ.AND P1,PT,R0,RZ,PT",
        "@P1 SYNCS.EXCH.64 URZ,[UR8],UR4",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "@!P0 BRA 0xe0",
        "STS [R1],R0",
        "SYNCS.ARRIVE.TRANS64.A1T0 RZ,[UR8],RZ",
        "EXIT",
    ]
    wait = ["SYNCS.PHASECHK.TRANS64.TRYWAIT P2,[UR8],RZ", "@!P2 BRA 0xe0"] if waits else []
    return [*rows, *wait, "LDS R4,[R1]", "STG.E desc[UR4][R2.64],R4"]


def test_an_mbarrier_orders_those_who_wait_for_it(tmp_path: Path) -> None:
    assert executed(tmp_path, *_pipeline(True), threads=64, races=True)[0] == 63
    with pytest.raises(SassError, match="race of a"):
        executed(tmp_path, *_pipeline(False), threads=64, races=True, unwritten=True)


def test_threads_of_a_warp_store_side_by_side_before_one_of_them_arrives(tmp_path: Path) -> None:
    """As CUTLASS's scheduler writes the last tile: here the first thread arrives before the others have stored."""
    rows = [row.replace("0x1fffc0", "0x1ffffe") for row in _pipeline(True)]  # one arrival is expected
    rows[8:10] = ["STS [R1],RZ", "ISETP.EQ.AND P1,PT,R0,0x20,PT", "@P1 SYNCS.ARRIVE.TRANS64.A1T0 RZ,[UR8],RZ"]
    rows = [row.replace("0xe0", "0xf0") for row in rows]
    assert executed(tmp_path, *rows, threads=64, races=True)[0] == 0
    late = [*rows[:11], "@P1 STS [R1],RZ", *(row.replace("0xf0", "0x100") for row in rows[11:])]
    late[7] = late[7].replace("0xf0", "0x100")
    with pytest.raises(SassError, match="race of a"):
        executed(tmp_path, *late, threads=64, races=True)


def test_named_barriers_order_those_who_arrive_before_those_who_wait(tmp_path: Path) -> None:
    rows = [
        "ISETP.GT.AND P0,PT,R0,0x1f,PT",
        "@P0 BRA 0x80",
        "STS [R1],R0",
        "BAR.ARV 0x3,0x40",
        "{}",
        "EXIT",
        "BAR.SYNC.DEFER_BLOCKING 0x3,0x40",
        "LDS R4,[R1]",
    ]
    rows[1] = "@P0 BRA 0x90"
    executed(tmp_path, *(row.format("NOP") for row in rows), threads=64, races=True)
    with pytest.raises(SassError, match="race of a") as found:
        executed(tmp_path, *(row.format("STS [R1],R0") for row in rows), threads=64, races=True)
    assert "STS [R1],R0" in found.value.help


def test_every_product_names_the_model_of_its_arithmetic() -> None:
    products = {opcode: one.source for opcode, one in TABLE.items() if opcode.startswith(("HMMA", "QMMA", "OMMA"))}
    assert len(products) > 80
    assert all("arXiv 2511.10909" in source for source in products.values())
