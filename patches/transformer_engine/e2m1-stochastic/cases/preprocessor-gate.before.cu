#include "common/util/ptx.cuh"

__device__ __forceinline__ __nv_fp4x4_e2m1 cvt_fp32_to_fp4_4x_with_stochastic_rounding(
    const float2 in01, const float2 in23, const uint32_t rbits) {
#if CUDA_ARCH_HAS_FEATURE_SM10X_ALL
  uint16_t out_4x;
  asm volatile(
      "{\n"
      "cvt.rs.satfinite.e2m1x4.f32 %0, {%3, %4, %1, %2}, %5; \n\t"
      "}"
      : "=h"(out_4x)
      : "f"(in01.y), "f"(in01.x), "f"(in23.y), "f"(in23.x), "r"(rbits));
  return *reinterpret_cast<__nv_fp4x4_e2m1*>(&out_4x);
#else
  NVTE_DEVICE_ERROR(
      "FP4 cvt PTX instructions are architecture-specific. "
      "Try recompiling with sm_XXXa instead of sm_XXX.");
  uint16_t dummy = 0;
  return *reinterpret_cast<__nv_fp4x4_e2m1*>(&dummy);
#endif  // CUDA_ARCH_HAS_FEATURE_SM10X_ALL
}
