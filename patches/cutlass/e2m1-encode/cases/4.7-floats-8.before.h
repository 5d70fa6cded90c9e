CUTLASS_HOST_DEVICE
Array<float_e2m1_t, 8> float_to_e2m1_x8(Array<float, 8> const& a) {
  uint32_t bits;
#if defined(CUTLASS_E2M1_HW_ENCODE)
  // the instruction: left as it is
#else
  bits = e2m1_nib_f32(a[0]) |
         (e2m1_nib_f32(a[1]) << 4) |
         (e2m1_nib_f32(a[2]) << 8) |
         (e2m1_nib_f32(a[3]) << 12) |
         (e2m1_nib_f32(a[4]) << 16) |
         (e2m1_nib_f32(a[5]) << 20) |
         (e2m1_nib_f32(a[6]) << 24) |
         (e2m1_nib_f32(a[7]) << 28);
#endif
  return reinterpret_cast<Array<float_e2m1_t, 8> const&>(bits);
}
