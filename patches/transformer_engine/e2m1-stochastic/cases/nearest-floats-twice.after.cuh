// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_OPERANDS_CUH
#define FP4PATCH_OPERANDS_CUH
namespace fp4patch_operands {
}  // namespace fp4patch_operands
#endif

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

__device__ __forceinline__ fp4e2m1x4 mul_cvt_fp32_to_fp4_4x_with_rn(const float2 in01,
                                                                    const float2 in23,
                                                                    const float2 scale,
                                                                    const uint32_t rbits) {
  constexpr bool is_blackwell = ARCH_BLACKWELL_FAMILY;
  uint32_t out_4x = 0;  // Only need 16 bit. Using 32 bit container for packing.
  if constexpr (true || is_blackwell) {
    #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
    asm volatile(
        "{\n"
        ".reg.b64 v01; \n\t"
        ".reg.b64 v23; \n\t"
        ".reg.b32 v0; \n\t"
        ".reg.b32 v1; \n\t"
        ".reg.b32 v2; \n\t"
        ".reg.b32 v3; \n\t"
        ".reg.b8 f0; \n\t"
        ".reg.b8 f1; \n\t"
        "mov.b64 {v0, v1} , %1; \n\t"
        "mov.b64 {v2, v3} , %2; \n\t"
        "mov.b64 v01, {v0, v1}; \n\t"
        "mov.b64 v23, {v2, v3}; \n\t"
        "mul.f32x2 v01, v01, %3; \n\t"  // mind the shuffled elements order
        "mul.f32x2 v23, v23, %3; \n\t"  // mind the shuffled elements order
        "mov.b64 {v1, v0}, v01; \n\t"
        "mov.b64 {v3, v2}, v23; \n\t"
        "cvt.rn.satfinite.e2m1x2.f32 f0, v0, v1;\n\t"
        "cvt.rn.satfinite.e2m1x2.f32 f1, v2, v3;\n\t"
        "mov.b32 %0, {f0, f1, f0, f1};\n\t"
        "}"
        : "=r"(out_4x)
        : "l"(reinterpret_cast<const uint64_t &>(in01)),
          "l"(reinterpret_cast<const uint64_t &>(in23)),
          "l"(reinterpret_cast<const uint64_t &>(scale)));
    #else
    {
      namespace fp4patch = ::fp4patch_operands;
      const unsigned long long fp4patch_in0 = reinterpret_cast<const uint64_t &>(in01);
      const unsigned long long fp4patch_in1 = reinterpret_cast<const uint64_t &>(in23);
      const unsigned long long fp4patch_in2 = reinterpret_cast<const uint64_t &>(scale);
      const auto fp4patch_out0 = ::fp4patch_threshold::e2m1_x8(
          fp4patch::mul(fp4patch::single(fp4patch_in0, 0), fp4patch::single(fp4patch_in2, 0)),
          fp4patch::mul(fp4patch::single(fp4patch_in0, 1), fp4patch::single(fp4patch_in2, 1)),
          fp4patch::mul(fp4patch::single(fp4patch_in1, 0), fp4patch::single(fp4patch_in2, 0)),
          fp4patch::mul(fp4patch::single(fp4patch_in1, 1), fp4patch::single(fp4patch_in2, 1)),
          fp4patch::mul(fp4patch::single(fp4patch_in0, 0), fp4patch::single(fp4patch_in2, 0)),
          fp4patch::mul(fp4patch::single(fp4patch_in0, 1), fp4patch::single(fp4patch_in2, 1)),
          fp4patch::mul(fp4patch::single(fp4patch_in1, 0), fp4patch::single(fp4patch_in2, 0)),
          fp4patch::mul(fp4patch::single(fp4patch_in1, 1), fp4patch::single(fp4patch_in2, 1)));
      out_4x = fp4patch_out0;
    }
    #endif
  } else {
    NVTE_DEVICE_ERROR(
        "FP4 cvt PTX instructions are architecture-specific. "
        "Try recompiling with sm_XXXa instead of sm_XXX.");
  }
  return reinterpret_cast<fp4e2m1x4 *>(&out_4x)[0];
}
