// NumericArrayConverter<float, FP6, 4>: decoding FP6, which the same macro gates.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef FP6
#error "FP6: cutlass::detail::float_e2m3_unpack8bits_t or cutlass::detail::float_e3m2_unpack8bits_t"
#endif

using Converter = cutlass::NumericArrayConverter<float, FP6, 4>;

extern "C" __global__ void probe(uint32_t const* unpacked, float4* decoded) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const in = unpacked[i];
  auto const out = Converter::convert(reinterpret_cast<typename Converter::source_type const&>(in));
  decoded[i] = reinterpret_cast<float4 const&>(out);
}
