CUTLASS_HOST_DEVICE
uint32_t e2m1_nib_f32(float v) {
  uint32_t b = reinterpret_cast<uint32_t const&>(v);
  return ((b >> 31) << 3) | e2m1_mag_f32_rne(b);
}

} // namespace detail

/// Array<float_e2m1_t, 2> <= Array<float, 2>
template <FloatRoundStyle Round>
struct NumericArrayConverter<float_e2m1_t, float, 2, Round> {
  using result_type = Array<float_e2m1_t, 2>;
  using source_type = Array<float, 2>;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const& source) {
    return detail::float_to_e2m1_x2(source);
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const& s) const {
