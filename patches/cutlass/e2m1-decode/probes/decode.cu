// float(float_e2m1_t), eight values, and the array converters that loop over it: CONVERTER is the type decoded to.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

using Source = cutlass::Array<cutlass::float_e2m1_t, 8>;

#if defined(CONVERTER)
using Decoded = CONVERTER;
#else
using Decoded = float;
#endif

struct alignas(16) Values {
  Decoded value[8];
};

extern "C" __global__ void probe(uint32_t const* packed, Values* decoded) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const in = packed[i];
  Source const source = reinterpret_cast<Source const&>(in);
#if defined(CONVERTER)
  auto const out = cutlass::NumericArrayConverter<Decoded, cutlass::float_e2m1_t, 8>::convert(source);
  decoded[i] = reinterpret_cast<Values const&>(out);
#else
  Values out;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    cutlass::float_e2m1_t const one = source[k];
    out.value[k] = float(one);
  }
  decoded[i] = out;
#endif
}
