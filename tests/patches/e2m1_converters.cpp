// CUTLASS's converters to E2M1, as the host compiles them, against the specification, over float inputs.
//
//   e2m1_converters FIRST LAST STEP      bit patterns FIRST, FIRST + STEP, … below LAST, all 2^32 if they are 0 2^32 1
//
// Each pattern is one float, converted alone and in arrays of 2, 4, 8 and 16. half_t and bfloat16_t are swept
// in full beside that. One line of counts comes out; the exit status is 1 if any nibble is not as specified.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cutlass/numeric_conversion.h"

using cutlass::Array;
using cutlass::float_e2m1_t;

static uint64_t wrong = 0, checked = 0;

static float number(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Round to nearest, ties to even, saturated at 6; the sign of a number is kept, NaN is +6. Borders lie halfway between
// the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6, and belong to the neighbour whose code is even.
static uint32_t specified(float x) {
  if (std::isnan(x)) {
    return 7;
  }
  float const a = std::fabs(x);
  uint32_t const code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
  return (std::signbit(x) ? 8u : 0u) | code;
}

static void expect(uint64_t found, uint64_t wanted, char const *what, float x) {
  ++checked;
  if (found != wanted && ++wrong <= 5) {
    std::fprintf(stderr, "%s of %a: %d, not %d\n", what, static_cast<double>(x), static_cast<int>(found),
                 static_cast<int>(wanted));
  }
}

// The N values from `at` on as one array: nibble i of what it is converted to is that of value i.
template <int N, class Source>
static void array(Source const *values, uint64_t wanted, int at, char const *what) {
  Array<Source, N> source;
  std::memcpy(&source, values + at, N * sizeof(Source));
  auto const converted = cutlass::NumericArrayConverter<float_e2m1_t, Source, N>::convert(source);
  uint64_t packed = 0;
  std::memcpy(&packed, &converted, (N + 1) / 2);
  for (int i = 0; i < N; ++i) {
    expect(packed >> 4 * i & 15, wanted >> 4 * (at + i) & 15, what, static_cast<float>(values[at + i]));
  }
}

// Sixteen values: each alone, and at every place of arrays.
template <class Source>
static void sixteen(Source const *values, char const *what) {
  uint64_t wanted = 0;
  for (int i = 0; i < 16; ++i) {
    uint64_t const one = specified(static_cast<float>(values[i]));
    wanted |= one << 4 * i;
    expect(cutlass::NumericConverter<float_e2m1_t, Source>::convert(values[i]).raw(), one, what,
           static_cast<float>(values[i]));
  }
  array<16>(values, wanted, 0, what);
  for (int at = 0; at < 16; at += 8) {
    array<8>(values, wanted, at, what);
  }
  for (int at = 0; at < 16; at += 4) {
    array<4>(values, wanted, at, what);
  }
  for (int at = 0; at < 16; at += 2) {
    array<2>(values, wanted, at, what);
  }
#if defined(ANY_LENGTH)  // before 4.7 arrays of half_t and bfloat16_t may have any length
  if constexpr (sizeof(Source) == 2) {
    array<1>(values, wanted, 0, what);
    array<3>(values, wanted, 1, what);
    array<6>(values, wanted, 4, what);
    array<12>(values, wanted, 4, what);
    array<15>(values, wanted, 0, what);
  }
#endif
}

int main(int count, char **arguments) {
  if (count != 4) {
    return 2;
  }
  uint64_t const first = std::strtoull(arguments[1], nullptr, 0), last = std::strtoull(arguments[2], nullptr, 0);
  uint64_t const step = std::strtoull(arguments[3], nullptr, 0);
  float values[16];
  int filled = 0;
  auto take = [&](uint32_t bits) {
    values[filled++] = number(bits);
    if (filled == 16) {
      sixteen(values, "float");
      filled = 0;
    }
  };
  for (uint64_t bits = first; bits < last; bits += step) {
    take(static_cast<uint32_t>(bits));
  }
  // Both sides of every border, zero, infinity, quiet and signalling NaN, in both signs.
  for (uint32_t border : {0x00000000u, 0x3e800000u, 0x3f400000u, 0x3fa00000u, 0x3fe00000u, 0x40200000u, 0x40600000u,
                          0x40a00000u, 0x40c00000u, 0x7f800000u, 0x7fc00000u}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      for (int32_t off = -64; off < 64; ++off) {
        take((border + static_cast<uint32_t>(off)) ^ sign);
      }
    }
  }
  while (filled != 0) {
    take(0);
  }
  for (uint32_t bits = 0; bits < 0x10000u; bits += 16) {
    cutlass::half_t halves[16];
    cutlass::bfloat16_t brains[16];
    for (uint32_t i = 0; i < 16; ++i) {
      halves[i] = cutlass::half_t::bitcast(static_cast<uint16_t>(bits + i));
      brains[i] = cutlass::bfloat16_t::bitcast(static_cast<uint16_t>(bits + i));
    }
    sixteen(halves, "half_t");
    sixteen(brains, "bfloat16_t");
  }
  std::printf("%llu checked, %llu wrong\n", static_cast<unsigned long long>(checked),
              static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
