"""Control flow as one thread sees it."""

import pytest
from listings import ARCH, document

from fp4patch.sass.error import SassError
from fp4patch.sass.flow import Flow, flow
from fp4patch.sass.listing import read


def graph(*lines: str) -> Flow:
    return flow(read(document(*lines), arch=ARCH))


def edges(of: Flow) -> dict[int, tuple[int, ...]]:
    return {block.start: block.goes_to for block in of.blocks}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (("NOP", "MOV R0,0x1", "EXIT"), {0: ()}),
        (
            ("NOP", "@P0 BRA 0x40", "MOV R0,0x1", "EXIT", "MOV R0,0x2", "EXIT"),
            {0x00: (0x20, 0x40), 0x20: (), 0x40: ()},
        ),
        (("BRA P1,0x20", "EXIT", "EXIT"), {0x00: (0x10, 0x20), 0x10: (), 0x20: ()}),
        (("BRA 0x20", "MOV R0,0x1", "EXIT"), {0x00: (0x20,), 0x20: ()}),
        (("BRA.DIV UR4,0x20", "EXIT", "WARPSYNC.COLLECTIVE R1,0x20"), {0x00: (0x10,), 0x10: ()}),
        (("@P0 EXIT", "EXIT"), {0x00: (0x10,), 0x10: ()}),
        (("EXIT P0", "@!P1 EXIT UP0", "EXIT"), {0x00: (0x10,), 0x10: (0x20,), 0x20: ()}),
    ],
    ids=[
        "one block",
        "a branch",
        "a second predicate",
        "not reached",
        "a divergent warp",
        "a guarded exit",
        "an exit by a predicate",
    ],
)
def test_a_branch_ends_a_block_and_begins_two(rows: tuple[str, ...], expected: dict[int, tuple[int, ...]]) -> None:
    assert edges(graph(*rows)) == expected


def test_a_branch_by_a_register_leads_where_its_table_does() -> None:
    #                 0                      10             20      30     40
    lines = ("LDC R2,c[0x2][R0]", "BRX R2,-0x20", "EXIT", "NOP", "EXIT")
    found = flow(read(document(*lines), arch=ARCH, words=(0x40, 0x20, 0x7FC00000, 0x24)))
    assert edges(found) == {0x00: (0x20, 0x40), 0x20: (), 0x40: ()}
    relative = flow(read(document("BRXU UR2,0x10", "EXIT", "EXIT", "EXIT"), arch=ARCH, words=(0, 0x10)))
    assert edges(relative) == {0x00: (0x20, 0x30), 0x20: (), 0x30: ()}


@pytest.mark.parametrize(
    ("rows", "meets"),
    [
        (("BSSY B0,0x40", "@P0 BRA 0x30", "MOV R0,0x1", "BSYNC B0", "EXIT"), {0x30: 0x40}),
        # In one another, and in a loop.
        (
            ("BSSY B0,0x70", "BSSY B1,0x40", "NOP", "BSYNC B1", "NOP", "@P0 BRA 0x10", "BSYNC B0", "EXIT"),
            {0x30: 0x40, 0x60: 0x70},
        ),
        # One register for two regions.
        (("BSSY B0,0x20", "BSYNC B0", "BSSY B0,0x40", "BSYNC B0", "EXIT"), {0x10: 0x20, 0x30: 0x40}),
        # As ptxas writes it for sm_75: emptied before each region, and the outer one is open meanwhile.
        (
            (
                "BMOV.32.CLEAR RZ,B0",
                "BSSY B0,0x70",
                "BMOV.32.CLEAR RZ,B1",
                "BSSY B1,0x60",
                "NOP",
                "BSYNC B1",
                "BSYNC B0",
                "EXIT",
            ),
            {0x50: 0x60, 0x60: 0x70},
        ),
    ],
)
def test_threads_go_on_where_the_region_said(rows: tuple[str, ...], meets: dict[int, int]) -> None:
    found = graph(*rows)
    assert found.meets == meets
    assert all(edges(found)[block.start] for block in found.blocks if block.instructions[-1].opcode == "BSYNC")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        # Two regions of one register end in two places, and one BSYNC closes either.
        (("@P0 BRA 0x30", "BSSY B0,0x50", "BRA 0x40", "BSSY B0,0x60", "BSYNC B0", "EXIT", "EXIT"), "0x50, 0x60"),
        (("BSYNC B0", "EXIT"), "no known place"),
        # Emptied, and nothing has set it since: where it waits is not known.
        (("BSSY B0,0x30", "BMOV.32.CLEAR RZ,B0", "BSYNC B0", "EXIT"), "no known place"),
        (("@P0 BMOV.32.CLEAR RZ,B0", "EXIT"), "emptied on a condition"),
        (("MOV R0,0x1",), "runs on to 0x10"),
        (("BRA 0x80", "EXIT"), "runs on to 0x80"),
        (("BRA 0x8", "EXIT"), "runs on to 0x8"),
        (("BRA R2,0x10", "EXIT"), "form of a control instruction"),
        (("EXIT 0x1",), "form of a control instruction"),
        (("@P0 BSSY B0,0x10", "EXIT"), "opened on a condition"),
        ((), "no instruction"),
    ],
)
def test_refuses_flow_that_it_cannot_follow(rows: tuple[str, ...], why: str) -> None:
    with pytest.raises(SassError, match=why):
        graph(*rows)
