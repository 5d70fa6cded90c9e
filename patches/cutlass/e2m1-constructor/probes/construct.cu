// float_e2m1_t(SOURCE), eight values: what code calls that does not go through the array converters.

#include <cstdint>

#include "cutlass/array_subbyte.h"
#include "cutlass/bfloat16.h"
#include "cutlass/float_subbyte.h"
#include "cutlass/half.h"

#ifndef SOURCE
#error "SOURCE: the type converted from: float, cutlass::half_t or cutlass::bfloat16_t"
#endif

static_assert(sizeof(cutlass::float_e2m1_t) == 1 && alignof(cutlass::float_e2m1_t) == 1);

constexpr int kLoad = 16 / sizeof(SOURCE) < 8 ? 16 / sizeof(SOURCE) : 8;  // values in one load

struct alignas(16) Load {
  SOURCE value[kLoad];
};

extern "C" __global__ void probe(Load const* source, uint32_t* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  cutlass::Array<cutlass::float_e2m1_t, 8> out;
#pragma unroll
  for (int load = 0; load < 8 / kLoad; ++load) {
    Load const in = source[8 / kLoad * i + load];
#pragma unroll
    for (int k = 0; k < kLoad; ++k) {
      out[load * kLoad + k] = cutlass::float_e2m1_t(static_cast<float>(in.value[k]));
    }
  }
  packed[i] = reinterpret_cast<uint32_t const&>(out);
}
