// CUTLASS's FP4 and FP6 types, as the host compiles them: what their constructors and operators give, compared with
// the specification in exact arithmetic, and that their shapes are as ever. One line for each kind of error, then counts.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <type_traits>

#include "cutlass/float_subbyte.h"

using namespace cutlass;

static uint64_t checked = 0, wrong = 0;
static std::set<std::string> said;

// By its bits, since -ffast-math takes every std::isnan for false.
static bool is_nan(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof x);
  return (bits & ~(1ull << 63)) > 0x7ffull << 52;
}

static void expect(int found, int wanted, char const *what, double x) {
  ++checked;
  if (found != wanted) {
    ++wrong;
    if (said.insert(what).second) {
      std::printf("%s: %a gives %#x, not %#x\n", what, x, found, wanted);
    }
  }
}

// What code c of a format with so many bits of exponent and mantissa means.
template <int kExponent, int kMantissa>
static double number(int c) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  int const field = c >> kMantissa, fraction = c & ((1 << kMantissa) - 1);
  return std::ldexp(field ? (1 << kMantissa) + fraction : fraction, (field ? field : 1) - kBias - kMantissa);
}

// Boundaries lie halfway between two numbers, and belong to the one whose code is even. Doubles hold them exactly.
template <int kExponent, int kMantissa>
static int specified(double x) {
  constexpr int kMost = (1 << (kExponent + kMantissa)) - 1;
  if (is_nan(x)) {
    return kMost;
  }
  int code = 0;
  for (int c = 1; c <= kMost; ++c) {
    double const boundary = (number<kExponent, kMantissa>(c - 1) + number<kExponent, kMantissa>(c)) / 2;
    code += c % 2 != 0 ? std::fabs(x) > boundary : std::fabs(x) >= boundary;
  }
  return code | (std::signbit(x) ? kMost + 1 : 0);
}

template <class Value, int kExponent, int kMantissa>
static void format(char const *name, bool doubles) {
  static_assert(sizeof(Value) == 1 && alignof(Value) == 1);
  static_assert(std::is_trivially_copyable_v<Value> && std::is_trivially_default_constructible_v<Value>);
  static_assert(std::is_standard_layout_v<Value> && !std::is_polymorphic_v<Value>);
  static_assert(std::is_constructible_v<Value, float> && !std::is_convertible_v<float, Value>);
  static_assert(std::is_convertible_v<Value, float>);
  static_assert(sizeof_bits<float_e2m1_t>::value == 4 && sizeof_bits<float_e2m3_t>::value == 6);
  std::string const of = std::string(name) + " of ";
  auto const one = [&](float x) {
    std::string const what = of + (is_nan(x) ? std::signbit(x) ? "-nan" : "nan" : "a float");
    expect(Value(x).raw(), specified<kExponent, kMantissa>(x), what.c_str(), x);
  };
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 10007) {
    uint32_t const pattern = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, sizeof x);
    one(x);
  }
  float const inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float x : {inf, -inf, nan, -nan, 0.0f, -0.0f}) {
    one(x);
  }
  constexpr int kMost = (1 << (kExponent + kMantissa)) - 1;
  for (int c = 0; c <= kMost; ++c) {
    double const boundary = (number<kExponent, kMantissa>(c) + number<kExponent, kMantissa>(c + 1 <= kMost ? c + 1 : c)) / 2;
    for (double sign : {1.0, -1.0}) {
      float near = static_cast<float>(boundary);
      one(static_cast<float>(sign * near));
      one(static_cast<float>(sign * std::nextafter(near, 0.0f)));
      one(static_cast<float>(sign * std::nextafter(near, 100.0f)));
      for (double off : {0.0, 0x1p-52, 0x1p-40, 0x1p-26, 0x1p-24, -0x1p-53, -0x1p-40, -0x1p-26, -0x1p-25}) {
        double const x = sign * boundary * (1 + off);
        if (doubles) {
          expect(Value(x).raw(), specified<kExponent, kMantissa>(x), (of + "a double").c_str(), x);
        }
      }
    }
    for (int sign : {0, kMost + 1}) {
      double const meant = std::copysign(number<kExponent, kMantissa>(c), sign ? -1.0 : 1.0);
      float const found = static_cast<float>(Value::bitcast(static_cast<uint8_t>(c | sign)));
      expect(std::memcmp(&found, &static_cast<float const &>(static_cast<float>(meant)), 4) != 0, 0,
             (of + "a code").c_str(), meant);
      expect(static_cast<int>(Value::bitcast(static_cast<uint8_t>(c | sign))), static_cast<int>(meant),
             (of + "a code to int").c_str(), meant);
    }
  }
  for (int i = -40; i <= 40; ++i) {
    expect(Value(i).raw(), specified<kExponent, kMantissa>(i), (of + "an int").c_str(), i);
  }
  for (int a = 0; a < 2 * (kMost + 1); ++a) {
    for (int b = 0; b < 2 * (kMost + 1); ++b) {
      Value const x = Value::bitcast(static_cast<uint8_t>(a)), y = Value::bitcast(static_cast<uint8_t>(b));
      float const fx = static_cast<float>(x), fy = static_cast<float>(y);
      expect((x + y).raw(), specified<kExponent, kMantissa>(fx + fy), (of + "a sum").c_str(), fx + fy);
      expect((x * y).raw(), specified<kExponent, kMantissa>(fx * fy), (of + "a product").c_str(), fx * fy);
      expect(x < y, fx < fy, (of + "a comparison").c_str(), fx);
    }
  }
}

int main(int, char **) {
  format<float_e2m1_t, 2, 1>("E2M1", true);
  format<float_e2m3_t, 2, 3>("E2M3", false);
  format<detail::float_e2m3_unpack8bits_t, 2, 3>("E2M3", false);
  format<float_e3m2_t, 3, 2>("E3M2", false);
  format<detail::float_e3m2_unpack8bits_t, 3, 2>("E3M2", false);
  expect(std::numeric_limits<float_e2m1_t>::max().raw(), 7, "numeric_limits", 6);
  expect(std::numeric_limits<float_e2m1_t>::lowest().raw(), 15, "numeric_limits", -6);
  expect(static_cast<float_e2m1_t>(2.5f).raw(), 4, "static_cast", 2.5);
  std::printf("%llu checked, %llu wrong\n", static_cast<unsigned long long>(checked),
              static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
