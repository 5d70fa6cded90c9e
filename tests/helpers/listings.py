"""Text of ``nvdisasm -c`` made by hand."""

from __future__ import annotations

from fp4patch.core.arch import Arch

ARCH = Arch(12, 1)
"""Target of the code, where a test has no other."""


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
