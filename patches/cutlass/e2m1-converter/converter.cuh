#if !defined(CUDA_PTX_FP4FP6_CVT_ENABLED)
/// Partial specialization for float_e2m1_t <= float, in software and without a branch.
///
/// The code of a magnitude is 7 less the number of borders that it does not pass. A border lies halfway between two
/// neighbours and belongs to the one with the even code (<= below an even code's border, < below an odd one's): round
/// to nearest, ties to even, saturated at 6, whatever `Round` is. NaN fails every comparison and so becomes 6. The
/// sign bit is kept, that of -0 too.
template <
  FloatRoundStyle Round
>
struct NumericConverter<float_e2m1_t, float, Round> {
  using result_type = float_e2m1_t;
  using source_type = float;
  static FloatRoundStyle const round_style = Round;

  CUTLASS_HOST_DEVICE
  static result_type convert(source_type const & s) {
    uint32_t const bits = detail::copy_bits<float, uint32_t>(s);
    float const magnitude = detail::copy_bits<uint32_t, float>(bits & 0x7fffffffu);
    uint32_t const code = 7u
      - uint32_t(magnitude <= 0.25f) - uint32_t(magnitude < 0.75f) - uint32_t(magnitude <= 1.25f)
      - uint32_t(magnitude < 1.75f) - uint32_t(magnitude <= 2.5f) - uint32_t(magnitude < 3.5f)
      - uint32_t(magnitude <= 5.0f);
    return result_type::bitcast(static_cast<uint8_t>(((bits >> 28) & 8u) | code));
  }

  CUTLASS_HOST_DEVICE
  result_type operator()(source_type const & s) const {
    return convert(s);
  }
};
#endif // !defined(CUDA_PTX_FP4FP6_CVT_ENABLED)
