// Host code: a record of 42 values of type SOURCE through converters of arrays of 16, 8, 7, 4, 3 and 2 values, and of
// single ones. What the host's compiler makes of it runs, and no kernel.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cutlass/cutlass.h"
#include "cutlass/array.h"
#include "cutlass/numeric_conversion.h"
#include "cutlass/version.h"

// From 4.7 on CUTLASS refuses odd sizes, and of float always.
constexpr bool kOddSizes =
    !std::is_same_v<SOURCE, float> && (CUTLASS_MAJOR < 4 || (CUTLASS_MAJOR == 4 && CUTLASS_MINOR < 7));

static unsigned single(SOURCE const& value) {
  return cutlass::NumericConverter<cutlass::float_e2m1_t, SOURCE>::convert(value).raw();
}

// Puts N values, from number `at` of the record on, into its codes.
template <int N>
static void convert(SOURCE const* values, uint8_t* codes, int at) {
  uint64_t word = 0;
  if constexpr (N == 1 || (N % 2 != 0 && !kOddSizes)) {
    for (int k = 0; k < N; ++k) {
      word |= uint64_t(single(values[at + k])) << 4 * k;
    }
  } else {
    cutlass::Array<SOURCE, N> source;
    for (int k = 0; k < N; ++k) {
      source[k] = values[at + k];
    }
    auto const packed = cutlass::NumericArrayConverter<cutlass::float_e2m1_t, SOURCE, N>::convert(source);
    std::memcpy(&word, &packed, (N + 1) / 2);
  }
  for (int k = 0; k < N; ++k) {
    codes[at + k] = word >> 4 * k & 15;
  }
}

extern "C" void fp4patch_host(void const* all, void* packed, unsigned long long records) {
  for (unsigned long long record = 0; record < records; ++record) {
    SOURCE values[42];
    std::memcpy(values, static_cast<char const*>(all) + record * sizeof(values), sizeof(values));
    uint8_t codes[42];
    convert<16>(values, codes, 0);
    convert<8>(values, codes, 16);
    convert<7>(values, codes, 24);
    convert<4>(values, codes, 31);
    convert<3>(values, codes, 35);
    convert<2>(values, codes, 38);
    convert<1>(values, codes, 40);
    convert<1>(values, codes, 41);
    for (int k = 0; k < 21; ++k) {
      static_cast<uint8_t*>(packed)[21 * record + k] = static_cast<uint8_t>(codes[2 * k] | codes[2 * k + 1] << 4);
    }
  }
}
