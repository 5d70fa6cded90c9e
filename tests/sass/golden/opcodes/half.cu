// F2FP to half, bfloat16 and E4M3; HADD2, HMUL2, HFMA2, HMNMX2; halves widened to float;
// float widened to double.
#include "operands.cuh"

#define H(name, d) asm(name " %0, %1, %2;" : "=r"(d) : "r"(x), "r"(y))

PROBE(16) {
  uint32_t const y = second(x), z = third(x);
  float const a = __uint_as_float(x), b = __uint_as_float(y);
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[0]) : "f"(a), "f"(b));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[1]) : "f"(a), "f"(b));
  H("add.rn.f16x2", out[2]);
  H("mul.rn.f16x2", out[3]);
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out[4]) : "r"(x), "r"(y), "r"(z));
  H("min.f16x2", out[5]);
  H("max.f16x2", out[6]);
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out[7]) : "r"(x), "r"(0x3bfb3800u), "r"(0x3c000001u));
  unsigned short e4m3;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e4m3) : "f"(a), "f"(b));
  out[8] = e4m3;
  unsigned short const low = x & 0xffff, high = x >> 16;
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(low));
  out[9] = __float_as_uint(wide);
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(high));
  out[10] = __float_as_uint(wide);
  // An E4M3 of values near its range, which hashes seldom are.
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
      : "=h"(e4m3)
      : "f"(__uint_as_float(0x3a000000u + (x & 0x8bffffffu))), "f"(__uint_as_float((x << 3 & 0x80000000u) | 0x43000000u | (x & 0xffffffu))));
  out[11] = e4m3;
  double precise;
  asm("cvt.f64.f32 %0, %1;" : "=d"(precise) : "f"(a));
  out[12] = __double2loint(precise);
  out[13] = __double2hiint(precise);
  // Halves that were just rounded, as the encoders use them.
  asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(out[14]) : "r"(out[3]), "r"(0x0e000e00u));
  out[15] = out[0] ^ out[5];
}
