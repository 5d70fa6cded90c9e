// FADD, FMUL, FFMA, FMNMX, with subnormals and with .FTZ; bars and signs on sources.
#include "operands.cuh"

#define OP2(name, d, a, b) asm(name " %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b))

PROBE(12) {
  float const a = __uint_as_float(x), b = __uint_as_float(second(x)), c = __uint_as_float(third(x));
  float r[12];
  OP2("add.rn.f32", r[0], a, b);
  OP2("mul.rn.f32", r[1], a, b);
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r[2]) : "f"(a), "f"(b), "f"(c));
  OP2("min.f32", r[3], a, b);
  OP2("max.f32", r[4], a, b);
  OP2("add.rn.ftz.f32", r[5], a, b);
  OP2("mul.rn.ftz.f32", r[6], a, b);
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r[7]) : "f"(a), "f"(b), "f"(c));
  OP2("min.ftz.f32", r[8], a, b);
  OP2("max.ftz.f32", r[9], a, b);
  OP2("add.rn.f32", r[10], -fabsf(a), b);
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r[11]) : "f"(-a), "f"(b), "f"(-c));
#pragma unroll
  for (int i = 0; i < 12; ++i) {
    out[i] = __float_as_uint(r[i]);
  }
}
