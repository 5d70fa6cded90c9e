namespace detail {

#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)

/// float to E2M3: round to nearest, ties to even, saturated at 7.5, NaN to 7.5
CUTLASS_DEVICE
uint8_t e2m3_from_float(float x) {
  uint16_t code;
#if defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(code) : "f"(0.0f), "f"(x));
#else
  // E2M3 times 2^-6 is E4M3 of the same mantissa, subnormal numbers included. A NaN becomes positive in the product.
  asm("{\n"
      ".reg .f32 scaled;\n"
      "mul.rn.f32 scaled, %1, 0f3C800000;\n"
      "min.xorsign.abs.f32 scaled, scaled, 0f3DF00000;\n"
      "cvt.rn.satfinite.e4m3x2.f32 %0, %2, scaled;\n"
      "}"
      : "=h"(code) : "f"(x), "f"(0.0f));
  code = static_cast<uint16_t>(code - (code >> 7) * 96);  // the sign is bit 5, not 7
#endif
  return static_cast<uint8_t>(code);
}

/// float to E3M2: round to nearest, ties to even, saturated at 28, NaN to 28
CUTLASS_DEVICE
uint8_t e3m2_from_float(float x) {
  uint16_t code;
#if defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(code) : "f"(0.0f), "f"(x));
#else
  // E3M2 times 2^-12 is E5M2 of the same mantissa, subnormal numbers included.
  asm("{\n"
      ".reg .f32 scaled;\n"
      "mul.rn.f32 scaled, %1, 0f39800000;\n"
      "min.xorsign.abs.f32 scaled, scaled, 0f3BE00000;\n"
      "cvt.rn.satfinite.e5m2x2.f32 %0, %2, scaled;\n"
      "}"
      : "=h"(code) : "f"(x), "f"(0.0f));
  code = static_cast<uint16_t>(code - (code >> 7) * 96);
#endif
  return static_cast<uint8_t>(code);
}

#endif

} // namespace detail
