// float to E2M1 (sign, two exponent bits, one mantissa bit) by comparing with seven borders.
//
// The magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 have the codes 0 to 7. A border lies halfway between two neighbours and
// belongs to the one whose code is even, hence <= after an even code and < after an odd one: round to
// nearest, ties to even, on every input. Beyond 5, infinity included, the result saturates at 6.
//
// A NaN fails every comparison and becomes 6 with the NaN's own sign; the instruction cvt.rn.satfinite.e2m1x2.f32
// gives +6 for either sign. -0 keeps its sign, as it does there.
//
// This text is pasted into other headers, at global scope: it includes nothing, and its guard makes a second copy
// harmless.
#ifndef FP4PATCH_THRESHOLD_CUH
#define FP4PATCH_THRESHOLD_CUH

#if defined(__CUDACC__)
#define FP4PATCH_FN __host__ __device__ __forceinline__
#else
#define FP4PATCH_FN inline __attribute__((always_inline))
#endif

namespace fp4patch_threshold {

FP4PATCH_FN unsigned int bits(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  unsigned int u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
#endif
}

// One value: bit 3 is the sign, bits 2 to 0 the magnitude.
FP4PATCH_FN unsigned int e2m1(float x) {
  const unsigned int u = bits(x);
#if defined(__CUDA_ARCH__)
  const float ax = fabsf(x);  // a modifier of the comparison: no instruction
#else
  const float ax = __builtin_fabsf(x);
#endif
  unsigned int magnitude;
  if (ax <= 0.25f) {
    magnitude = 0u;
  } else if (ax < 0.75f) {
    magnitude = 1u;
  } else if (ax <= 1.25f) {
    magnitude = 2u;
  } else if (ax < 1.75f) {
    magnitude = 3u;
  } else if (ax <= 2.5f) {
    magnitude = 4u;
  } else if (ax < 3.5f) {
    magnitude = 5u;
  } else if (ax <= 5.0f) {
    magnitude = 6u;
  } else {
    magnitude = 7u;
  }
  return (u >> 28 & 8u) | magnitude;
}

// Packing: value 0 in the lowest nibble, everywhere.
FP4PATCH_FN unsigned char e2m1_x2(float v0, float v1) {
  return static_cast<unsigned char>(e2m1(v0) | e2m1(v1) << 4);
}

FP4PATCH_FN unsigned short e2m1_x4(float v0, float v1, float v2, float v3) {
  return static_cast<unsigned short>(e2m1(v0) | e2m1(v1) << 4 | e2m1(v2) << 8 | e2m1(v3) << 12);
}

FP4PATCH_FN unsigned int e2m1_x8(float v0, float v1, float v2, float v3, float v4, float v5, float v6, float v7) {
  return e2m1(v0) | e2m1(v1) << 4 | e2m1(v2) << 8 | e2m1(v3) << 12 | e2m1(v4) << 16 | e2m1(v5) << 20 |
         e2m1(v6) << 24 | e2m1(v7) << 28;
}

FP4PATCH_FN unsigned long long e2m1_x16(float v0, float v1, float v2, float v3, float v4, float v5, float v6, float v7,
                                        float v8, float v9, float v10, float v11, float v12, float v13, float v14,
                                        float v15) {
  return e2m1_x8(v0, v1, v2, v3, v4, v5, v6, v7) |
         static_cast<unsigned long long>(e2m1_x8(v8, v9, v10, v11, v12, v13, v14, v15)) << 32;
}

// The same for __half2 and __nv_bfloat162, which need no header here: __low2float is looked up where these are used.
template <class Pair>
FP4PATCH_FN auto e2m1_x2(Pair p) -> decltype(__low2float(p), static_cast<unsigned char>(0)) {
  return e2m1_x2(__low2float(p), __high2float(p));
}

template <class Pair>
FP4PATCH_FN auto e2m1_x4(Pair p0, Pair p1) -> decltype(__low2float(p0), static_cast<unsigned short>(0)) {
  return e2m1_x4(__low2float(p0), __high2float(p0), __low2float(p1), __high2float(p1));
}

template <class Pair>
FP4PATCH_FN auto e2m1_x8(Pair p0, Pair p1, Pair p2, Pair p3) -> decltype(__low2float(p0), 0u) {
  return e2m1_x8(__low2float(p0), __high2float(p0), __low2float(p1), __high2float(p1), __low2float(p2),
                 __high2float(p2), __low2float(p3), __high2float(p3));
}

template <class Pair>
FP4PATCH_FN auto e2m1_x16(Pair p0, Pair p1, Pair p2, Pair p3, Pair p4, Pair p5, Pair p6, Pair p7)
    -> decltype(__low2float(p0), 0ull) {
  return e2m1_x8(p0, p1, p2, p3) | static_cast<unsigned long long>(e2m1_x8(p4, p5, p6, p7)) << 32;
}

}  // namespace fp4patch_threshold

#undef FP4PATCH_FN
#endif  // FP4PATCH_THRESHOLD_CUH
