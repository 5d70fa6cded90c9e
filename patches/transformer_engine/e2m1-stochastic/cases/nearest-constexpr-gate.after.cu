#include "common/util/ptx.cuh"

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

__device__ __forceinline__ __nv_fp4x4_e2m1 cvt_fp32_to_fp4_4x_with_rn(const float2 in01,
                                                                      const float2 in23,
                                                                      const uint32_t rbits) {
  constexpr bool has_fp4 = ARCH_BLACKWELL_FAMILY;
  if constexpr (true || has_fp4) {
    // NOTE: rbits unused for rn.
    uint32_t out_4x;  // Only need 16 bit. Using 32 bit container for packing.
    #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
    asm volatile(
        "{\n"
        ".reg.b8 f0; \n\t"
        ".reg.b8 f1; \n\t"
        "cvt.rn.satfinite.e2m1x2.f32 f0, %1, %2;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 f1, %3, %4;\n\t"
        "mov.b32 %0, {f0, f1, f0, f1};\n\t"
        "}"
        : "=r"(out_4x)
        : "f"(in01.y), "f"(in01.x), "f"(in23.y), "f"(in23.x));
    #else
    {
      const float fp4patch_in0 = in01.y;
      const float fp4patch_in1 = in01.x;
      const float fp4patch_in2 = in23.y;
      const float fp4patch_in3 = in23.x;
      const auto fp4patch_out0 = ::fp4patch_threshold::e2m1_x8(
          fp4patch_in1, fp4patch_in0, fp4patch_in3, fp4patch_in2, fp4patch_in1,
          fp4patch_in0, fp4patch_in3, fp4patch_in2);
      out_4x = fp4patch_out0;
    }
    #endif
    return reinterpret_cast<__nv_fp4x4_e2m1*>(&out_4x)[0];
  } else {
    NVTE_DEVICE_ERROR(
        "FP4 cvt PTX instructions are architecture-specific. "
        "Try recompiling with sm_XXXa instead of sm_XXX.");
    uint16_t dummy = 0;
    return *reinterpret_cast<__nv_fp4x4_e2m1*>(&dummy);
  }
}
