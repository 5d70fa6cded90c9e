  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
    return Base::bitcast(detail::e3m2_from_float(x));
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
