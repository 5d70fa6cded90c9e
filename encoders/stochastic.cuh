// float to E2M1 (sign, two exponent bits, one mantissa bit) with stochastic rounding, eight random bits a value. Exact for
// all 2^40 pairs of an input and its random byte: the carry of the random bits into the kept mantissa bits decides, values
// on the grid stay, saturated at 6, -0 kept, every NaN to +6, which is what cvt.rs.satfinite.e2m1x4.f32 gives.
//
// 1. h = f16(x * 2^-14), rounded toward zero. 2^-14 takes 1, the smallest normal number of E2M1, to the smallest normal
//    number of f16. Subnormals then meet subnormals: an E2M1 value of code c has the f16 bits 512 c, and nine bits are
//    discarded. Of what lies below them nothing is missed: 2 r and 512 are integers, so D + 2 r >= 512 holds for the
//    real remainder D exactly when it holds for floor(D).
// 2. The magnitude is capped at the bits of code 7. A NaN is canonical since step 1, sign clear, and takes the cap.
// 3. The random byte r is added, shifted left by one. The largest sum is 7 * 512 + 510: still code 7.
// 4. code = sum >> 9. The upper byte of the sum is s000cccx; byte * 8 puts ccc below the sign's place, so that one
//    bit-select finishes the nibble.
//
// On sm_86 and later: eight values in 32 instructions, four in 18, two in 11, one in 8.
//
// Where half precision has no minimum with a sign (before sm_86, and on the host), the same sum is an integer: with |x|
// capped at 6 and e = max(0, floor(log2 |x|)), the f16 bits of step 1 are 1024 e + floor(|x| * 2^(10 - e)).
//
// Random bits: value 0 has bits 7:0 of its word, value 1 bits 23:16, value 2 bits 15:8, value 3 bits 31:24. These are the
// places that the instruction's operands have in `cvt.rs.satfinite.e2m1x4.f32 d, {a, b, e, f}, rbits` with a = value 3,
// b = value 2, e = value 1, f = value 0: f and e the low bytes of the two halves of rbits, b and a the high bytes (PTX
// ISA, cvt, the figure of the random bits for .e2m1x4).
//
// This text is pasted into other headers, at global scope: it includes nothing, and its guard makes a second copy
// harmless. Flags such as -use_fast_math change none of its results.
#ifndef FP4PATCH_STOCHASTIC_CUH
#define FP4PATCH_STOCHASTIC_CUH

#if defined(__CUDACC__)
#define FP4PATCH_FN __host__ __device__ __forceinline__
#else
#define FP4PATCH_FN inline __attribute__((always_inline))
#endif

namespace fp4patch_stochastic {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860

// Steps 1 to 3 for two values. The low byte of each half of noise is the value's random byte, the other is zero; each
// half of the result is s000cccx........, to be cut off at x.
FP4PATCH_FN unsigned int dithered_halves(float low, float high, unsigned int noise) {
  const float scale = 0x1p-14f;
  const unsigned int seven = 0x0e000e00u;  // 7 * 512, twice: the number 6 * 2^-14
  unsigned int h, m;
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(__fmul_rn(high, scale)), "f"(__fmul_rn(low, scale)));
  asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(m) : "r"(h), "r"(seven));
  return noise * 2u + m;
}

// The random bytes of values 0 and 2, and of values 1 and 3, as noise.
FP4PATCH_FN unsigned int even_noise(unsigned int rbits) { return __byte_perm(rbits, 0u, 0x4140); }
FP4PATCH_FN unsigned int odd_noise(unsigned int rbits) { return __byte_perm(rbits, 0u, 0x4342); }

// The bits of a where mask has ones, of b elsewhere, in one instruction.
FP4PATCH_FN unsigned int select(unsigned int mask, unsigned int a, unsigned int b) {
  unsigned int r;
  asm("lop3.b32 %0, %1, %2, %3, 0xe2;" : "=r"(r) : "r"(a), "r"(mask), "r"(b));
  return r;
}

// Step 4 for two halves s000cccx........, or for four upper bytes s000cccx: each becomes sccc and what is left over.
FP4PATCH_FN unsigned int nibbles_of_halves(unsigned int halves) { return select(0x80008000u, halves, halves * 8u); }
FP4PATCH_FN unsigned int nibbles_of_bytes(unsigned int bytes) { return select(0x80808080u, bytes, bytes * 8u); }

