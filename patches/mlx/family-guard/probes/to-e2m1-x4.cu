// scale_cvt_Tx4_to_fp4x4, with negated values and a scale of -1, so that the multiplication counts.

#include <type_traits>

#include "mlx/backend/cuda/quantized/nvfp4_quantize.cuh"

using Values = mlx::core::cu::Vector4_t<VALUE>;

extern "C" __global__ void probe(Values const* source, unsigned short* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Values const v = source[i];
  packed[i] = mlx::core::cu::scale_cvt_Tx4_to_fp4x4<VALUE, false>({-v.x, -v.y, -v.z, -v.w}, -1.0f, 0);
}
