/// Partial specialization for float_e2m1_t <= float
template <FloatRoundStyle Round>
struct NumericConverter<float_e2m1_t, float, Round> {
  using result_type = float_e2m1_t;
  using source_type = float;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & s) {
    return result_type::bitcast(static_cast<uint8_t>(::fp4patch_e2m1::x1(s)));
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};

/// Partial specialization for float_e2m1_t <= half_t
template <FloatRoundStyle Round>
struct NumericConverter<float_e2m1_t, cutlass::half_t, Round> {
  using result_type = float_e2m1_t;
  using source_type = cutlass::half_t;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & s) {
    return result_type::bitcast(static_cast<uint8_t>(::fp4patch_e2m1::x1(s)));
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};

/// Partial specialization for float_e2m1_t <= bfloat16_t
template <FloatRoundStyle Round>
struct NumericConverter<float_e2m1_t, cutlass::bfloat16_t, Round> {
  using result_type = float_e2m1_t;
  using source_type = cutlass::bfloat16_t;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & s) {
    return result_type::bitcast(static_cast<uint8_t>(::fp4patch_e2m1::x1(s)));
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};
