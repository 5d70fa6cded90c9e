  /// What every conversion to a number, every operator and every array without an instruction of its own decodes by
  CUTLASS_HOST_DEVICE
  float convert_to_float(Base const &x) const {
  #if defined(__CUDA_ARCH__)
    return detail::e2m1_to_float(x.storage);
  #else
    return Base::convert_to_float(x);
  #endif
  }
