CUTLASS_HOST_DEVICE
Array<float_e2m1_t, 8> float_to_e2m1_x8(Array<float, 8> const& a) {
  uint32_t bits;
#if defined(CUTLASS_E2M1_HW_ENCODE)
  // the instruction: left as it is
#else
  bits = ::fp4patch_e2m1::x8(a);
#endif
  return reinterpret_cast<Array<float_e2m1_t, 8> const&>(bits);
}
