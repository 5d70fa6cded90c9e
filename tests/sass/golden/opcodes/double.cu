// F2F from doubles, to nearest and toward zero, and F2I. The upper word of each double goes through all 2^32; the lower
// one is zero, half of float's last place, next to that, or a hash.
#include "operands.cuh"

PROBE(8) {
  uint32_t const low[4] = {0u, 0x10000000u, hash(x) & 1u ? 0x10000001u : 0x0fffffffu, second(x)};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    double const d = __hiloint2double(x, low[i]);
    float nearest;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(nearest) : "d"(d));
    out[i] = __float_as_uint(nearest);
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    float zero;
    asm("cvt.rz.f32.f64 %0, %1;" : "=f"(zero) : "d"(__hiloint2double(x, low[i + 1])));
    out[4 + i] = __float_as_uint(zero);
  }
  int whole;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(whole) : "f"(__uint_as_float(x)));
  out[7] = whole;
}
