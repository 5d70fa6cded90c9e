#pragma once

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

namespace vllm {

struct u32x2 {
  uint32_t lo, hi;
};

__device__ __forceinline__ u32x2 fp32_vec16_to_e2m1(float2 (&array)[8]) {
  u32x2 out;
  #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
  asm volatile(
      "{\n"
      ".reg .b8 b0;\n"
      ".reg .b8 b1;\n"
      ".reg .b8 b2;\n"
      ".reg .b8 b3;\n"
      ".reg .b8 b4;\n"
      ".reg .b8 b5;\n"
      ".reg .b8 b6;\n"
      ".reg .b8 b7;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b0,  %3,  %2;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b1,  %5,  %4;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b2,  %7,  %6;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b3,  %9,  %8;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b4, %11, %10;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b5, %13, %12;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b6, %15, %14;\n"
      "cvt.rn.satfinite.e2m1x2.f32   b7, %17, %16;\n"
      "mov.b32 %0, {b0, b1, b2, b3};\n"
      "mov.b32 %1, {b4, b5, b6, b7};\n"
      "}\n"
      : "=r"(out.lo), "=r"(out.hi)
      : "f"(array[0].x), "f"(array[0].y), "f"(array[1].x), "f"(array[1].y),
        "f"(array[2].x), "f"(array[2].y), "f"(array[3].x), "f"(array[3].y),
        "f"(array[4].x), "f"(array[4].y), "f"(array[5].x), "f"(array[5].y),
        "f"(array[6].x), "f"(array[6].y), "f"(array[7].x), "f"(array[7].y));
  #else
  {
    const auto fp4patch_out0 = ::fp4patch_threshold::e2m1_x8(
        array[0].x, array[0].y, array[1].x, array[1].y, array[2].x, array[2].y,
        array[3].x, array[3].y);
    const auto fp4patch_out1 = ::fp4patch_threshold::e2m1_x8(
        array[4].x, array[4].y, array[5].x, array[5].y, array[6].x, array[6].y,
        array[7].x, array[7].y);
    out.lo = fp4patch_out0;
    out.hi = fp4patch_out1;
  }
  #endif
  return out;
}

}  // namespace vllm
