// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

#if CUDA_VERSION >= 12080
inline __device__ uint8_t pair_to_e2m1(float2 pair) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)
  uint32_t val;
  #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
  asm volatile("{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %2, %1; mov.b32 %0, {b, 0, 0, 0}; }"
               : "=r"(val) : "f"(pair.x), "f"(pair.y));
  #else
  val = ::fp4patch_threshold::e2m1_x2(pair.x, pair.y);
  #endif
  return static_cast<uint8_t>(val);
#else
  return __nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest);
#endif
}
#endif
