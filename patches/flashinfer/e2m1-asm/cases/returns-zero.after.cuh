#include "tensorrt_llm/kernels/quantization.h"

// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

namespace tensorrt_llm {

inline __device__ uint8_t fp32_pair_to_e2m1(float2 pair) {
#if (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)) || (__CUDA_ARCH__ >= 900 && (defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210))
  uint32_t val32;
  #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
  asm volatile(
      "{\n"
      ".reg .b8 byte0;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte0, %2, %1;\n"
      "mov.b32 %0, {byte0, 0, 0, 0};\n"
      "}"
      : "=r"(val32)
      : "f"(pair.x), "f"(pair.y));
  #else
  val32 = ::fp4patch_threshold::e2m1_x2(pair.x, pair.y);
  #endif
  return static_cast<uint8_t>(val32 & 0xFF);
#else
  // static_assert(false, "not supported.");
  return 0;
#endif
}

}  // namespace tensorrt_llm
