// rcp.approx.ftz.f32 of every float against the rounded quotient: how many are how far off, and which way for the
// significands of [1, 2), two bits each.
#include <cstdint>

extern "C" __global__ void probe(unsigned long long* counts, uint32_t* significands) {
  unsigned long long found[5] = {0, 0, 0, 0, 0};
  uint64_t const threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t bits = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; bits >> 32 == 0; bits += threads) {
    float const x = __uint_as_float(static_cast<uint32_t>(bits));
    float r;
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    float flushed;
    asm volatile("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(flushed) : "f"(x));
    float rounded = __frcp_rn(flushed), expected;
    asm volatile("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(expected) : "f"(rounded));
    int const off = __float_as_int(r) - __float_as_int(expected);
    bool const edge = (__float_as_uint(expected) & 0x7fffffff) <= 0x00800000 || (__float_as_uint(expected) & 0x7fffffff) >= 0x7f7fffff;
    ++found[off == 0 ? 0 : edge ? 4 : off == 1 ? 1 : off == -1 ? 2 : 3];
    if (bits >> 23 == 127) {
      uint32_t const k = bits & 0x7fffff;
      atomicOr(significands + k / 16, static_cast<uint32_t>(off & 3) << 2 * (k % 16));
    }
  }
  for (int k = 0; k < 5; ++k) {
    atomicAdd(counts + k, found[k]);
  }
}
