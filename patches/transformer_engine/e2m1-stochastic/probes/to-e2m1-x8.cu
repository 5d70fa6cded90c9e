// mul_cvt_bf16_to_fp4_8x_…: FUNCTION, with negated values and a negative SCALE that is float or bf16. The instruction
// multiplies by a bf16 in an FMA with an addend of 0, which makes +0 of -0: there the probe inverts the sign, so that all
// inputs compare.

#include "functions.cuh"

#ifndef FACTOR
#define FACTOR 1.0f
#endif

struct alignas(RANDOM ? 4 : 16) Record {
  unsigned int word[4];  // two values each
#if RANDOM
  unsigned int random[RANDOM];
#endif
};

__device__ unsigned long long negated(unsigned int const* word) {
  uint2 const values = {word[0] ^ 0x80008000u, word[1] ^ 0x80008000u};
  return reinterpret_cast<unsigned long long const&>(values);
}

extern "C" __global__ void probe(Record const* source, unsigned int* packed) {
  using transformer_engine::bf16;
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Record const record = source[i];
  SCALE const scale = static_cast<SCALE>(-FACTOR);
#if RANDOM
  unsigned int out =
      functions::FUNCTION<SCALE>(negated(record.word), negated(record.word + 2), scale, record.random[0], record.random[1]);
#else
  unsigned int out = functions::FUNCTION<SCALE>(negated(record.word), negated(record.word + 2), scale);
#endif
#if PLUS_ZERO
  for (int n = 0; n < 8; ++n) out ^= (record.word[n / 2] >> 16 * (n % 2) & 0xffff) == 0x8000 ? 8u << 4 * n : 0u;
#endif
  packed[i] = out;
}
