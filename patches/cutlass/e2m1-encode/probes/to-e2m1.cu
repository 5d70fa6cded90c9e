// NumericConverter<float_e2m1_t, SOURCE>: one value.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef SOURCE
#error "SOURCE: the type converted from: float, cutlass::half_t or cutlass::bfloat16_t"
#endif

using Converter = cutlass::NumericConverter<cutlass::float_e2m1_t, SOURCE>;

extern "C" __global__ void probe(SOURCE const* source, uint8_t* nibble) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  nibble[i] = Converter{}(source[i]).raw();
}
