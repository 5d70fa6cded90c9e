// FMNMX.XORSIGN and HMNMX2.XORSIGN of two registers and of a register and an immediate; min and max of halves.
#include "operands.cuh"

#define F(name, d, b) asm(name " %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b))
#define H(name, d, b) asm(name " %0, %1, %2;" : "=r"(d) : "r"(x), "r"(b))

PROBE(8) {
  float const a = __uint_as_float(x);
  uint32_t const y = second(x);
  float r[4];
  F("min.xorsign.abs.f32", r[0], __uint_as_float(y));
  F("max.xorsign.abs.f32", r[1], __uint_as_float(y));
  F("min.xorsign.abs.f32", r[2], 16777222.0f);
  F("max.xorsign.abs.f32", r[3], 1.0f);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[i] = __float_as_uint(r[i]);
  }
  H("min.xorsign.abs.f16x2", out[4], y);
  H("max.xorsign.abs.f16x2", out[5], y);
  H("min.xorsign.abs.f16x2", out[6], 0x0e003c00u);
  out[7] = 0;
}
