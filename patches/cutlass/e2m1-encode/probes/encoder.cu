// The functions of the encoder that e2m1-encode puts into CUTLASS, called one by one: of VALUES values of type
// SOURCE, or of VALUES / 2 pairs of type PAIR. Pristine CUTLASS has no such function; its own converter takes the place.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef SOURCE
#define SOURCE float
#endif
#ifndef VALUES
#error "VALUES: how many values a thread converts: 1, 2, 4, 8 or 16"
#endif

constexpr int kMost = 16 / sizeof(SOURCE);  // values in one load, which is of at most 16 bytes
constexpr int kLoad = VALUES < kMost ? VALUES : kMost;

struct alignas(sizeof(SOURCE) * kLoad) Load {
  SOURCE value[kLoad];
};
template <int kBytes> struct Word { using type = uint8_t; };
template <> struct Word<2> { using type = uint16_t; };
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = uint64_t; };

extern "C" __global__ void probe(Load const* source, Word<VALUES / 2>::type* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  SOURCE v[VALUES];
#pragma unroll
  for (int load = 0; load < VALUES / kLoad; ++load) {
    Load const loaded = source[VALUES / kLoad * i + load];
#pragma unroll
    for (int k = 0; k < kLoad; ++k) {
      v[load * kLoad + k] = loaded.value[k];
    }
  }
#ifdef FP4PATCH_HALF_PAIR_CUH
// Where fewer values are converted than a branch below takes, it is compiled, and never executed.
#define X(k) v[(k) % VALUES]
#ifdef PAIR
#define TWO(k) PAIR(X(k), X((k) + 1))
#else
#define TWO(k) X(k), X((k) + 1)
#endif
  using namespace fp4patch_half_pair;
  if constexpr (VALUES == 1) {
    packed[i] = e2m1(X(0));
  } else if constexpr (VALUES == 2) {
    packed[i] = e2m1_x2(TWO(0));
  } else if constexpr (VALUES == 4) {
    packed[i] = e2m1_x4(TWO(0), TWO(2));
  } else if constexpr (VALUES == 8) {
    packed[i] = e2m1_x8(TWO(0), TWO(2), TWO(4), TWO(6));
  } else {
    packed[i] = e2m1_x16(TWO(0), TWO(2), TWO(4), TWO(6), TWO(8), TWO(10), TWO(12), TWO(14));
  }
#undef X
#undef TWO
#else
  uint64_t nibbles = 0;
#pragma unroll
  for (int k = 0; k < VALUES; ++k) {
    float const value = static_cast<float>(v[k]);
    nibbles |= uint64_t(cutlass::NumericConverter<cutlass::float_e2m1_t, float>::convert(value).raw()) << 4 * k;
  }
  packed[i] = nibbles;
#endif
}
