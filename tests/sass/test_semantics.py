"""Semantics of opcodes, by cases worked out by hand: of integers those that no golden listing has."""

import gzip
import math
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from listings import ARCH, document

from fp4patch.sass import translate
from fp4patch.sass.error import SassError
from fp4patch.sass.expressions import Effect, statements
from fp4patch.sass.listing import Decoded, read
from fp4patch.sass.operands import LAYOUTS, Lacks, Operands
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.translate import RUNTIME, runtime

GOLDEN = Path(__file__).parent / "golden"


def f(x: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", x))[0]
    return bits


INF = f(float("inf"))
NAN = 0x7FFFFFFF
QUIET = 0x7FC00001
SIGNALLING = 0xFF800001

# Decoded, what is in registers before, what after.
CASES: list[tuple[str, dict[str, int], dict[str, int]]] = [
    ("USEL UR4,UR5,UR6,!UP0", {"ur5": 1, "ur6": 2, "up0": 1}, {"ur4": 2}),
    ("FSEL R0,-|R1|,R2,P0", {"r1": f(2), "p0": 1}, {"r0": f(-2)}),
    ("CS2R.32 R2,SRZ", {"r2": 1, "r3": 2}, {"r2": 0, "r3": 2}),
    ("IADD.64 R0,R2,UR4", {"r2": 0xFFFFFFFF, "r3": 1, "ur4": 1, "ur5": 2}, {"r0": 0, "r1": 4}),
    ("IADD.64 R0,R2,-R4", {"r2": 0, "r3": 1, "r4": 1}, {"r0": 0xFFFFFFFF, "r1": 0}),
    ("SEL.64 R0,RZ,0x1,P0", {"r0": 7, "r1": 7}, {"r0": 1, "r1": 0}),
    ("USEL.64 UR4,UR6,-0x1,UP2", {"ur6": 7, "ur7": 7}, {"ur4": 0xFFFFFFFF, "ur5": 0xFFFFFFFF}),
    ("USEL.64 UR4,UR6,UR8,!UP2", {"ur6": 7, "ur7": 9, "ur8": 1}, {"ur4": 7, "ur5": 9}),
    ("SEL.64 R0,R2,R4,!P0", {"r2": 1, "r3": 2, "r4": 3, "p0": 1}, {"r0": 3, "r1": 0}),
    ("IMNMX.U64 PT,PT,R0,R2,R4,!PT,!PT", {"r2": 9, "r3": 1, "r4": 1, "r5": 2}, {"r0": 1, "r1": 2}),
    ("IMNMX.U64 PT,PT,R0,R2,R4,PT,!PT", {"r2": 9, "r3": 1, "r4": 1, "r5": 1 << 31}, {"r0": 9, "r1": 1}),
    ("IMNMX.S64 PT,PT,R0,R2,R4,PT,!PT", {"r2": 9, "r3": 1, "r4": 1, "r5": 1 << 31}, {"r0": 1, "r1": 1 << 31}),
    ("UIMNMX.U64 UPT,UPT,UR4,UR4,UR10,UPT,!UPT", {"ur4": 5, "ur5": 7, "ur10": 4, "ur11": 7}, {"ur4": 4, "ur5": 7}),
    ("IMNMX.S64 PT,PT,R0,R2,R4,!PT,!PT", {"r2": 9, "r3": 1, "r4": 1, "r5": 1 << 31}, {"r0": 9, "r1": 1}),
    ("IMAD.WIDE.U32.X R0,R2,0x3,R4,P0", {"r2": 0x80000000, "r4": 1, "p0": 1}, {"r0": 0x80000002, "r1": 1}),
    (
        "UIMAD.WIDE.U32.X UR4,UR5,UR17,UR6,UP1",
        {"ur5": 1 << 31, "ur17": 3, "ur6": 1, "up1": 1},
        {"ur4": 0x80000002, "ur5": 1},
    ),
    ("ISETP.LT.U32.OR P0,P1,R1,R2,P2", {"r1": 0xFFFFFFFF, "r2": 0}, {"p0": 0, "p1": 1}),
    ("ISETP.NE.S64.AND P0,PT,RZ,UR4,PT", {"ur5": 1}, {"p0": 1}),
    ("FSETP.NE.AND P0,PT,R1,R1,PT", {"r1": QUIET}, {"p0": 0}),
    ("FSETP.NEU.AND P0,PT,R1,R1,PT", {"r1": QUIET}, {"p0": 1}),
    ("FSETP.GTU.AND P0,PT,|R1|,+INF ,PT", {"r1": SIGNALLING}, {"p0": 1}),
    ("FSETP.GT.FTZ.AND P0,PT,R1,RZ,PT", {"r1": 1}, {"p0": 0}),
    ("FADD R0,R1,R2", {"r1": INF, "r2": INF | 1 << 31}, {"r0": NAN}),
    ("FMUL R0,R1,0.5", {"r1": 3}, {"r0": 2}),
    ("FMUL.FTZ R0,R1,0.5", {"r1": 0x80800000}, {"r0": 0x80000000}),
    ("FFMA R0,R1,R2,-R3", {"r1": f(1 + 2**-23), "r2": f(1 + 2**-23), "r3": f(1 + 2**-22)}, {"r0": f(2**-46)}),
    ("FMNMX R0,R1,R2,PT", {"r1": SIGNALLING, "r2": f(3)}, {"r0": f(3)}),
    ("FMNMX R0,R1,R2,PT", {"r1": 0, "r2": 0x80000000}, {"r0": 0x80000000}),
    ("FMNMX3 R0,R1,|R2|,R3,!PT", {"r1": QUIET, "r2": f(-3), "r3": f(2)}, {"r0": f(3)}),
    ("FMNMX.NAN R0,R1,-4096,!PT", {"r1": SIGNALLING}, {"r0": NAN}),
    ("FMNMX.NAN R0,R1,-4096,!PT", {"r1": f(-5000)}, {"r0": f(-4096)}),
    ("FMUL.RZ R0,R1,R2", {"r1": f(1 + 2**-23), "r2": f(1 + 2**-23)}, {"r0": f(1 + 2**-22)}),
    ("FMUL.RZ R0,R1,-R2", {"r1": f(3e38), "r2": f(3)}, {"r0": 0xFF7FFFFF}),
    ("FMUL.RZ R0,R1,R2", {"r1": 0x80000000, "r2": f(3)}, {"r0": 0x80000000}),
    ("FMUL.RZ R0,R1,R2", {"r1": INF, "r2": 0}, {"r0": NAN}),
    (
        "FMUL2 R0,R2.F32x2.HI_LO,-R4.reuse.F32",
        {"r2": f(2), "r3": f(3), "r4": f(5), "r5": f(7)},
        {"r0": f(-10), "r1": f(-15)},
    ),
    (
        "FMUL2.RZ R0,R2.F32x2.HI_LO,R4.F32x2.HI_LO",
        {"r2": f(1 + 2**-23), "r3": f(3e38), "r4": f(1 + 2**-23), "r5": f(7)},
        {"r0": f(1 + 2**-22), "r1": 0x7F7FFFFF},
    ),
    (
        "FFMA2 R2,R2.F32x2.HI_LO,R4.F32,R2.F32x2.HI_LO",
        {"r2": f(2), "r3": f(3), "r4": f(5)},
        {"r2": f(12), "r3": f(18)},
    ),
    ("FMUL2 R0,-R2.F32x2.HI_LO,-1", {"r2": f(1), "r3": f(-2)}, {"r0": f(1), "r1": f(-2)}),
    ("FADD2 R0,R2.F32x2.HI_LO,R2.F32x2.HI_LO", {"r2": f(1), "r3": f(2)}, {"r0": f(2), "r1": f(4)}),
    ("F2I.U64.TRUNC R0,R2", {"r2": f(2**33 + 2**10)}, {"r0": 0x400, "r1": 2}),
    ("F2I.U64.TRUNC R0,R2", {"r2": f(-3)}, {"r0": 0, "r1": 0}),
    ("F2I.U64.TRUNC R0,R2", {"r2": f(2**64)}, {"r0": 0xFFFFFFFF, "r1": 0xFFFFFFFF}),
    ("I2F.BF16 R0,R1", {"r1": 0xFFFFFF7F}, {"r0": 0x6B43C301}),  # -129: exact
    ("I2F.BF16 R0,R1", {"r1": 0x02020001}, {"r0": 0x6B434C01}),  # a float would be a tie, to even
    ("F2F.BF16.F32 R0,R1", {"r1": f(1 + 3 * 2**-8)}, {"r0": 0x6B433F82}),
    ("BREAK.RELIABLE B1", {"r0": 3}, {"r0": 3}),
    ("BMOV.32.CLEAR RZ,B2", {"r0": 3}, {"r0": 3}),
    ("F2I.NTZ R0,R1", {"r1": f(2.5)}, {"r0": 2}),
    ("F2I.NTZ R0,R1", {"r1": f(-3.5)}, {"r0": 0xFFFFFFFC}),
    ("F2I.NTZ R0,R1", {"r1": f(-1e10)}, {"r0": 0x80000000}),
    ("F2I.NTZ R0,R1", {"r1": QUIET}, {"r0": 0}),
    ("FMNMX.XORSIGN R0,|R1|,1,!PT", {"r1": SIGNALLING}, {"r0": f(-1)}),
    ("FMNMX.XORSIGN R0,|R1|,|R2|,PT", {"r1": SIGNALLING, "r2": QUIET}, {"r0": NAN}),
    ("HFMA2 R0,-RZ,RZ,1.5,5.9604644775390625e-08", {}, {"r0": 0x3E000001}),
    ("HFMA2 R0,R1,R2,R3", {"r1": 0x3C013C01, "r2": 0x3C013C01, "r3": 0xBC02BC00}, {"r0": 0x00101800}),
    ("HMUL2 R0,R1,0.5,2", {"r1": 0x3C003C00}, {"r0": 0x38004000}),
    ("HMNMX2.XORSIGN R0,|R1|,1,2,PT", {"r1": 0xC200C200}, {"r0": 0xBC00C000}),
    ("HADD2.F32 R0,-RZ,R1.H1_H1", {"r1": 0x80010000}, {"r0": f(-(2**-24))}),
    ("F2FP.F16.F32.PACK_AB R0,R1,R2", {"r1": f(65520), "r2": SIGNALLING}, {"r0": 0x7C007FFF}),
    ("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C R0,R1,R2,R3", {"r1": f(-9), "r2": f(2.5), "r3": 0xAB}, {"r0": 0xABF4}),
    ("F2FP.F16.F32.PACK_AB.RZ R0,R1,R2", {"r1": f(-1e9), "r2": f(2**-24 * 1.99)}, {"r0": 0xFBFF0001}),
    ("F2FP.F16.F32.PACK_AB.RZ R0,R1,R2", {"r1": f(-math.inf), "r2": SIGNALLING}, {"r0": 0xFC007FFF}),
    ("F2FP.F16.F32.PACK_AB.RZ R0,R1,R2", {"r1": f(2047.9), "r2": f(2**-14 * 0.9999)}, {"r0": 0x67FF03FF}),
    ("FHFMA.BF16 R0,R1,-R2.H1,RZ", {"r1": 0x40003FC0, "r2": 0x40A03F80}, {"r0": f(-7.5)}),
    ("FHFMA.BF16 R0,R1.reuse.H1,R2,R3", {"r1": 0x40003FC0, "r2": 0x40A0BF80, "r3": f(0.5)}, {"r0": f(-1.5)}),
    ("FHFMA.BF16 R0,R1,R2,RZ", {"r1": 0x8000, "r2": 0x3F80}, {"r0": 0}),
    (  # -2.75 goes up from byte 3 (0x40) on, 0.25 from byte 1 (0x80) on; what is left of C moves up
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS R0,R1,R2,R3",
        {"r1": f(-2.75), "r2": f(0.25), "r3": 0x40AA80BB},
        {"r0": 0xAA80BBD1},
    ),
    (
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS R0,R1,R2,R3",
        {"r1": f(-2.75), "r2": f(0.25), "r3": 0x3FAA7FBB},
        {"r0": 0xAA7FBBC0},
    ),
    (
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS R0,R1,R2,RZ",
        {"r1": QUIET, "r2": f(-7)},
        {"r0": 0x7F},
    ),
    ("F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C R0,R1,R2,RZ", {"r1": f(-1e9), "r2": QUIET}, {"r0": 0xFE7F}),
    ("F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C R0,R1,R2,RZ", {"r1": f(2**-10), "r2": f(17)}, {"r0": 0x58}),
    ("F2FP.SATFINITE.E2M3.F32.PACK_AB_MERGE_C R0,R1,R2,RZ", {"r1": f(-8), "r2": f(0.1875)}, {"r0": 0x3F02}),
    ("F2FP.SATFINITE.E3M2.F32.PACK_AB_MERGE_C R0,R1,R2,RZ", {"r1": f(99), "r2": f(-0.0625)}, {"r0": 0x1F21}),
    ("F2FP.F16.E2M1.UNPACK_B R0,R1.B1", {"r1": 0x0000F100}, {"r0": 0xC6003800}),
    ("UMOV.64 UR4,0x100000002", {}, {"ur4": 2, "ur5": 1}),
    ("MOV.64 R0,UR4", {"ur4": 7, "ur5": 8}, {"r0": 7, "r1": 8}),
    ("UISETP.NE.S64.AND UP0,UPT,UR4,URZ,UPT", {"ur5": 1}, {"up0": 1}),
    ("UFFMA UR4,UR5,-UR6,1", {"ur5": f(2), "ur6": f(3)}, {"ur4": f(-5)}),
    ("FFMA.RM R0,R1,R2,R3", {"r1": f(1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(1)}),
    ("FFMA.RP R0,R1,R2,R3", {"r1": f(1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(1 + 2**-23)}),
    ("FFMA.RP R0,R1,R2,-R3", {"r1": f(-1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(-1)}),
    ("FFMA.RM R0,R1,R2,-R3", {"r1": f(-1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(-1 - 2**-23)}),
    ("FFMA.RZ R0,R1,R2,-R3", {"r1": f(-1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(-1)}),
    ("FFMA.RZ R0,R1,R2,-R3", {"r1": f(1), "r2": f(2**-30), "r3": f(1)}, {"r0": f(-1 + 2**-24)}),
    ("FFMA.RM R0,R1,R2,-R3", {"r1": f(1), "r2": f(1), "r3": f(1)}, {"r0": 0x80000000}),
    ("FFMA.RP R0,R1,R2,-R3", {"r1": f(1), "r2": f(1), "r3": f(1)}, {"r0": 0}),
    ("FFMA.RZ R0,R1,R1,RZ", {"r1": 0x7F000000}, {"r0": 0x7F7FFFFF}),
    ("FFMA.RP R0,R1,R1,RZ", {"r1": 1}, {"r0": 1}),
    ("FFMA.RM R0,R1,-R1,RZ", {"r1": 1}, {"r0": 0x80000001}),
    ("MUFU.RSQ R0,-QNAN ", {}, {"r0": NAN}),
    ("FCHK P0,R1,R2", {"r1": f(3), "r2": f(6)}, {"p0": 0}),
    ("FCHK P0,R1,R2", {"r1": 1, "r2": f(6)}, {"p0": 1}),
    ("FCHK P0,R1,R2", {"r1": f(3), "r2": 0}, {"p0": 1}),
    ("HFMA2.BF16_V2 R0,-RZ.H0_H0,RZ.H0_H0,|R1|", {"r1": 0xFFC0BF80}, {"r0": 0x7FFF3F80}),
    ("HFMA2.BF16_V2 R0,R1,R2,R3", {"r1": 0x3F813F80, "r2": 0x3F813F80, "r3": 0x00013380}, {"r0": 0x3F823F80}),
    ("HADD2.BF16_V2 R0,R1,-136,-136", {"r1": 0x43084309}, {"r0": 0x00003F80}),
    ("HADD2.BF16_V2 R0,R1,R2", {"r1": 0x80003F80, "r2": 0x80003B80}, {"r0": 0x80003F80}),
    ("HFMA2.BF16_V2 R0,R1,1,1,-RZ", {"r1": 0x00018001}, {"r0": 0x00018001}),
    ("HFMA2.MMA.BF16_V2 R0,R1,R2,-RZ", {"r1": 0x3F808000, "r2": 0x40000000}, {"r0": 0x40008000}),
    ("HMNMX2.BF16_V2 R0,R1,R2,!PT", {"r1": 0x7FC03F80, "r2": 0xBF804000}, {"r0": 0xBF804000}),
    ("HMNMX2.BF16_V2 R0,R1,R2,PT", {"r1": 0x80007FC0, "r2": 0x00007FC1}, {"r0": 0x80007FFF}),
    ("HMNMX2.BF16_V2 R0,R1.H0_H0,R1.H1_H1,!PT", {"r1": 0x40003F80}, {"r0": 0x40004000}),
    ("VHMNMX R0,|R1|,|R2|,|R3|,!PT", {"r1": 0xC0003C00, "r2": 0x3C004000, "r3": 0x7E00C200}, {"r0": 0x40004200}),
    ("VHMNMX.BF16_V2 R0,R1,R2,R3,PT", {"r1": 0x3F803F80, "r2": 0x40007FC0, "r3": 0xBF807FC0}, {"r0": 0xBF803F80}),
    ("HSETP2.GT.AND P0,PT,R1.H0_H0,R1.H1_H1,PT", {"r1": 0x3C004000}, {"p0": 1}),
    ("HSETP2.NEU.AND P0,P1,R1,R2,PT", {"r1": 0x3C007E00, "r2": 0x3C007E00}, {"p0": 1, "p1": 0}),
    ("HSETP2.GTU.AND P0,P1,R1,R2,PT", {"r1": 0x3C007E00, "r2": 0x3C007E00}, {"p0": 1, "p1": 0}),
    ("HSETP2.BF16_V2.LE.AND P0,P1,R1,R2,PT", {"r1": 0x3F807FC0, "r2": 0x3F807FC0}, {"p0": 0, "p1": 1}),
    ("F2FP.F16.E4M3.UNPACK_B R0,R1", {"r1": 0xABCDFE01}, {"r0": 0xDF001800}),
    ("F2FP.F16.E2M3.UNPACK_B R0,R1", {"r1": 0xABCD3F01}, {"r0": 0xC7803000}),  # -7.5, 0.125
    ("F2FP.F16.E2M3.UNPACK_B R0,R1.H1", {"r1": 0x0828ABCD}, {"r0": 0x3C00BC00}),  # 1, -1
    ("F2FP.F16.E3M2.UNPACK_B R0,R1", {"r1": 0xABCD3F01}, {"r0": 0xCF002C00}),  # -28, 0.0625
    ("F2FP.F16.E4M3.UNPACK_B R0,R1", {"r1": 0xFF38}, {"r0": 0x7FFF3C00}),
    (
        "F2FP.SATFINITE.E2M3.F32.PACK_AB_MERGE_C R0,R1,R2,R3",
        {"r1": f(1), "r2": f(-7.5), "r3": 0xAB12},
        {"r0": 0xAB12083F},
    ),
    ("HADD2.F32 R0,R1.H1_H1,-RZ.H0_H0", {"r1": 0xBC000000}, {"r0": f(-1)}),
    ("F2F.F16.F32 R0,R1", {"r1": f(-1)}, {"r0": 0x6B43BC00}),
    ("P2R R0,RZ,0x2", {"p0": 1, "p1": 1}, {"r0": 2}),
    ("R2P PR,R1,0x6", {"r1": 0xC, "p0": 1, "p1": 1, "p2": 0}, {"p0": 1, "p1": 0, "p2": 1}),
    ("P2R R0,R1,0x41", {"r1": 0xFFFFFFFF, "p0": 0, "p6": 1}, {"r0": 0xFFFFFFFE}),
    ("F2F.F64.F32 R0,R2", {"r2": SIGNALLING}, {"r0": 0x20000000, "r1": 0xFFF80000}),
    ("F2F.F32.F64 R0,R2", {"r2": 0x10000000, "r3": 0x3FF00000}, {"r0": f(1)}),
    ("F2F.F32.F64 R0,R2", {"r2": 0x10000001, "r3": 0xBFF00000}, {"r0": f(-1) + 1}),
    ("F2F.F32.F64 R0,R2", {"r2": 0xF0000000, "r3": 0x47EFFFFF}, {"r0": INF}),
    ("F2F.F32.F64 R0,R2", {"r2": 0x20000001, "r3": 0xFFF00000}, {"r0": 0xFFC00001}),
    ("F2F.F32.F64.RZ R0,R2", {"r2": 0x1FFFFFFF, "r3": 0xBFF00000}, {"r0": f(-1)}),
    ("F2F.F32.F64.RZ R0,R2", {"r2": 0xFFFFFFFF, "r3": 0x7FEFFFFF}, {"r0": INF - 1}),
    ("F2F.F32.F64.RZ R0,R2", {"r2": 0xFFFFFFFF, "r3": 0x380FFFFF}, {"r0": 0x007FFFFF}),
    ("F2F.F32.F64.RZ R0,R2", {"r2": 0, "r3": 0x7FF00000}, {"r0": INF}),
    ("UIADD3.64 UR8,UPT,UPT,UR8,0x2,URZ", {"ur8": 0xFFFFFFFF, "ur9": 1}, {"ur8": 1, "ur9": 2}),
    ("UIADD3.64 UR4,UPT,UPT,-UR8,UR6,URZ", {"ur8": 1, "ur6": 0, "ur7": 5}, {"ur4": 0xFFFFFFFF, "ur5": 4}),
    ("UIADD3.64 UR4,UPT,UPT,UR6,-UR8,URZ", {"ur8": 0, "ur9": 1, "ur6": 3, "ur7": 1}, {"ur4": 3, "ur5": 0}),
    ("UIMAD.HI.U32 UR4,UR5,UR11,UR4", {"ur5": 0x80000000, "ur11": 6, "ur4": 9}, {"ur4": 0x80000003}),
    (
        "UIMAD.HI.U32 UR20,UP2,UR24,UR4,UR20",
        {"ur24": 0xFFFFFFFF, "ur4": 0xFFFFFFFF, "ur20": 0, "ur21": 2},
        {"ur20": 0, "up2": 1},
    ),
    ("UIADD3.64 UR6,UPT,UPT,-UR6,UR4,URZ", {"ur4": 1, "ur5": 2, "ur6": 2, "ur7": 0}, {"ur6": 0xFFFFFFFF, "ur7": 1}),
    ("UIADD3.64 UR6,UPT,UPT,UR6,-UR4,-UR8", {"ur4": 1, "ur5": 1, "ur6": 7, "ur7": 3, "ur8": 2}, {"ur6": 4, "ur7": 2}),
    ("IMAD.HI R0,R1,R4,RZ", {"r1": 0xFFFFFFFE, "r4": 3}, {"r0": 0xFFFFFFFF}),
    ("IABS R0,R1", {"r1": 0xFFFFFFFB}, {"r0": 5}),
    ("SGXT R0,R1,0x8", {"r1": 0x180}, {"r0": 0xFFFFFF80}),
    ("VIADDMNMX R0,R1,0x3,R2,PT", {"r1": 0xFFFFFFFF, "r2": 5}, {"r0": 2}),
    ("HMUL2.BF16_V2 R0,R1,R2", {"r1": 0x40003F80, "r2": 0x40404040}, {"r0": 0x40C04040}),
    ("F2I.FTZ.U32.TRUNC.NTZ R0,R1", {"r1": f(3.75)}, {"r0": 3}),
    ("UF2I.FTZ.U32.TRUNC.NTZ UR5,UR4", {"ur4": f(4294966784.0)}, {"ur5": 4294966784}),
    ("F2I.U32.TRUNC.NTZ R0,R1", {"r1": f(4095.9)}, {"r0": 4095}),
    ("F2I.U32.TRUNC.NTZ R0,R1", {"r1": f(5e9)}, {"r0": 0xFFFFFFFF}),
    ("F2I.U32.TRUNC.NTZ R0,R1", {"r1": QUIET}, {"r0": 0}),
    ("F2I.FTZ.U32.TRUNC.NTZ R0,R1", {"r1": f(-1)}, {"r0": 0}),
    ("I2F.RP R0,R1", {"r1": 0x01000001}, {"r0": f(16777218)}),
    ("I2F.RP R0,R1", {"r1": 0xFEFFFFFF}, {"r0": f(-16777216)}),
    ("I2FP.F32.S32 R0,R1", {"r1": 0xFEFFFFFF}, {"r0": f(-16777216)}),
    ("I2F.U32.RP R0,R1", {"r1": 0xFF000001}, {"r0": f(0xFF000100)}),
    ("I2FP.F32.U32 R0,R1", {"r1": 0xFFFFFFFF}, {"r0": f(4294967296)}),
]
OF_GRIDS: list[tuple[str, dict[str, int], dict[str, int]]] = [
    ("F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP R0,R1,R2,RZ", {"r1": f(4), "r2": f(4.5)}, {"r0": 0x8182}),
    ("F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP R0,R1,R2,RZ", {"r1": INF, "r2": NAN}, {"r0": 0xFEFF}),
    ("F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP R0,R1,R2,RZ", {"r1": 0x400000, "r2": 0x400001}, {"r0": 0x0001}),
    ("F2FP.BF16.E8.UNPACK_B R0,R1", {"r1": 0xFF00}, {"r0": 0x7FFF0040}),
    ("F2FP.BF16.E8.UNPACK_B R0,R1", {"r1": 0x7F81}, {"r0": 0x3F804080}),
    ("F2F.BF16.F32.RP R0,R1", {"r1": 0x3F800001}, {"r0": 0x6B433F81}),
    ("F2F.BF16.F32.RP R0,R1", {"r1": 0xBF80FFFF}, {"r0": 0x6B43BF80}),
    ("I2F.U64.RP R0,R2", {"r2": 1, "r3": 1 << 8}, {"r0": f(2**40) + 1}),
    ("FSEL R0,R1,+QNAN ,P0", {"r1": 5, "p0": 1}, {"r0": 5}),
    ("IADD R0,R1,-0x20", {"r1": 0x10}, {"r0": 0xFFFFFFF0}),
    ("LDC R0,c[0x2][R1+0x4]", {"r1": 4}, {"r0": 33}),
    ("LDCU UR4,c[0x2][0x4]", {}, {"ur4": 22}),
]
"""Instructions of whole grids, whose functions are in ``grid.c``. The kernel's own constants are 11, 22 and 33."""

OF_WHOLE_KERNELS = {
    "LDC.U8",
    "LDC.S8",
    "LDCU.S8",
    "ULDC.S8",
    "LDCU.U8",
    "ULDC.U8",
    "LDG.E.ENL2.256",
    "LDG.E.ENL2.256.CONSTANT",
    *(f"LDG.E.ENL2.256.STRONG.{scope}" for scope in ("CTA", "SM", "GPU", "SYS")),
    "MUFU.EX2",
}
"""Opcodes with memory or other threads, which no GPU ran: FlashInfer's kernels alone have them, beside upstream's."""


def instruction(text: str) -> Decoded:
    (one,) = read(document(text), arch=ARCH).instructions
    return one


@pytest.mark.parametrize("grid", [False, True])
def test_each_case_gives_what_was_worked_out(grid: bool, tmp_path: Path) -> None:
    """All in one program: a block for each, its registers set, then written."""
    cases, head = (OF_GRIDS, '#define main unused\n#include "grid.c"\n#undef main') if grid else (CASES, "")
    if grid:
        for name in ("grid.c", "mma.h", "tensor_map.h"):
            (tmp_path / name).write_text(Path(translate.__file__).with_name(name).read_text())
        (tmp_path / "kernel.inc").write_text(
            translate.translate(document("EXIT"), arch=ARCH, words=(11, 22, 33), grid=True).c
        )
    lines = [head, "#include <stdio.h>", '#include "runtime.h"', "int main(void) {", "const struct launch *launch = 0;"]
    for number, (text, before, after) in enumerate(cases):
        operands = Operands(instruction(text), LAYOUTS[12], grid=grid)
        body = statements(TABLE[instruction(text).opcode].emit(operands), 0)
        names = sorted(operands.read | before.keys() | after.keys())
        lines += ["{", *(f"uint32_t {name} = {before.get(name, 0):#x}u;" for name in names), "{", body, "}"]
        lines += [f'printf("{number} {name} %x\\n", {name});' for name in after] + ["}"]
    (tmp_path / RUNTIME).write_text(runtime())
    (tmp_path / "main.c").write_text("\n".join([*lines, "(void)launch; return 0; }"]))
    defined = ["-DSASS_KERNEL=kernel", "-DSASS_SHARED=0", "-DSASS_STACK=0"]
    for flags in (defined, [*defined, "-march=native"]):
        command = ["gcc", "-std=gnu11", "-O1", "-w", "-ffp-contract=off", *flags, "main.c", "-o", "main", "-lm"]
        subprocess.run(command, cwd=tmp_path, check=True)
        out = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
        got = [(int(n), name, int(value, 16)) for n, name, value in map(str.split, out.splitlines())]
        expected = [(n, name, value) for n, (_, _, after) in enumerate(cases) for name, value in after.items()]
        assert [(cases[n][0], name, hex(v)) for n, name, v in got] == [
            (cases[n][0], name, hex(v)) for n, name, v in expected
        ]


def test_of_every_family_one_is_worked_out_or_ran_on_a_gpu() -> None:
    """A family differs in a number, a width or a relation: relations of a comparison, widths of a load."""
    run = {text.split()[0] for text in golden_texts()}
    run |= {instruction(text).opcode for text, _, _ in (*CASES, *OF_GRIDS)}
    known = {entry.family for opcode, entry in TABLE.items() if opcode in run}
    assert {opcode for opcode, entry in TABLE.items() if entry.family not in known} == OF_WHOLE_KERNELS


def golden_texts() -> Iterator[str]:
    """Opcode and operands of every instruction that a GPU ran."""
    for path in sorted((GOLDEN / "listings").iterdir()):
        for one in read(gzip.decompress(path.read_bytes()).decode(), arch=(9, 0)).instructions:
            yield re.sub(r"^@\S+ ", "", one.text).replace(", ", ",")


def test_no_modifier_of_an_operand_is_passed_over() -> None:
    """One that is put to a register of any known instruction changes what is computed, or is refused."""
    texts = {text for text, _, _ in CASES}
    texts |= {text for text in golden_texts() if " " in text}
    tried, ignored = 0, []
    for text in sorted({re.sub(r"\d+", "#", text): text for text in texts if text.split()[0] in TABLE}.values()):
        meant = computes(text)
        opcode, _, operands = text.partition(" ")
        for place in re.finditer(r"(?<![\w\[.+|!~-])U?[RP](?:\d+|[ZT])(?![\w\].|])", operands) if meant else ():
            for before, after in (("-", ""), ("~", ""), ("!", ""), ("|", "|"), *(("", part) for part in PARTS)):
                changed = f"{operands[: place.start()]}{before}{place[0]}{after}{operands[place.end() :]}"
                tried += 1
                half_of_zero = place[0].endswith("Z") and after.startswith(".H")
                if not half_of_zero and computes(f"{opcode} {changed}") == meant:
                    ignored.append(f"{opcode} {changed}")
    assert tried > 5000
    assert ignored == []


PARTS = (".H0_H0", ".H1_H1", ".B0", ".B3", ".64", ".U16")


def computes(text: str) -> list[Effect]:
    """Effects of an instruction; empty where it is refused."""
    try:
        one = instruction(text)
        return TABLE[one.opcode].emit(Operands(one, LAYOUTS[12]))
    except (SassError, Lacks):
        return []


@pytest.mark.parametrize("major", LAYOUTS)
def test_parameters_follow_all_that_the_driver_writes(major: int) -> None:
    layout = LAYOUTS[major]
    assert max(layout.block_size + 24, layout.stack + 4, (layout.descriptor or 0) + 8) <= layout.parameters
