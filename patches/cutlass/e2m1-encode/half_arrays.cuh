/// Partial specialization for Array<float_e2m1_t, N> <= Array<half_t, N>
template <int N, FloatRoundStyle Round>
struct NumericArrayConverter<float_e2m1_t, cutlass::half_t, N, Round> {
  using result_type = Array<float_e2m1_t, N>;
  using source_type = Array<cutlass::half_t, N>;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & source) {
    return ::fp4patch_e2m1::array(source);
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};

/// Partial specialization for Array<float_e2m1_t, N> <= Array<bfloat16_t, N>
template <int N, FloatRoundStyle Round>
struct NumericArrayConverter<float_e2m1_t, cutlass::bfloat16_t, N, Round> {
  using result_type = Array<float_e2m1_t, N>;
  using source_type = Array<cutlass::bfloat16_t, N>;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & source) {
    return ::fp4patch_e2m1::array(source);
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};
