// The functions of the encoder that no statement of FlashInfer calls, one by one: of VALUES floats, or halves in pairs.
// Pristine FlashInfer has no encoder; its own conversion takes the place.

#include "copies.cuh"

#if !defined(SOURCE) || !defined(VALUES)
#error "SOURCE: float or half; VALUES: how many a thread converts: 2, 4, 8 or 16"
#endif
#if defined(FP4PATCH_HALF_PAIR_CUH)
#define ENCODER fp4patch_half_pair
#elif defined(FP4PATCH_THRESHOLD_CUH)
#define ENCODER fp4patch_threshold
#elif defined(FP4PATCH_PREDICATE_SUM_CUH)
#define ENCODER fp4patch_predicate_sum
#endif
#ifdef PAIR
#define TWO(k) PAIR(v[(k) % VALUES], v[((k) + 1) % VALUES])
#else
#define TWO(k) v[(k) % VALUES], v[((k) + 1) % VALUES]
#endif

template <int kBytes> struct Word { using type = uint8_t; };
template <> struct Word<2> { using type = uint16_t; };
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = uint64_t; };

struct alignas(sizeof(SOURCE) * 2) Load {
  SOURCE value[2];
};

extern "C" __global__ void probe(Load const* source, Word<VALUES / 2>::type* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  SOURCE v[VALUES];
#pragma unroll
  for (int k = 0; k < VALUES; k += 2) {
    Load const two = source[(VALUES * i + k) / 2];
    v[k] = two.value[0];
    v[k + 1] = two.value[1];
  }
#ifdef ENCODER
  using namespace ENCODER;
  // Where fewer values are converted than a branch takes, it is compiled, and never executed.
  if constexpr (VALUES == 2) {
    packed[i] = e2m1_x2(TWO(0));
  } else if constexpr (VALUES == 4) {
    packed[i] = e2m1_x4(TWO(0), TWO(2));
  } else if constexpr (VALUES == 8) {
    packed[i] = e2m1_x8(TWO(0), TWO(2), TWO(4), TWO(6));
  } else {
    packed[i] = e2m1_x16(TWO(0), TWO(2), TWO(4), TWO(6), TWO(8), TWO(10), TWO(12), TWO(14));
  }
#else
  uint64_t nibbles = 0;
#pragma unroll
  for (int k = 0; k < VALUES; ++k) {
    nibbles |= uint64_t(flashinfer::math::fp32_vec_to_e2m1(float(v[k]), 0, 0, 0, 0, 0, 0, 0) & 15) << 4 * k;
  }
  packed[i] = nibbles;
#endif
}
