template <cutlass::FloatRoundStyle R>
struct NumericConverter<
  cutlass::float_e2m1_t, float, R> { /* somebody's own */ };

/// Partial specialization for Array<float_e2m1_t, 2> <= Array<float, 2>
template <
  FloatRoundStyle Round
>
struct NumericArrayConverter<float_e2m1_t, float, 2, Round> {
  using result_element = float_e2m1_t;
