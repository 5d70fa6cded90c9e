namespace detail {

/// What a code means whose sign, exponent and mantissa stand at the places of a float's, the highest bit of the mantissa at
/// bit 22. That float is the number times 2^(bias - 127), a subnormal one where the code is subnormal, so that one exact
/// product makes the number. power: the bits of 2^(127 - bias). No asm, so that the compiler evaluates constants.
CUTLASS_DEVICE
float rebias(uint32_t bits, uint32_t power) {
  // A constant: not 0.5 in builds that flush subnormal numbers to zero (-ftz=true, -use_fast_math).
  if (copy_bits<uint32_t, float>(0x00400000u) * copy_bits<uint32_t, float>(0x7e800000u) > 0.0f) {
    return copy_bits<uint32_t, float>(bits) * copy_bits<uint32_t, float>(power);
  }
  // There: with the exponent's field f this is 2^(f - bias) * 1.m, which is right for f > 0, and for f = 0 it is half
  // of what is 2^(1 - bias) too much. The lesser of the two is the number.
  float const normal = copy_bits<uint32_t, float>((bits & 0x7fffffffu) + power - 0x3f800000u);
  float const subnormal = 2.0f * normal - copy_bits<uint32_t, float>(power - 0x3f000000u);
  return copy_bits<uint32_t, float>(copy_bits<float, uint32_t>(normal < subnormal ? normal : subnormal) |
                                    (bits & 0x80000000u));
}

} // namespace detail
