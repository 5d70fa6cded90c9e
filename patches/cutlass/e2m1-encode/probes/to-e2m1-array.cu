// NumericArrayConverter<float_e2m1_t, SOURCE, VALUES, ROUND>: what quantizing epilogues call; or FUNCTION, if there is one.
// Each thread loads VALUES values and stores VALUES packed nibbles, so that little else is in the listing.

#include <cstdint>

#include "cutlass/numeric_conversion.h"

#ifndef SOURCE
#error "SOURCE: the type converted from: float, cutlass::half_t or cutlass::bfloat16_t"
#endif
#ifndef VALUES
#error "VALUES: how many values a thread converts; of an odd number the last byte has one nibble, and a zero"
#endif
#ifndef ROUND
#define ROUND round_to_nearest
#endif

#ifdef FUNCTION
struct Converter {
  using source_type = cutlass::Array<SOURCE, VALUES>;
  __device__ auto operator()(source_type const& source) const { return FUNCTION(source); }
};
#else
using Converter =
    cutlass::NumericArrayConverter<cutlass::float_e2m1_t, SOURCE, VALUES, cutlass::FloatRoundStyle::ROUND>;
#endif

constexpr int kMost = 16 / sizeof(SOURCE);  // values in one load, which is of at most 16 bytes
constexpr int kLoad = VALUES & (VALUES - 1) ? 1 : VALUES < kMost ? VALUES : kMost;
constexpr int kBytes = (VALUES + 1) / 2;

struct alignas(sizeof(SOURCE) * kLoad) Load {
  SOURCE value[kLoad];
};
struct alignas(kBytes & (kBytes - 1) ? 1 : kBytes) Packed {
  uint8_t byte[kBytes];
};

extern "C" __global__ void probe(Load const* source, Packed* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  typename Converter::source_type in;
#pragma unroll
  for (int load = 0; load < VALUES / kLoad; ++load) {
    Load const loaded = source[VALUES / kLoad * i + load];
#pragma unroll
    for (int k = 0; k < kLoad; ++k) {
      in[load * kLoad + k] = loaded.value[k];
    }
  }
  auto const out = Converter{}(in);
  static_assert(sizeof(out) == sizeof(Packed), "CUTLASS packs two values in a byte");
  Packed result = reinterpret_cast<Packed const&>(out);
  if (VALUES % 2) {
    result.byte[kBytes - 1] &= 0xf;
  }
  packed[i] = result;
}
