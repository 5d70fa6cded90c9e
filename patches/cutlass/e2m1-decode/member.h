  /// What every conversion to a number, every operator and every array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    // sccc << 28 for the sign and << 22 for the code, by one product
    return detail::rebias(uint32_t(x.storage) * 0x10400000u & 0x81c00000u, 0x7e800000u);
  #else
    return Base::convert_to_float(x);
  #endif
  }
