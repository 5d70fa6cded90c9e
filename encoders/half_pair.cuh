// float to E2M1 (sign, two exponent bits, one mantissa bit) by the roundings of half precision, in pairs. Exact for all
// 2^32 inputs: round to nearest, ties to even, saturated at 6, -0 kept, every NaN to +6, which is what the
// instruction cvt.rn.satfinite.e2m1x2.f32 gives.
//
// 1. h = f16(x * 2^-14 * (1 + 2^-9)).
//    2^-14 takes 1, the smallest normal number of E2M1, to the smallest normal number of f16. Subnormals then meet
//    subnormals, and an E2M1 value of code c has the f16 bits 512 c; the border below it lies at T = 512 c - 256.
//    1 + 2^-9 moves the borders 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 up by n + 1/2 f16 steps, n = 0, 1, 2, 3, 2, 3, 2.
//    So a border is now a tie of f16, and n is even where E2M1's tie goes down and odd where it goes up: as T is even,
//    f16's own ties-to-even decides E2M1's ties, exactly. Below the border |h| <= T + n; above it |h| >= T + n + 1.
// 2. d = f16(h * (1 - 5 * 2^-11)) takes n off again: below the border |d| <= T - 1, above it |d| >= T.
// 3. The magnitude is capped at the bits of code 7. A NaN is canonical since step 1, sign clear, and takes the cap.
// 4. code = (|d| + 256) >> 9. The upper byte of d is s000cccx; byte * 8 + 8 rounds x off and puts ccc below the sign's
//    place, so that one bit-select finishes the nibble.
//
// Every step is monotone in |x| and odd in x, so being right on both sides of the seven borders is being right
// everywhere. On sm_86 and later: eight values in 28 instructions, four in 16, two in 10, one in 7.
//
// Where half precision has no minimum with a sign (before sm_86, and on the host), the rounding of one float addition
// does the same. With |x| capped at 6 and e = max(0, floor(log2 |x|)), one unit in the last place of 2^(22 + e) + |x|
// is 2^(e - 1), the step of E2M1 around x. The sum's bits are (149 + e) << 23 | k with code = k + 2 e. It relies on the
// default rounding mode.
//
// This text is pasted into other headers, at global scope: it includes nothing, and its guard makes a second copy
// harmless. Flags such as -use_fast_math change none of its results.
#ifndef FP4PATCH_HALF_PAIR_CUH
#define FP4PATCH_HALF_PAIR_CUH

#if defined(__CUDACC__)
#define FP4PATCH_FN __host__ __device__ __forceinline__
#else
#define FP4PATCH_FN inline __attribute__((always_inline))
#endif

namespace fp4patch_half_pair {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860

// Steps 1 to 3 for two values: each half is s000cccx........, to be rounded at x.
FP4PATCH_FN unsigned int capped_halves(float low, float high) {
  const float scale = 0x1.008p-14f;            // 2^-14 * (1 + 2^-9)
  const unsigned int shrink = 0x3bfb3bfbu;     // 1 - 5 * 2^-11, twice
  const unsigned int seven = 0x0e000e00u;      // 7 * 512, twice: the number 6 * 2^-14
  unsigned int h, d, m;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(__fmul_rn(high, scale)), "f"(__fmul_rn(low, scale)));
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(h), "r"(shrink));
  asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(m) : "r"(d), "r"(seven));
  return m;
}

// The bits of a where mask has ones, of b elsewhere, in one instruction.
FP4PATCH_FN unsigned int select(unsigned int mask, unsigned int a, unsigned int b) {
  unsigned int r;
  asm("lop3.b32 %0, %1, %2, %3, 0xe2;" : "=r"(r) : "r"(a), "r"(mask), "r"(b));
  return r;
}

// Step 4 for two halves s000cccx........: each becomes sccc............
FP4PATCH_FN unsigned int nibbles_of_halves(unsigned int halves) {
  return select(0x80008000u, halves, halves * 8u + 0x08000800u);
}

// Step 4 for four upper bytes s000cccx: each becomes sccc.....
FP4PATCH_FN unsigned int nibbles_of_bytes(unsigned int bytes) {
  return select(0x80808080u, bytes, bytes * 8u + 0x08080808u);
}

// One value: bit 3 is the sign, bits 2 to 0 the magnitude.
FP4PATCH_FN unsigned int e2m1(float x) {
  return nibbles_of_halves(capped_halves(0.0f, x)) >> 28;
}

// Packing: value 0 in the lowest nibble, everywhere.
FP4PATCH_FN unsigned char e2m1_x2(float v0, float v1) {
  const unsigned int n = nibbles_of_halves(capped_halves(v0, v1));
  return static_cast<unsigned char>(select(0x0fu, n >> 12, n >> 24));
}

FP4PATCH_FN unsigned short e2m1_x4(float v0, float v1, float v2, float v3) {
  const unsigned int n = nibbles_of_bytes(__byte_perm(capped_halves(v0, v2), capped_halves(v1, v3), 0x7531));
  return static_cast<unsigned short>(select(0x0f0fu, n >> 4, n >> 16));
}

FP4PATCH_FN unsigned int e2m1_x8(float v0, float v1, float v2, float v3, float v4, float v5, float v6, float v7) {
  const unsigned int even = __byte_perm(capped_halves(v0, v2), capped_halves(v4, v6), 0x7531);
  const unsigned int odd = __byte_perm(capped_halves(v1, v3), capped_halves(v5, v7), 0x7531);
  return select(0x0f0f0f0fu, nibbles_of_bytes(even) >> 4, nibbles_of_bytes(odd));
}

#else  // before sm_86, and the host

FP4PATCH_FN unsigned int bits(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  unsigned int u;
  __builtin_memcpy(&u, &x, sizeof u);
  return u;
#endif
}

FP4PATCH_FN float number(unsigned int u) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(u);
#else
  float x;
  __builtin_memcpy(&x, &u, sizeof x);
  return x;
#endif
}

// One value: bit 3 is the sign, bits 2 to 0 the magnitude.
FP4PATCH_FN unsigned int e2m1(float x) {
  const unsigned int u = bits(x);
  const unsigned int magnitude = u & 0x7fffffffu;
  const unsigned int a = magnitude < 0x40c00000u ? magnitude : 0x40c00000u;        // min(|x|, 6); NaN gives 6
  const unsigned int p = (a > 0x3f800000u ? a : 0x3f800000u) & 0x7f800000u;        // 2^e
  const unsigned int sum = bits(number(p + (22u << 23)) + number(a));              // 2^(22 + e) + |x|, rounded
  const unsigned int sign = magnitude > 0x7f800000u ? 0u : u >> 28 & 8u;
  return sign | ((sum + (sum >> 22) + 6u) & 7u);  // k + 2 (149 + e) + 6 = k + 2 e, modulo 8
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

#endif

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

}  // namespace fp4patch_half_pair

#undef FP4PATCH_FN
#endif  // FP4PATCH_HALF_PAIR_CUH
