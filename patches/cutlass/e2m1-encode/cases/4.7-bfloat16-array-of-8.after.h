template <FloatRoundStyle Round>
struct NumericArrayConverter<float_e2m1_t, cutlass::bfloat16_t, 8, Round> {
  using result_type = Array<float_e2m1_t, 8>;
  using source_type = Array<cutlass::bfloat16_t, 8>;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const& source) {
    return ::fp4patch_e2m1::array(source);
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const& s) const {
    return convert(s);
  }
};
