#pragma once

#include <cuda_runtime.h>
#include <cuda_fp8.h>

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

namespace vllm {

inline __device__ uint32_t fp32_vec_to_e2m1(float (&array)[8]) {
  uint32_t val;
  #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
  asm volatile(
      "{\n"
      ".reg .b8 byte0;\n"
      ".reg .b8 byte1;\n"
      ".reg .b8 byte2;\n"
      ".reg .b8 byte3;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte0, %2, %1;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte1, %4, %3;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte2, %6, %5;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte3, %8, %7;\n"
      "mov.b32 %0, {byte0, byte1, byte2, byte3};\n"
      "}"
      : "=r"(val)
      : "f"(array[0]), "f"(array[1]), "f"(array[2]), "f"(array[3]),
        "f"(array[4]), "f"(array[5]), "f"(array[6]), "f"(array[7]));
  #else
  val = ::fp4patch_threshold::e2m1_x8(
      array[0], array[1], array[2], array[3], array[4], array[5], array[6],
      array[7]);
  #endif
  return val;
}

}  // namespace vllm
