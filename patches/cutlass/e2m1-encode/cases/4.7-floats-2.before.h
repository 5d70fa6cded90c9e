CUTLASS_HOST_DEVICE
Array<float_e2m1_t, 2> float_to_e2m1_x2(Array<float, 2> const& a) {
  uint32_t bits;
#if defined(CUTLASS_E2M1_HW_ENCODE)
  // the instruction: left as it is
#else
  bits = e2m1_nib_f32(a[0]) |
         (e2m1_nib_f32(a[1]) << 4);
#endif
  return reinterpret_cast<Array<float_e2m1_t, 2> const&>(bits);
}
