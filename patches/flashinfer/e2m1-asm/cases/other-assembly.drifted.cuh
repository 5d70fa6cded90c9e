inline __device__ uint8_t pair_to_e2m1(float2 pair) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 1000)
  uint32_t val;
  asm volatile("{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %2, %1; mov.b32 %0, {b, 0, 0, 0}; }"
               : "=r"(val) : "f"(pair.x), "f"(pair.y));
  asm volatile("fence.proxy.async;");
  return static_cast<uint8_t>(val);
#else
  return 0;
#endif
}
