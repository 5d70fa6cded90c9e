// shfl.sync in every mode, with counts and segments from memory: the result, and whether the lane read is inside.
#include <cstdint>

#define SHUFFLE(mode, result, inside, value, b, c)                         \
  asm volatile("{ .reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, %4, -1; selp.u32 %1, 1, 0, p; }" \
               : "=r"(result), "=r"(inside)                                 \
               : "r"(value), "r"(b), "r"(c))

extern "C" __global__ void probe(uint32_t const* values, uint32_t const* counts, uint32_t* results) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const value = values[i], b = counts[2 * i] & 63, c = counts[2 * i + 1] & 0x1f1f;
  uint32_t r[8];
  SHUFFLE("up", r[0], r[1], value, b, c);
  SHUFFLE("down", r[2], r[3], value, b, c);
  SHUFFLE("bfly", r[4], r[5], value, b, c);
  SHUFFLE("idx", r[6], r[7], value, b, c);
  for (int k = 0; k < 8; ++k) {
    results[8 * i + k] = r[k];
  }
}
