  /// What every constructor and operator rounds by
  CUTLASS_HOST_DEVICE
  Base convert_from_float(float const &x) const {
    return Base::bitcast(detail::e2m1_from_float(x));
  }
