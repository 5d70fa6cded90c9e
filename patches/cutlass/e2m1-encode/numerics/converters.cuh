// CUTLASS's own conversions of floats to E2M1, with the nibbles in one word, value 0 lowest. For the host and the GPU.

#include <cstring>

#include "cutlass/array.h"
#include "cutlass/numeric_conversion.h"

CUTLASS_HOST_DEVICE
unsigned int e2m1(float value) {
  return cutlass::NumericConverter<cutlass::float_e2m1_t, float>::convert(value).raw();
}

template <int kValues>
CUTLASS_HOST_DEVICE
unsigned long long e2m1_array(const float (&v)[kValues]) {
  cutlass::Array<float, kValues> source;
  for (int i = 0; i < kValues; ++i) {
    source[i] = v[i];
  }
  const auto packed = cutlass::NumericArrayConverter<cutlass::float_e2m1_t, float, kValues>::convert(source);
  static_assert(sizeof(packed) >= kValues / 2, "two values in a byte");
  unsigned long long word = 0;
  std::memcpy(&word, &packed, kValues / 2);
  return word;
}
