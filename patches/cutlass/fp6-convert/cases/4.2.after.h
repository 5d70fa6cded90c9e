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

struct float_e2m3_t : public float_exmy_base<cutlass::detail::FpEncoding::E2M3, float_e2m3_t> {

  using Base = float_exmy_base<cutlass::detail::FpEncoding::E2M3, float_e2m3_t>;

  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
  #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
    return Base::bitcast(detail::e2m3_from_float(x));
  #else
    return x != x ? Base::bitcast(Base::BitRepresentation::MAX_VALUE) : Base::convert_from_float(x);
  #endif
  }

  /// What every conversion to a number, operator and array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    // seemmm << 26 for the sign and << 20 for the code, by one product
    return detail::rebias(uint32_t(x.storage) * 0x04100000u & 0x81f00000u, 0x7e800000u);
  #else
    return Base::convert_to_float(x);
  #endif
  }

  CUTLASS_HOST_DEVICE
  explicit float_e2m3_t(double x) : Base(detail::round_to_odd(x)) {
  }
};
struct float_e2m3_unpack8bits_t : public float_exmy_base<cutlass::detail::FpEncoding::E2M3, float_e2m3_unpack8bits_t> {

  using Base = float_exmy_base<cutlass::detail::FpEncoding::E2M3, float_e2m3_unpack8bits_t>;

  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
  #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
    return Base::bitcast(detail::e2m3_from_float(x));
  #else
    return x != x ? Base::bitcast(Base::BitRepresentation::MAX_VALUE) : Base::convert_from_float(x);
  #endif
  }

  /// What every conversion to a number, operator and array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    // seemmm << 26 for the sign and << 20 for the code, by one product
    return detail::rebias(uint32_t(x.storage) * 0x04100000u & 0x81f00000u, 0x7e800000u);
  #else
    return Base::convert_to_float(x);
  #endif
  }

  CUTLASS_HOST_DEVICE
  explicit float_e2m3_unpack8bits_t(double x) : Base(round_to_odd(x)) {
  }
};
struct float_e3m2_t : public float_exmy_base<cutlass::detail::FpEncoding::E3M2, float_e3m2_t> {

  using Base = float_exmy_base<cutlass::detail::FpEncoding::E3M2, float_e3m2_t>;

  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
  #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
    return Base::bitcast(detail::e3m2_from_float(x));
  #else
    return x != x ? Base::bitcast(Base::BitRepresentation::MAX_VALUE) : Base::convert_from_float(x);
  #endif
  }

  /// What every conversion to a number, operator and array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    // seeemm: one product, as in E2M3, would carry into the sign.
    return detail::rebias((uint32_t(x.storage) << 26 & 0x80000000u) | (uint32_t(x.storage) << 21 & 0x03e00000u),
                          0x7d800000u);
  #else
    return Base::convert_to_float(x);
  #endif
  }

  CUTLASS_HOST_DEVICE
  explicit float_e3m2_t(double x) : Base(detail::round_to_odd(x)) {
  }
};
struct float_e3m2_unpack8bits_t : public float_exmy_base<cutlass::detail::FpEncoding::E3M2, float_e3m2_unpack8bits_t> {

  using Base = float_exmy_base<cutlass::detail::FpEncoding::E3M2, float_e3m2_unpack8bits_t>;

  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
  #if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 890)
    return Base::bitcast(detail::e3m2_from_float(x));
  #else
    return x != x ? Base::bitcast(Base::BitRepresentation::MAX_VALUE) : Base::convert_from_float(x);
  #endif
  }

  /// What every conversion to a number, operator and array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    // seeemm: one product, as in E2M3, would carry into the sign.
    return detail::rebias((uint32_t(x.storage) << 26 & 0x80000000u) | (uint32_t(x.storage) << 21 & 0x03e00000u),
                          0x7d800000u);
  #else
    return Base::convert_to_float(x);
  #endif
  }

  CUTLASS_HOST_DEVICE
  explicit float_e3m2_unpack8bits_t(double x) : Base(round_to_odd(x)) {
  }
};
