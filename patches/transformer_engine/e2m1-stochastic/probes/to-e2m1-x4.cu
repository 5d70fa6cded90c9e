// mul_cvt_bf16_to_fp4_4x_with_…, mul_cvt_fp32_to_fp4_4x_with_…: FUNCTION, with a scale for even values and a negative one for odd values.

#include "functions.cuh"

#if BFLOAT16
using Value = unsigned int;  // two of them
#else
using Value = float;
#endif
constexpr int kWords = BFLOAT16 ? 2 : 4;

// Factors of the even and the odd values of a record: 1, or what the probe states.
#ifndef EVEN
#define EVEN 1.0f
#define ODD 1.0f
#endif

struct alignas(RANDOM ? 4 : 4 * kWords) Record {
  Value value[kWords];
#if RANDOM
  unsigned int random;
#endif
};

extern "C" __global__ void probe(Record const* source, unsigned short* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Record const record = source[i];
#if RANDOM
  unsigned int const random = record.random;
#else
  unsigned int const random = 0;
#endif
  float2 const scale = make_float2(EVEN, -ODD);
#if defined(__CUDA_ARCH__)
#if BFLOAT16
  uint2 const values = {record.value[0] ^ 0x80000000u, record.value[1] ^ 0x80000000u};
  auto const out = functions::FUNCTION(reinterpret_cast<unsigned long long const&>(values), scale, random);
#else
  auto const out = functions::FUNCTION(make_float2(record.value[0], -record.value[1]),
                                       make_float2(record.value[2], -record.value[3]), scale, random);
#endif
  packed[i] = reinterpret_cast<unsigned short const&>(out);
#endif
}
