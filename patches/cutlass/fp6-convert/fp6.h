namespace detail {

/// float to six bits, of which Mantissa are the mantissa: round to nearest, ties to even, saturated, NaN to the greatest
/// number. Least and Greatest are the bits of the least normal and of the greatest number.
template <uint32_t Mantissa, uint32_t Least, uint32_t Greatest>
CUTLASS_HOST_DEVICE
uint8_t fp6_from_float(float x) {
  // With 2^e the power of two of max(|x|, Least), one unit in the last place of 2^(23 - Mantissa + e) + |x| is the step of
  // the format around x. So this addition rounds as the format does, in the default rounding mode. The sum's bits are
  // (150 - Mantissa + e) << 23 | k; the code is k, and 2^Mantissa for each e above that of Least.
  uint32_t const bits = copy_bits<float, uint32_t>(x);
  uint32_t const magnitude = bits & 0x7fffffffu;
  uint32_t const capped = magnitude < Greatest ? magnitude : Greatest;
  uint32_t const power = (capped > Least ? capped : Least) & 0x7f800000u;
  uint32_t const sum = copy_bits<float, uint32_t>(copy_bits<uint32_t, float>(power + ((23u - Mantissa) << 23)) +
                                                  copy_bits<uint32_t, float>(capped));
  uint32_t const sign = magnitude > 0x7f800000u ? 0u : bits >> 26 & 32u;
  uint32_t const least = ((Least >> 23) + 23u - Mantissa) << Mantissa;
  return static_cast<uint8_t>(sign | ((sum + (sum >> (23u - Mantissa)) - least) & 31u));
}

/// float to E2M3: round to nearest, ties to even, saturated at 7.5, NaN to 7.5
CUTLASS_HOST_DEVICE
uint8_t e2m3_from_float(float x) {
#if defined(__CUDA_ARCH__) && defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  uint16_t code;
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(code) : "f"(0.0f), "f"(x));
  return static_cast<uint8_t>(code);
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
  // E2M3 times 2^-6 is E4M3 of the same mantissa, subnormal numbers included. A NaN becomes positive in the product.
  uint16_t code;
  asm("{\n"
      ".reg .f32 scaled;\n"
      "mul.rn.f32 scaled, %1, 0f3C800000;\n"
      "min.xorsign.abs.f32 scaled, scaled, 0f3DF00000;\n"
      "cvt.rn.satfinite.e4m3x2.f32 %0, %2, scaled;\n"
      "}"
      : "=h"(code) : "f"(x), "f"(0.0f));
  code = static_cast<uint16_t>(code - (code >> 7) * 96);  // the sign is bit 5, not 7
  return static_cast<uint8_t>(code);
#else
  return fp6_from_float<3u, 0x3f800000u, 0x40f00000u>(x);
#endif
}

/// float to E3M2: round to nearest, ties to even, saturated at 28, NaN to 28
CUTLASS_HOST_DEVICE
uint8_t e3m2_from_float(float x) {
#if defined(__CUDA_ARCH__) && defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  uint16_t code;
  asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(code) : "f"(0.0f), "f"(x));
  return static_cast<uint8_t>(code);
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
  // E3M2 times 2^-12 is E5M2 of the same mantissa, subnormal numbers included.
  uint16_t code;
  asm("{\n"
      ".reg .f32 scaled;\n"
      "mul.rn.f32 scaled, %1, 0f39800000;\n"
      "min.xorsign.abs.f32 scaled, scaled, 0f3BE00000;\n"
      "cvt.rn.satfinite.e5m2x2.f32 %0, %2, scaled;\n"
      "}"
      : "=h"(code) : "f"(x), "f"(0.0f));
  code = static_cast<uint16_t>(code - (code >> 7) * 96);
  return static_cast<uint8_t>(code);
#else
  return fp6_from_float<2u, 0x3e800000u, 0x41e00000u>(x);
#endif
}

} // namespace detail
