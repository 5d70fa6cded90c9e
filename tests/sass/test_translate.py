"""From a listing to C: guards, jumps, and what is refused."""

import subprocess
from pathlib import Path

import pytest
from listings import ARCH, document

from fp4patch.sass.translate import RUNTIME, Unsupported, runtime, translate

# out[tid] = the number of steps until tid, shifted right again and again, is zero.
LOOP = document(
    "S2R R0,SR_TID.X",
    "LDC.64 R2,c[0x0][0x380]",
    "IMAD.WIDE R2,R0,0x4,R2",
    "MOV R4,RZ",
    "BSSY B0,0xa0",
    "ISETP.EQ.AND P0,PT,R0,RZ,PT",
    "@P0 BRA 0x90",
    "@!P0 IADD3 R4,PT,PT,R4,0x1,RZ",
    "BRA 0xc0",
    "BSYNC B0",
    "STG.E desc[UR4][R2.64],R4",
    "EXIT",
    "SHF.R.U32.HI R0,RZ,0x1,R0",
    "BRA 0x50",
)


def run(c: str, folder: Path, main: str) -> str:
    (folder / RUNTIME).write_text(runtime())
    (folder / "main.c").write_text(
        f'#include <stdio.h>\n{main.partition("int main")[0]}#include "runtime.h"\n{c}\n'
        f"int main{main.partition('int main')[2]}"
    )
    command = ["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-but-set-variable"]
    command += ["-ffp-contract=off", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout


def test_a_loop_runs_as_written_and_can_be_counted(tmp_path: Path) -> None:
    translation = translate(LOOP, arch=ARCH)
    assert (translation.layout.parameters, translation.layout.block_size) == (0x380, 0x360)
    out = run(
        translation.c,
        tmp_path,
        """
static int back;
#define SASS_BACKWARD(place) ++back
int main(void) {
  static uint8_t constants[0x400];
  uint32_t out[9];
  const uint64_t address = (uintptr_t)out;
  memcpy(constants + 0x380, &address, 8);
  for (uint32_t i = 0; i < 9; ++i) {
    const struct launch launch = {.constants = constants, .tid_x = i};
    SASS_KERNEL(&launch);
    printf("%u ", out[i]);
  }
  printf("%d", back);
}
""",
    )
    assert out == "0 1 2 2 3 3 3 3 4 21"


def test_everything_unknown_is_named_at_once_with_its_place() -> None:
    with pytest.raises(Unsupported) as found:
        translate(document("MUFU.RCP R0,R1", "MOV R0,R1", "FADD.RZ R0,R1,R2", "S2R R0,SR_TID.Y", "EXIT"), arch=ARCH)
    assert found.value.message == "the executor does not support MUFU.RCP, FADD.RZ, S2R"
    assert list(found.value.lacking) == [
        "0x0000 MUFU.RCP R0,R1: no such opcode in the table",
        "0x0020 FADD.RZ R0,R1,R2: no such opcode in the table",
        "0x0030 S2R R0,SR_TID.Y: special register SR_TID.Y",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FADD R0,R1,+QNAN", "an immediate is a NaN"),
        ("FADD R0,R1,R2,R3", "more operands"),
        ("FADD R0,R1", "no source"),
        ("FADD R0,~R1,R2", "tilde"),
        ("MOV R0,-R1", "a sign"),
        ("MOV R0,c[0x3][0x10]", "not known"),
        ("LDC R0,c[0x0][0x20]", "not known"),
        ("LDC R0,c[0x0][R1]", "computed"),
        ("LDC.64 R1,c[0x0][0x380]", "aligned"),
        ("LDG.E R0,[R2]", "pair of registers"),
        ("IADD3 R0,P0,P1,R1,-R2,R3", "two carries"),
        ("PLOP3.LUT P0,P1,P2,P3,PT,0x80,0x8", "second result"),
        ("LOP3.LUT P0,R0,R1,R2,R3,0xe2,PT", "joined"),
        ("FMNMX.XORSIGN R0,R1,|R2|,PT", "not in bars"),
        ("HFMA2 R0,R1,1.5,R2,R3", "one immediate"),
        ("PRMT R0,P1,0x7531,R2", "P"),
        ("BMOV.32.CLEAR R0,B1", "threads that wait"),
        ("BMOV.32.CLEAR B1,B0", "threads that wait"),
        ("BMOV.32.CLEAR RZ,R1", "not a barrier register"),
        ("BMOV.32 B1,R0", "no such opcode"),
    ],
)
def test_a_form_of_operand_that_is_not_known_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unsupported) as found:
        translate(document(text, "EXIT"), arch=ARCH)
    assert why in found.value.help


def test_an_architecture_whose_parameters_are_nowhere_known_is_refused() -> None:
    with pytest.raises(Unsupported, match="sm_61 cannot be executed"):
        translate(document("EXIT"), arch=(6, 1))
