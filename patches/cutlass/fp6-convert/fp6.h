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

#if defined(__CUDA_ARCH__)

/// E2M3 to float: exact for each of the 64 codes
CUTLASS_DEVICE
float e2m3_to_float(uint8_t code) {
  float x;
#if defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  asm("{\n"
      ".reg .b16 low, high;\n"
      ".reg .b32 both;\n"
      "cvt.rn.f16x2.e2m3x2 both, %1;\n"
      "mov.b32 {low, high}, both;\n"
      "cvt.f32.f16 %0, low;\n"
      "}"
      : "=f"(x) : "h"(uint16_t(code)));
#else
  // seemmm << 26 and << 20: the sign is a float's, and the rest is the lowest bits of its exponent and the highest of
  // its mantissa: the number times 2^-126.
  uint32_t const bits = uint32_t(code) * 0x04100000u & 0x81f00000u;
  asm("mul.rn.f32 %0, %1, 0f7E800000;" : "=f"(x) : "f"(__uint_as_float(bits)));
#endif
  return x;
}

/// E3M2 to float: exact for each of the 64 codes
CUTLASS_DEVICE
float e3m2_to_float(uint8_t code) {
  float x;
#if defined(CUDA_PTX_FP4FP6_CVT_ENABLED) && !defined(FP4PATCH_FORCE_SOFTWARE)
  asm("{\n"
      ".reg .b16 low, high;\n"
      ".reg .b32 both;\n"
      "cvt.rn.f16x2.e3m2x2 both, %1;\n"
      "mov.b32 {low, high}, both;\n"
      "cvt.f32.f16 %0, low;\n"
      "}"
      : "=f"(x) : "h"(uint16_t(code)));
#else
  // seeemm << 21, and the sign to a float's: the number times 2^-124. One product, as above, would carry into the sign.
  uint32_t const bits = (uint32_t(code) << 21 & 0x03e00000u) | (uint32_t(code) << 26 & 0x80000000u);
  asm("mul.rn.f32 %0, %1, 0f7D800000;" : "=f"(x) : "f"(__uint_as_float(bits)));
#endif
  return x;
}

#endif

} // namespace detail
