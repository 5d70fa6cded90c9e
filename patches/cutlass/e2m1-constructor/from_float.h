namespace detail {

/// Rounds to float with "round to odd": truncates, and sets the last bit if that was not exact. What is rounded once
/// more from the result, to two bits fewer or less, is as if it had been rounded once.
CUTLASS_HOST_DEVICE
float round_to_odd(double x) {
#if defined(__CUDA_ARCH__)
  // The 29 bits that a float does not hold. Below float's normal numbers there are more; these round to zero anyway.
  uint32_t const bits = __float_as_uint(__double2float_rz(x)) | ((__double2loint(x) & 0x1fffffff) != 0 ? 1u : 0u);
  return __uint_as_float(bits);
#else
  float const nearest = static_cast<float>(x);
  double const back = static_cast<double>(nearest);
  uint32_t bits = copy_bits<float, uint32_t>(nearest);
  if ((x < 0 ? -x : x) < (back < 0 ? -back : back)) {
    --bits;
  }
  return copy_bits<uint32_t, float>(back < x || x < back ? bits | 1u : bits);
#endif
}

/// float to E2M1: round to nearest, ties to even, saturated at 6, NaN to 6. The code is in the lower four bits.
CUTLASS_HOST_DEVICE
uint8_t e2m1_from_float(float x) {
#if defined(__CUDA_ARCH__) && defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  uint32_t code;
  asm("{\n"
      ".reg .b8 pair;\n"
      "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;\n"
      "cvt.u32.u8 %0, pair;\n"
      "}"
      : "=r"(code) : "f"(0.0f), "f"(x));
  return static_cast<uint8_t>(code);
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 860)
  // With 2^e the power of two of max(|x|, 1), one unit in the last place of 2^(22 + e) + |x| is 2^(e - 1), the step of
  // E2M1 around x. So that this addition rounds as E2M1 does, and with the sum's bits (149 + e) << 23 | k the code
  // is k + 2 e. 1 + 210 * 2^-23 adds 210 to k, which is even, for the bytes of the last step to come out right.
  float power, capped;
  asm("max.xorsign.abs.f32 %0, %1, 0f3F800000;" : "=f"(power) : "f"(x));
  power = __uint_as_float(__float_as_uint(power) & 0xff800000u);
  float const sum = __fmaf_rn(power, 4194409.0f, x);                               // 2^22 * (1 + 210 * 2^-23)
  asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(capped) : "f"(sum), "f"(16777642.0f));  // the sum of 6
  // A NaN became positive in the addition, and 6 here. Lowest byte of capped + floor((1039 * capped + sum) / 2^32),
  // modulo 256: k + 210, 2 * (149 + e) + 4, and for a negative number 7 and a carry, as then 1039 * 2^31 leaves 2^31.
  uint32_t code;
  asm("{\n"
      ".reg .b64 wide;\n"
      ".reg .b32 low;\n"
      "mov.b64 wide, {%2, %1};\n"
      "mad.wide.u32 wide, %1, 1039, wide;\n"
      "mov.b64 {low, %0}, wide;\n"
      "}"
      : "=r"(code) : "r"(__float_as_uint(capped)), "r"(__float_as_uint(sum)));
  return static_cast<uint8_t>(code);
#else
  // The same sum of magnitudes, in the default rounding mode.
  uint32_t const bits = copy_bits<float, uint32_t>(x);
  uint32_t const magnitude = bits & 0x7fffffffu;
  uint32_t const capped = magnitude < 0x40c00000u ? magnitude : 0x40c00000u;
  uint32_t const power = (capped > 0x3f800000u ? capped : 0x3f800000u) & 0x7f800000u;
  uint32_t const sum = copy_bits<float, uint32_t>(copy_bits<uint32_t, float>(power + (22u << 23)) +
                                                  copy_bits<uint32_t, float>(capped));
  uint32_t const sign = magnitude > 0x7f800000u ? 0u : bits >> 28 & 8u;
  return static_cast<uint8_t>(sign | ((sum + (sum >> 22) + 6u) & 7u));
#endif
}

} // namespace detail
