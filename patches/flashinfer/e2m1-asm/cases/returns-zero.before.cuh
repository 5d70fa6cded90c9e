#include "tensorrt_llm/kernels/quantization.h"

namespace tensorrt_llm {

inline __device__ uint8_t fp32_pair_to_e2m1(float2 pair) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)
  uint32_t val32;
  asm volatile(
      "{\n"
      ".reg .b8 byte0;\n"
      "cvt.rn.satfinite.e2m1x2.f32   byte0, %2, %1;\n"
      "mov.b32 %0, {byte0, 0, 0, 0};\n"
      "}"
      : "=r"(val32)
      : "f"(pair.x), "f"(pair.y));
  return static_cast<uint8_t>(val32 & 0xFF);
#else
  // static_assert(false, "not supported.");
  return 0;
#endif
}

}  // namespace tensorrt_llm
