// NumericArrayConverter<FP6, float, 4>: FP6 conversions, two pairs, which the same macro gates.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef FP6
#error "FP6: cutlass::detail::float_e2m3_unpack8bits_t or cutlass::detail::float_e3m2_unpack8bits_t"
#endif

using Converter = cutlass::NumericArrayConverter<FP6, float, 4>;

extern "C" __global__ void probe(float4 const* source, uint32_t* unpacked) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 const in = source[i];
  auto const out = Converter::convert(reinterpret_cast<typename Converter::source_type const&>(in));
  static_assert(sizeof(out) == sizeof(uint32_t), "a byte for each value");
  unpacked[i] = reinterpret_cast<uint32_t const&>(out);
}
