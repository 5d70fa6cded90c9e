// What the parts of the bench program know of each other: one group is one translation unit, so that several versions
// of one library can be in one program.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fp4patch_bench {

constexpr int threads = 256;
constexpr int rounds = 4096;

// Of all 2^32 inputs: numbers (infinities included) that come out wrong, NaNs that do not become 6 of either sign, and
// NaNs that become -6 where the instruction gives +6.
struct Wrong {
  unsigned long long numbers, nans, nan_signs;
};

struct Encoder {
  const char* name;
  Wrong (*check)(int blocks);
  void (*in_registers)(int blocks, uint32_t* out, float step);
  void (*from_memory)(unsigned int blocks, const float4* in, uint32_t* out);
};

inline void ensure(cudaError_t status) {
  if (status != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
  }
}

// Magnitudes from 1/8 to 8, evenly by exponent, of both signs: what a block of scaled values looks like.
__device__ inline float start(uint32_t seed) {
  return __uint_as_float((seed * 2654435761u & 0x80000000u) | (0x3e000000u + seed * 2246822519u % 0x03000000u));
}

}  // namespace fp4patch_bench
