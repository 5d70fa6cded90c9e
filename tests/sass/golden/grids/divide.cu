// Division and reciprocal as IEEE 754 has them: the compiler's slow paths, which use MUFU.RCP, FCHK and other roundings.
#include <cstdint>

extern "C" __global__ void probe(float const* values, float* results) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  float const x = values[2 * i], y = values[2 * i + 1];
  results[8 * i] = __frcp_rn(x);
  results[8 * i + 1] = x / y;
  results[8 * i + 2] = x / 6.0f;
  results[8 * i + 3] = 1.0f / y;
  results[8 * i + 4] = __fmaf_rd(x, y, values[2 * (i ^ 1)]);
  results[8 * i + 5] = __fmaf_ru(x, y, -x);
  results[8 * i + 6] = __fmaf_rz(x, 1.5f, y);
  results[8 * i + 7] = __fmaf_rd(x, 1.0f, -x);
}
