CUTLASS_HOST_DEVICE
Array<float_e2m1_t, 4> float_to_e2m1_x4(Array<float, 4> const& a) {
  uint32_t bits;
#if defined(CUTLASS_E2M1_HW_ENCODE)
  // the instruction: left as it is
#else
  bits = ::fp4patch_e2m1::x4(a);
#endif
  return reinterpret_cast<Array<float_e2m1_t, 4> const&>(bits);
}
