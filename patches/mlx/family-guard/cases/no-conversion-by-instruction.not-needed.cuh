#include "mlx/backend/cuda/vector_types.cuh"

namespace mlx::core::cu {
template <typename T, bool USE_SR>
__device__ __forceinline__ uint16_t scale_cvt_Tx4_to_fp4x4(
    const Vector4_t<T>& input,
    const float scale,
    uint32_t rbits) {
  return 0;
}
} // namespace mlx::core::cu
