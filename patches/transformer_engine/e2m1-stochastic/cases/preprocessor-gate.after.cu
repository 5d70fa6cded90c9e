#include "common/util/ptx.cuh"

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_STOCHASTIC_CUH
#define FP4PATCH_STOCHASTIC_CUH
namespace fp4patch_stochastic {
}  // namespace fp4patch_stochastic
#endif

__device__ __forceinline__ __nv_fp4x4_e2m1 cvt_fp32_to_fp4_4x_with_stochastic_rounding(
    const float2 in01, const float2 in23, const uint32_t rbits) {
#if 1 || CUDA_ARCH_HAS_FEATURE_SM10X_ALL
  uint16_t out_4x;
  #if !(!RS)
  asm volatile(
      "{\n"
      "cvt.rs.satfinite.e2m1x4.f32 %0, {%3, %4, %1, %2}, %5; \n\t"
      "}"
      : "=h"(out_4x)
      : "f"(in01.y), "f"(in01.x), "f"(in23.y), "f"(in23.x), "r"(rbits));
  #else
  out_4x = ::fp4patch_stochastic::e2m1_x4(
      in01.x, in01.y, in23.x, in23.y, rbits);
  #endif
  return *reinterpret_cast<__nv_fp4x4_e2m1*>(&out_4x);
#else
  NVTE_DEVICE_ERROR(
      "FP4 cvt PTX instructions are architecture-specific. "
      "Try recompiling with sm_XXXa instead of sm_XXX.");
  uint16_t dummy = 0;
  return *reinterpret_cast<__nv_fp4x4_e2m1*>(&dummy);
#endif  // CUDA_ARCH_HAS_FEATURE_SM10X_ALL
}
