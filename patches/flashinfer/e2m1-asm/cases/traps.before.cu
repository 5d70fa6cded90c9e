__device__ uint32_t fp32_vec_to_e2m1(float2 (&a)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
  uint32_t val;
  asm volatile(
      "{ .reg .b8 lo, hi; cvt.rn.satfinite.e2m1x2.f32 lo, %2, %1; cvt.rn.satfinite.e2m1x2.f32 hi, %4, %3;"
      " mov.b32 %0, {lo, hi, 0, 0}; }"
      : "=r"(val)
      : "f"(a[0].x), "f"(a[0].y), "f"(a[1].x), "f"(a[1].y));
  return val;
#elif defined(__CUDA_ARCH__)
  asm volatile("trap;");
  return 0;
#else
  printf("FP4 output is not supported pre-Blackwell!\n");
  return 0;
#endif
}
