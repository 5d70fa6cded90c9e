#include "common/util/ptx.cuh"

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_STOCHASTIC_CUH
#define FP4PATCH_STOCHASTIC_CUH
namespace fp4patch_stochastic {
}  // namespace fp4patch_stochastic
#endif

CUTLASS_DEVICE
cutlass::Array<cutlass::float_e2m1_t, 8>
StochasticNumericConverterBase(cutlass::Array<float, 8> const &input, cutlass::Array<uint32_t, 2> const &rbits) {
  using result_type = cutlass::Array<cutlass::float_e2m1_t, 8>;
  result_type output;
#if 1 || CUDA_ARCH_HAS_FEATURE_SM10X_ALL
  auto output_ptr = reinterpret_cast<uint16_t *>(&output);
  #if !(!RS)
  asm volatile( \
      "{\n" \
      "cvt.rs.satfinite.e2m1x4.f32   %0, {%5, %4, %3, %2}, %10;\n" \
      "cvt.rs.satfinite.e2m1x4.f32   %1, {%9, %8, %7, %6}, %11;\n" \
      "}" \
      : "=h"(output_ptr[0]),
        "=h"(output_ptr[1])
      : "f"(input[0]), "f"(input[1]), "f"(input[2]), "f"(input[3]),
        "f"(input[4]), "f"(input[5]), "f"(input[6]), "f"(input[7]),
        "r"(rbits[0]), "r"(rbits[1]));
  #else
  {
    const auto fp4patch_out0 = ::fp4patch_stochastic::e2m1_x4(
        input[0], input[1], input[2], input[3], rbits[0]);
    const auto fp4patch_out1 = ::fp4patch_stochastic::e2m1_x4(
        input[4], input[5], input[6], input[7], rbits[1]);
    output_ptr[0] = fp4patch_out0;
    output_ptr[1] = fp4patch_out1;
  }
  #endif
#else
  NVTE_DEVICE_ERROR("FP4 cvt PTX instructions are architecture-specific. "
                    "Try recompiling with sm_XXXa instead of sm_XXX.");
#endif  // CUDA_ARCH_HAS_FEATURE_SM10X_ALL
  return output;
}
