// Host code: a record of VALUES values of type SOURCE through converters of arrays of many sizes, by functions and by
// objects, with each rounding style, which the conversion ignores, and of single values. What the host's compiler makes
// of it runs, and no kernel.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cutlass/cutlass.h"
#include "cutlass/array.h"
#include "cutlass/numeric_conversion.h"
#include "cutlass/version.h"

using cutlass::FloatRoundStyle;

constexpr bool kFloat = std::is_same_v<SOURCE, float>;
// From 4.7 on CUTLASS refuses arrays of other sizes than 2, 4 and multiples of 8, and of float always.
constexpr bool kAnySize = !kFloat && (CUTLASS_MAJOR < 4 || (CUTLASS_MAJOR == 4 && CUTLASS_MINOR < 7));

// What a converter states of itself is what it was asked for.
template <class Converter, class Source, class Result, FloatRoundStyle Round>
constexpr bool is_for = std::is_same_v<typename Converter::source_type, Source> &&
                        std::is_same_v<typename Converter::result_type, Result> && Converter::round_style == Round;

// Puts N values, from number `at` of the record on, into its codes; by the converter of single values if that is asked for
// or there is no other.
template <int N, FloatRoundStyle Round = FloatRoundStyle::round_to_nearest, bool kSingle = false>
static void convert(SOURCE const* values, uint8_t* codes, int& at) {
  if constexpr (kSingle || (!kAnySize && N != 2 && N != 4 && N % 8 != 0)) {
    using Single = cutlass::NumericConverter<cutlass::float_e2m1_t, SOURCE, Round>;
    static_assert(is_for<Single, SOURCE, cutlass::float_e2m1_t, Round>);
    Single const single{};
    for (int k = 0; k < N; ++k) {
      codes[at + k] = (k % 2 ? single(values[at + k]) : Single::convert(values[at + k])).raw() & 15;
    }
  } else {
    using Arrays = cutlass::NumericArrayConverter<cutlass::float_e2m1_t, SOURCE, N, Round>;
    static_assert(is_for<Arrays, cutlass::Array<SOURCE, N>, cutlass::Array<cutlass::float_e2m1_t, N>, Round>);
    Arrays const arrays{};
    cutlass::Array<SOURCE, N> source;
    for (int k = 0; k < N; ++k) {
      source[k] = values[at + k];
    }
    auto const packed = Arrays::convert(source), other = arrays(source);
    uint8_t bytes[(N + 1) / 2], others[(N + 1) / 2];
    std::memcpy(bytes, &packed, sizeof(bytes));
    std::memcpy(others, &other, sizeof(others));
    for (int k = 0; k < N; ++k) {
      codes[at + k] = (k % 4 < 2 ? bytes : others)[k / 2] >> 4 * (k % 2) & 15;
    }
  }
  at += N;
}

template <FloatRoundStyle... Round>
static void each_style(SOURCE const* values, uint8_t* codes, int& at) {
  (convert<2, Round>(values, codes, at), ...);
  (convert<1, Round, true>(values, codes, at), ...);
}

extern "C" void fp4patch_host(void const* all, void* packed, unsigned long long records) {
  for (unsigned long long record = 0; record < records; ++record) {
    SOURCE values[VALUES];
    std::memcpy(values, static_cast<char const*>(all) + record * sizeof(values), sizeof(values));
    uint8_t codes[VALUES];
    int at = 0;
    if constexpr (!kFloat) {  // those of float are upstream's
      convert<64>(values, codes, at);  // 16 bytes of codes are 32: twice what a store holds
      convert<32>(values, codes, at);
      convert<12>(values, codes, at);
      convert<6>(values, codes, at);
      convert<5>(values, codes, at);
      convert<1>(values, codes, at);
    }
    convert<16>(values, codes, at);
    convert<8>(values, codes, at);
    convert<7>(values, codes, at);
    convert<4>(values, codes, at);
    convert<3>(values, codes, at);
    convert<2>(values, codes, at);
    each_style<FloatRoundStyle::round_indeterminate, FloatRoundStyle::round_toward_zero,
               FloatRoundStyle::round_to_nearest, FloatRoundStyle::round_to_nearest_satfinite,
               FloatRoundStyle::round_toward_infinity, FloatRoundStyle::round_toward_neg_infinity,
               FloatRoundStyle::round_half_ulp_truncate, FloatRoundStyle::round_half_ulp_trunc_dntz>(values, codes, at);
    for (int k = 0; k < VALUES / 2; ++k) {
      static_cast<uint8_t*>(packed)[VALUES / 2 * record + k] = static_cast<uint8_t>(codes[2 * k] | codes[2 * k + 1] << 4);
    }
  }
}
