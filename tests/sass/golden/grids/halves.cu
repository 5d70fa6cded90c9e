// Pairs of half and bfloat16, and E4M3: what block quantization computes with.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <class T>
__device__ T as(uint32_t bits) {
  return reinterpret_cast<T const&>(bits);
}
template <class T>
__device__ uint32_t bits(T value) {
  return reinterpret_cast<uint32_t const&>(value);
}

template <class Pair, class One>
__device__ void of_pairs(uint32_t x, uint32_t y, uint32_t z, uint32_t* results) {
  Pair const a = as<Pair>(x), b = as<Pair>(y), c = as<Pair>(z);
  results[0] = bits(__hfma2(a, b, c));
  results[1] = bits(__habs2(a));
  results[2] = bits(__hmax2(a, b));
  results[3] = bits(__hmin2(a, b));
  results[4] = bits(__hmax2(__hmax2(__habs2(a), __habs2(b)), __habs2(c)));
  results[5] = bits(__hmin2(__hmin2(a, b), c));
  results[6] = (__hgt(a.x, b.y) ? 1 : 0) | (__heq(a.x, c.x) ? 2 : 0) | (__hle(a.y, b.x) ? 4 : 0) | (__hneu(a.y, c.y) ? 8 : 0) |
               (__hlt(b.x, c.y) ? 16 : 0) | (__hge(b.y, c.x) ? 32 : 0);
  results[7] = bits(__hmul2(a, b));
}

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const x = values[4 * i], y = values[4 * i + 1], z = values[4 * i + 2];
  of_pairs<__half2, __half>(x, y, z, results + 20 * i);
  of_pairs<__nv_bfloat162, __nv_bfloat16>(x, y, z, results + 20 * i + 8);
  uint32_t low, high, packed;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(low) : "h"(static_cast<uint16_t>(x)));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(high) : "h"(static_cast<uint16_t>(x >> 16)));
  asm("{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, %2, %1; cvt.rn.satfinite.e4m3x2.f32 h, %4, %3; mov.b32 %0, {l, h}; }"
      : "=r"(packed)
      : "f"(as<float>(x)), "f"(as<float>(y)), "f"(as<float>(z)), "f"(as<float>(x ^ y)));
  results[20 * i + 16] = low;
  results[20 * i + 17] = high;
  results[20 * i + 18] = packed;
  results[20 * i + 19] = threadIdx.y + threadIdx.z;
}
