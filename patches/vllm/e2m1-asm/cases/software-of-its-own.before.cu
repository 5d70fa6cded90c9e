#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && \
    defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  #define MINIMAX_M3_NVFP4_NATIVE_CVT 1
#else
  #define MINIMAX_M3_NVFP4_NATIVE_CVT 0
#endif

__device__ uint16_t pack(float const* q) {
  uint16_t packed;
  #if MINIMAX_M3_NVFP4_NATIVE_CVT
  // Low nibble = even element; cvt packs its first source in the high nibble.
  asm("{\n"
      "  .reg .b8 lo, hi;\n"
      "  cvt.rn.satfinite.e2m1x2.f32 lo, %2, %1;\n"
      "  cvt.rn.satfinite.e2m1x2.f32 hi, %4, %3;\n"
      "  mov.b16 %0, {lo, hi};\n"
      "}"
      : "=h"(packed)
      : "f"(q[0]), "f"(q[1]), "f"(q[2]), "f"(q[3]));
  #else
  uint32_t codes = 0;
    #pragma unroll
  for (int i = 0; i < kElemsPerLane; i++) codes |= e2m1Code(q[i]) << (4 * i);
  packed = static_cast<uint16_t>(codes);
  #endif
  return packed;
}
