// NumericConverter<float_e2m1_t, float>: one value, which the array converters' software path loops over.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

using Converter = cutlass::NumericConverter<cutlass::float_e2m1_t, float>;

extern "C" __global__ void probe(float const* source, uint8_t* nibble) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  nibble[i] = Converter::convert(source[i]).raw();
}
