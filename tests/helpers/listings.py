"""Text of ``nvdisasm -c`` made by hand."""

from fp4patch.sass.program import Kernel
from fp4patch.sass.translate import translate

ARCH = (12, 1)
"""Compute capability of the code, where a test has no other."""


def document(*rows: str, kernel: str = "probe") -> str:
    """Return the listing of one kernel; each row is an instruction (``@P0 BRA 0x40``), or a label with its colon."""
    lines, at = [f'\t.section\t.text.{kernel},"ax",@progbits', f".text.{kernel}:"], 0
    for row in rows:
        if row.endswith(":"):
            lines.append(row)
        else:
            lines.append(f"        /*{at:04x}*/                   {row} ;")
            at += 16
    return "\n".join([*lines, ""])


def kernel_of_reciprocal() -> Kernel:
    """Return a kernel in which each thread stores MUFU.RCP of one float."""
    text = document(
        "S2R R0,SR_TID.X",
        "S2UR UR4,SR_CTAID.X",
        "LDC R1,c[0x0][0x360]",
        "IMAD R0,R1,UR4,R0",
        "LDC.64 R2,c[0x0][0x380]",
        "LDC.64 R4,c[0x0][0x388]",
        "IMAD.WIDE R2,R0,0x4,R2",
        "IMAD.WIDE R4,R0,0x4,R4",
        "LDG.E R6,desc[UR4][R2.64]",
        "MUFU.RCP R6,R6",
        "STG.E desc[UR4][R4.64],R6",
        "EXIT",
    )
    return translate(text, arch=ARCH, grid=True)
