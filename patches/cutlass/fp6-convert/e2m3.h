  /// What every constructor, operator and array without an instruction of its own rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
    return Base::bitcast(detail::e2m3_from_float(x));
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
