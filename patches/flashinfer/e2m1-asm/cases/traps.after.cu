// A stand-in for an encoder: where it goes is what counts here.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH
namespace fp4patch_threshold {
}  // namespace fp4patch_threshold
#endif

__device__ uint32_t fp32_vec_to_e2m1(float2 (&a)[2]) {
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000) || (__CUDA_ARCH__ >= 900 && (defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210))
  uint32_t val;
  #if !(defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1210)
  asm volatile(
      "{ .reg .b8 lo, hi; cvt.rn.satfinite.e2m1x2.f32 lo, %2, %1; cvt.rn.satfinite.e2m1x2.f32 hi, %4, %3;"
      " mov.b32 %0, {lo, hi, 0, 0}; }"
      : "=r"(val)
      : "f"(a[0].x), "f"(a[0].y), "f"(a[1].x), "f"(a[1].y));
  #else
  val = ::fp4patch_threshold::e2m1_x4(a[0].x, a[0].y, a[1].x, a[1].y);
  #endif
  return val;
#elif defined(__CUDA_ARCH__)
  asm volatile("trap;");
  return 0;
#else
  printf("FP4 output is not supported pre-Blackwell!\n");
  return 0;
#endif
}
