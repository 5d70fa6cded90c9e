struct NumericArrayConverter<float_e2m1_t, float, 8, Round> {
  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & source) {
  #if defined(FP4PATCH_E2M1_INSTRUCTION)
    // the asm statement: left as it is
  #else
    return ::fp4patch_e2m1::array(source);
  #endif
  }
};
