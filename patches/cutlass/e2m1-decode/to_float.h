namespace detail {

/// E2M1 to float: exact for each of the 16 codes
CUTLASS_DEVICE
float e2m1_to_float(uint8_t code) {
  float x;
#if defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  asm("{\n"
      ".reg .b8 pair;\n"
      ".reg .b16 low, high;\n"
      ".reg .b32 both;\n"
      "cvt.u8.u32 pair, %1;\n"
      "cvt.rn.f16x2.e2m1x2 both, pair;\n"
      "mov.b32 {low, high}, both;\n"
      "cvt.f32.f16 %0, low;\n"
      "}"
      : "=f"(x) : "r"(uint32_t(code)));
#else
  // sccc << 28 and << 22: the sign is a float's, and ccc is the lowest bits of its exponent and the highest of its
  // mantissa. That is the number times 2^-126, a subnormal float where the code is subnormal. The product is exact, and
  // asm makes it so in builds that flush subnormal numbers to zero.
  uint32_t const bits = uint32_t(code) * 0x10400000u & 0x81c00000u;
  asm("mul.rn.f32 %0, %1, 0f7E800000;" : "=f"(x) : "f"(__uint_as_float(bits)));
#endif
  return x;
}

} // namespace detail
