// A stand-in for cuRANDDx, which 2.8 and 2.9 take their random bits from: the types, and bits of another generator.
#pragma once

#include <cuda_runtime.h>

namespace curanddx {

enum generator { philox4_32 };

struct Descriptor {
  unsigned long long state;
  Descriptor() = default;
  __device__ Descriptor(unsigned long long seed, unsigned long long sequence, unsigned long long offset)
      : state(seed ^ sequence << 20 ^ offset << 40) {}
};
template <generator> struct Generator : Descriptor {};
template <int> struct PhiloxRounds : Descriptor {};
template <int> struct SM : Descriptor {};
struct Thread : Descriptor {};
inline Descriptor operator+(Descriptor, Descriptor) { return {}; }

struct uniform_bits {
  __device__ uint4 generate4(Descriptor& rng) const {
    uint4 bits;
    for (unsigned int* word : {&bits.x, &bits.y, &bits.z, &bits.w}) {
      rng.state = rng.state * 6364136223846793005ull + 1442695040888963407ull;
      *word = static_cast<unsigned int>(rng.state >> 32);
    }
    return bits;
  }
};

}  // namespace curanddx
