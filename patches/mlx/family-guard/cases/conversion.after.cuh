#include "mlx/backend/cuda/vector_types.cuh"

namespace mlx::core::cu {
#if (CUDART_VERSION >= 12080) && (__CUDA_ARCH__ >= 1000) && (__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000)

__device__ __forceinline__ uint16_t
scale_cvt_fp32x4_to_fp4x4_rn(float x, float y, float z, float w) {
  uint16_t out = 0;
  asm volatile(
      "{.reg .b8 low, high; cvt.rn.satfinite.e2m1x2.f32 low, %2, %1; "
      "cvt.rn.satfinite.e2m1x2.f32 high, %4, %3; mov.b16 %0, {low, high};}"
      : "=h"(out)
      : "f"(x), "f"(y), "f"(z), "f"(w));
  return out;
}

template <typename T, bool USE_SR>
__device__ __forceinline__ uint16_t scale_cvt_Tx4_to_fp4x4_fast(
    const Vector4_t<T> v,
    const float scale,
    uint32_t rbits) {
  return scale_cvt_fp32x4_to_fp4x4_rn(
      float(v.x) * scale, float(v.y) * scale, float(v.z) * scale, float(v.w) * scale);
}
#endif // (CUDART_VERSION >= 12080)

template <typename T, bool USE_SR>
__device__ __forceinline__ uint16_t scale_cvt_Tx4_to_fp4x4(
    const Vector4_t<T>& input,
    const float scale,
    uint32_t rbits) {
#if (CUDART_VERSION >= 12080) && (__CUDA_ARCH__ >= 1000) && \
    (__CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000)
  return scale_cvt_Tx4_to_fp4x4_fast<T, USE_SR>(input, scale, rbits);
#else
  return 0;
#endif
}
} // namespace mlx::core::cu
