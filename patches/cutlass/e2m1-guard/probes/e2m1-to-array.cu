// NumericArrayConverter<DECODED, float_e2m1_t, 8>: decoding, which the same macro gates.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef DECODED
#error "DECODED: the type decoded to, float or cutlass::half_t"
#endif

using Converter = cutlass::NumericArrayConverter<DECODED, cutlass::float_e2m1_t, 8>;

struct alignas(16) Values {
  DECODED value[8];
};

extern "C" __global__ void probe(uint32_t const* packed, Values* decoded) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const in = packed[i];
  auto const out = Converter::convert(reinterpret_cast<typename Converter::source_type const&>(in));
  decoded[i] = reinterpret_cast<Values const&>(out);
}
