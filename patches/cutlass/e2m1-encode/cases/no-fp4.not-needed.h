namespace cutlass {

enum class FloatRoundStyle {
  round_toward_zero
};

template <typename T, typename S, FloatRoundStyle Round>
struct NumericConverter {
  CUTLASS_HOST_DEVICE
  static T convert(S const & s) {
    return static_cast<T>(s);
  }
};

} // namespace cutlass