// One value with the random bits 7:0: bit 3 is the sign, bits 2 to 0 the magnitude.
FP4PATCH_FN unsigned int e2m1(float x, unsigned int rbits) {
  return nibbles_of_halves(dithered_halves(0.0f, x, __byte_perm(rbits, 0u, 0x4044))) >> 28;
}

// Packing: value 0 in the lowest nibble, everywhere.
FP4PATCH_FN unsigned char e2m1_x2(float v0, float v1, unsigned int rbits) {
  const unsigned int n = nibbles_of_halves(dithered_halves(v0, v1, __byte_perm(rbits, 0u, 0x4240)));
  return static_cast<unsigned char>(select(0x0fu, n >> 12, n >> 24));
}

FP4PATCH_FN unsigned short e2m1_x4(float v0, float v1, float v2, float v3, unsigned int rbits) {
  const unsigned int n = nibbles_of_bytes(__byte_perm(dithered_halves(v0, v2, even_noise(rbits)),
                                                      dithered_halves(v1, v3, odd_noise(rbits)), 0x7531));
  return static_cast<unsigned short>(select(0x0f0fu, n >> 4, n >> 16));
}

// rbits03 is of values 0 to 3, rbits47 of values 4 to 7.
FP4PATCH_FN unsigned int e2m1_x8(float v0, float v1, float v2, float v3, float v4, float v5, float v6, float v7,
                                 unsigned int rbits03, unsigned int rbits47) {
  const unsigned int even = __byte_perm(dithered_halves(v0, v2, even_noise(rbits03)),
                                        dithered_halves(v4, v6, even_noise(rbits47)), 0x7531);
  const unsigned int odd = __byte_perm(dithered_halves(v1, v3, odd_noise(rbits03)),
                                       dithered_halves(v5, v7, odd_noise(rbits47)), 0x7531);
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

// One value with the random bits 7:0: bit 3 is the sign, bits 2 to 0 the magnitude.
FP4PATCH_FN unsigned int e2m1(float x, unsigned int rbits) {
  const unsigned int u = bits(x);
  const unsigned int magnitude = u & 0x7fffffffu;
  const unsigned int a = magnitude < 0x40c00000u ? magnitude : 0x40c00000u;            // min(|x|, 6); NaN gives 6
  const unsigned int p = (a > 0x3f800000u ? a : 0x3f800000u) & 0x7f800000u;            // 2^e
  const float steps = number(a) * number((264u << 23) - p);                            // |x| * 2^(10 - e)
  const unsigned int half = ((p >> 23) - 127u) * 1024u + static_cast<unsigned int>(steps);
  const unsigned int sign = magnitude > 0x7f800000u ? 0u : u >> 28 & 8u;
  return sign | (half + 2u * (rbits & 0xffu)) >> 9;
}

// Packing: value 0 in the lowest nibble, everywhere.
FP4PATCH_FN unsigned char e2m1_x2(float v0, float v1, unsigned int rbits) {
  return static_cast<unsigned char>(e2m1(v0, rbits) | e2m1(v1, rbits >> 16) << 4);
}

FP4PATCH_FN unsigned short e2m1_x4(float v0, float v1, float v2, float v3, unsigned int rbits) {
  return static_cast<unsigned short>(e2m1(v0, rbits) | e2m1(v1, rbits >> 16) << 4 | e2m1(v2, rbits >> 8) << 8 |
                                     e2m1(v3, rbits >> 24) << 12);
}

// rbits03 is of values 0 to 3, rbits47 of values 4 to 7.
FP4PATCH_FN unsigned int e2m1_x8(float v0, float v1, float v2, float v3, float v4, float v5, float v6, float v7,
                                 unsigned int rbits03, unsigned int rbits47) {
  return e2m1_x4(v0, v1, v2, v3, rbits03) | static_cast<unsigned int>(e2m1_x4(v4, v5, v6, v7, rbits47)) << 16;
}

#endif

}  // namespace fp4patch_stochastic

#undef FP4PATCH_FN
#endif  // FP4PATCH_STOCHASTIC_CUH
