/* What translated machine code calls: NVIDIA's arithmetic where it is not C's. One thread at a time, no global state.
 *
 * Registers are uint32_t, whatever they hold. Rules, from the PTX ISA ("Floating-Point Instructions", "Half Precision
 * Floating-Point Instructions", "cvt") and checked on a GPU by the golden digests of the tests:
 *   - round to nearest, ties to even; subnormals are kept unless an instruction has .FTZ;
 *   - the result of arithmetic that is a NaN is the canonical one: 0x7fffffff (float), 0x7fff (half, bfloat16);
 *   - min and max: a NaN loses against a number, -0 is below +0, and two NaNs give the canonical one.
 * Compile with -ffp-contract=off and without -ffast-math: each operation here is one rounding.
 */
#ifndef SASS_RUNTIME_H
#define SASS_RUNTIME_H

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "translated machine code needs IEEE arithmetic"
#endif

/* One thread of a launch. */
struct launch {
  const uint8_t *constants; /* constant bank 0, as the driver lays it out */
  uint32_t tid_x, ctaid_x, ntid_x, nctaid_x;
  uint32_t tid_y, tid_z, ctaid_y, ctaid_z, laneid; /* of grids alone */
  struct block *block;
};

/* Executed before every jump backwards: a limit of the run time defines it. */
#ifndef SASS_BACKWARD
#define SASS_BACKWARD(place)
#endif

/* What EXIT does; and a RET to where no CALL stands. */
#ifndef SASS_EXIT
#define SASS_EXIT return
#endif
#ifndef SASS_LOST
#define SASS_LOST __builtin_trap()
#endif

#define SASS_FN static inline __attribute__((always_inline, unused))

enum { SASS_NAN = 0x7fffffff, SASS_HALF_NAN = 0x7fff };

/* --- bits ------------------------------------------------------------------------------------------------------ */

SASS_FN float sass_single(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

SASS_FN uint32_t sass_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

SASS_FN uint64_t sass_pair(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }
SASS_FN uint32_t sass_low(uint64_t pair) { return (uint32_t)pair; }
SASS_FN uint32_t sass_high(uint64_t pair) { return (uint32_t)(pair >> 32); }

/* --- memory ---------------------------------------------------------------------------------------------------- */

#define SASS_MEMORY(name, type)                                            \
  SASS_FN type sass_load_##name(const struct launch *launch, uint64_t address) { \
    (void)launch;                                                          \
    type value;                                                            \
    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);        \
    return value;                                                          \
  }                                                                        \
  SASS_FN void sass_store_##name(const struct launch *launch, uint64_t address, type value) { \
    (void)launch;                                                          \
    memcpy((void *)(uintptr_t)address, &value, sizeof value);              \
  }
SASS_MEMORY(8, uint8_t)
SASS_MEMORY(16, uint16_t)
SASS_MEMORY(32, uint32_t)
#undef SASS_MEMORY

/* An address of several words, which must be a multiple of so many bytes: where memory is checked, that is. */
#ifndef sass_aligned
#define sass_aligned(launch, address, bytes) (address)
#endif

SASS_FN uint32_t sass_constant(const struct launch *launch, uint32_t offset) {
  return sass_load_32(launch, (uint64_t)(uintptr_t)launch->constants + offset);
}

/* What a register holds that nothing wrote: it must not matter, so it differs from thread to thread. */
#ifndef SASS_POISON
#define SASS_POISON 0x6b43a9b5u
#endif
SASS_FN uint32_t sass_poison(const struct launch *launch, uint32_t number) {
  return (launch->tid_x + number) * 0x9e3779b1u ^ SASS_POISON;
}

/* --- integers -------------------------------------------------------------------------------------------------- */

/* Shifts of one word. A count beyond 32 counts as 32. */
SASS_FN uint32_t sass_shift_word_left(uint32_t x, uint32_t count) { return count < 32 ? x << (count & 31) : 0; }
SASS_FN uint32_t sass_shift_word_right(uint32_t x, uint32_t count) { return count < 32 ? x >> (count & 31) : 0; }
SASS_FN uint32_t sass_shift_word_signed(uint32_t x, uint32_t count) { return (uint32_t)((int32_t)x >> (count < 31 ? count : 31)); }

/* Shifts of a pair of words. A count over `most`, 32 or 64, counts as `most`. */
SASS_FN uint32_t sass_count(uint32_t count, uint32_t most) { return count < most ? count : most; }
SASS_FN uint32_t sass_shift_left(uint32_t low, uint32_t count, uint32_t high, int upper) {
  const uint64_t shifted = count < 64 ? sass_pair(low, high) << (count & 63) : 0;
  return upper ? sass_high(shifted) : sass_low(shifted);
}
SASS_FN uint32_t sass_shift_right(uint32_t low, uint32_t count, uint32_t high, int upper, int is_signed) {
  const uint64_t pair = sass_pair(low, high);
  const uint64_t fill = is_signed && (high & 0x80000000u) ? ~UINT64_C(0) : 0;
  const uint64_t shifted = count < 64 ? (uint64_t)((pair ^ fill) >> (count & 63)) ^ fill : fill;
  return upper ? sass_high(shifted) : sass_low(shifted);
}

/* PRMT: each nibble of the selector names a byte of {b, a}; its top bit takes that byte's sign eight times instead. */
SASS_FN uint32_t sass_permute(uint32_t a, uint32_t selector, uint32_t b) {
  const uint64_t bytes = sass_pair(a, b);
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> 4 * i & 15;
    const uint32_t byte = (uint32_t)(bytes >> 8 * (nibble & 7)) & 255;
    result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
  }
  return result;
}

/* --- single precision ------------------------------------------------------------------------------------------ */

SASS_FN int sass_is_nan(uint32_t x) { return (x & 0x7fffffffu) > 0x7f800000u; }
SASS_FN uint32_t sass_result(float x) { return x == x ? sass_bits(x) : (uint32_t)SASS_NAN; }
SASS_FN uint32_t sass_flush(uint32_t x) { return x & 0x7f800000u ? x : x & 0x80000000u; }

SASS_FN uint32_t sass_fadd(uint32_t a, uint32_t b) { return sass_result(sass_single(a) + sass_single(b)); }
SASS_FN uint32_t sass_fmul(uint32_t a, uint32_t b) { return sass_result(sass_single(a) * sass_single(b)); }
SASS_FN uint32_t sass_ffma(uint32_t a, uint32_t b, uint32_t c) {
  return sass_result(__builtin_fmaf(sass_single(a), sass_single(b), sass_single(c)));
}

/* The float next to the rounded sum on the other side of the exact one, or the sum itself, as the direction wants: -1
 * down, +1 up, 0 towards zero. The product is exact in double precision, and two-sum gives the rest of the sum. */
SASS_FN uint32_t sass_ffma_directed(uint32_t a, uint32_t b, uint32_t c, int direction) {
  const double product = (double)sass_single(a) * (double)sass_single(b), addend = sass_single(c);
  const double sum = product + addend, part = sum - product;
  const double rest = (product - (sum - part)) + (addend - part);
  const float nearest = (float)sum;
  uint32_t bits = sass_bits(nearest);
  if (sum != sum || sum - sum != 0) return sass_result(nearest); /* NaN and infinities are exact */
  if (sum == 0) return direction < 0 && (sass_bits((float)product) >> 31 != c >> 31) ? 0x80000000u : bits;
  const int above = (double)nearest > sum || ((double)nearest == sum && rest < 0);
  const int below = (double)nearest < sum || ((double)nearest == sum && rest > 0);
  const int wanted = direction ? direction : sum > 0 ? -1 : 1;
  if (above && wanted < 0) bits = nearest > 0 ? bits - 1 : nearest < 0 ? bits + 1 : 0x80000001u;
  if (below && wanted > 0) bits = nearest < 0 ? bits - 1 : nearest > 0 ? bits + 1 : 1u;
  return bits;
}
SASS_FN uint32_t sass_ffma_rm(uint32_t a, uint32_t b, uint32_t c) { return sass_ffma_directed(a, b, c, -1); }
SASS_FN uint32_t sass_ffma_rp(uint32_t a, uint32_t b, uint32_t c) { return sass_ffma_directed(a, b, c, 1); }
SASS_FN uint32_t sass_ffma_rz(uint32_t a, uint32_t b, uint32_t c) { return sass_ffma_directed(a, b, c, 0); }

/* The approximate reciprocal: what it flushes is documented, and that it is at most one unit in the last place off. Which
 * way is not, so SASS_RECIPROCAL decides: whatever is within the bound must do. Of numbers of three bits it is the rounded
 * quotient, as a GPU has it: the compiler's own division relies on that of 1, and it computes that of 6 itself. */
#ifndef SASS_RECIPROCAL
#define SASS_RECIPROCAL(bits) 0
#endif
SASS_FN uint32_t sass_rcp(uint32_t x) {
  const uint32_t flushed = sass_flush(x), exact = sass_flush(sass_result(1.0f / sass_single(flushed)));
  const uint32_t magnitude = exact & 0x7fffffffu;
  if (magnitude <= 0x00800000u || magnitude >= 0x7f7fffffu || (flushed & 0x1fffffu) == 0) return exact;
  return exact + (uint32_t)(SASS_RECIPROCAL(flushed));
}

/* Whether a / b is beyond what the compiler's fast division can do. Which inputs exactly is not documented; the slow one is
 * right for all, so it is taken wherever an operand or the result is not well inside the normal range. */
SASS_FN uint32_t sass_fchk(uint32_t a, uint32_t b) {
  const uint32_t above = a >> 23 & 255u, below = b >> 23 & 255u;
  const int32_t result = (int32_t)(above - below);
  return above < 26 || above > 250 || below < 2 || below > 250 || result < -122 || result > 124;
}

SASS_FN uint32_t sass_single_less(uint32_t a, uint32_t b) { return sass_single(a) < sass_single(b); }
SASS_FN uint32_t sass_single_less_equal(uint32_t a, uint32_t b) { return sass_single(a) <= sass_single(b); }
SASS_FN uint32_t sass_single_equal(uint32_t a, uint32_t b) { return sass_single(a) == sass_single(b); }

/* The order of floats as an order of integers: -0 stands just below +0. */
SASS_FN int32_t sass_order(uint32_t x) { return (int32_t)(x ^ ((uint32_t)((int32_t)x >> 31) >> 1)); }
SASS_FN uint32_t sass_fmnmx(uint32_t a, uint32_t b, int least) {
  const uint32_t chosen = (sass_order(a) < sass_order(b)) == (least != 0) ? a : b;
  const uint32_t number = sass_is_nan(a) ? b : sass_is_nan(b) ? a : chosen;
  return sass_is_nan(number) ? (uint32_t)SASS_NAN : number;
}

/* To the nearest integer, ties to even, saturated; NaN is 0. A float from 2^23 on is an integer. */
SASS_FN uint32_t sass_f2i(uint32_t x) {
  const float a = sass_single(x), magnitude = sass_single(x & 0x7fffffffu);
  if (sass_is_nan(x)) return 0;
  if (magnitude >= 0x1p31f) return a < 0 ? 0x80000000u : 0x7fffffffu;
  const int32_t whole = magnitude < 0x1p23f ? (int32_t)(magnitude + 0x1p23f - 0x1p23f) : (int32_t)magnitude;
  return (uint32_t)(a < 0 ? -whole : whole);
}

/* Toward zero, saturated; NaN is 0, and of 64 bits 2^63. */
SASS_FN uint32_t sass_f2u(uint32_t x) {
  const float a = sass_single(x);
  return !(a > 0) ? 0u : a >= 0x1p32f ? ~0u : (uint32_t)a;
}
SASS_FN uint64_t sass_f2u_64(uint32_t x) {
  const float a = sass_single(x);
  return a != a ? UINT64_C(1) << 63 : !(a > 0) ? 0 : a >= 0x1p64f ? ~UINT64_C(0) : (uint64_t)a;
}

/* Of integers, to nearest. */
SASS_FN uint32_t sass_single_of_s32(uint32_t x) { return sass_bits((float)(int32_t)x); }
SASS_FN uint32_t sass_single_of_u32(uint32_t x) { return sass_bits((float)x); }
/* To the float that is not below: the next one in magnitude is also the next integer of its bits. A float of 32 bits is
 * exact in double precision. */
SASS_FN uint32_t sass_single_of_s32_upward(uint32_t x) {
  const float near = (float)(int32_t)x;
  return sass_bits(near) + (uint32_t)((double)near < (double)(int32_t)x ? (near < 0 ? -1 : 1) : 0);
}
SASS_FN uint32_t sass_single_of_u32_upward(uint32_t x) {
  const float near = (float)x;
  return sass_bits(near) + ((double)near < (double)x);
}

/* Exact. This conversion and its reverse keep the sign and the payload of a NaN, and make it quiet. */
SASS_FN uint64_t sass_double_of_single(uint32_t x) {
  const double wide = sass_single(x);
  const uint64_t sign = (uint64_t)(x >> 31) << 63;
  uint64_t bits;
  memcpy(&bits, &wide, sizeof bits);
  return sass_is_nan(x) ? sign | UINT64_C(0x7ff8) << 48 | (uint64_t)(x & 0x7fffffu) << 29 : bits;
}

/* Rounded to nearest, or toward zero. The next float toward zero has the next lower bits; that of infinity is the largest
 * float. A NaN keeps its sign and the upper part of its payload, and becomes quiet. */
SASS_FN uint32_t sass_single_of_double(uint64_t bits, int toward_zero) {
  double wide;
  memcpy(&wide, &bits, sizeof wide);
  const float nearest = (float)wide;
  const uint32_t nan = (sass_high(bits) & 0x80000000u) | 0x7fc00000u | (uint32_t)(bits >> 29 & 0x3fffffu);
  const int beyond = toward_zero && __builtin_fabs((double)nearest) > __builtin_fabs(wide);
  return wide != wide ? nan : sass_bits(nearest) - beyond;
}

/* .xorsign.abs: the sources' magnitudes are compared, and their signs, exclusively or'ed, are the result's. The NaN that
 * two NaNs give has no sign. */
SASS_FN uint32_t sass_fmnmx_xorsign(uint32_t a, uint32_t b, int least) {
  const uint32_t chosen = sass_fmnmx(a & 0x7fffffffu, b & 0x7fffffffu, least);
  return sass_is_nan(chosen) ? (uint32_t)SASS_NAN : chosen | ((a ^ b) & 0x80000000u);
}

/* --- half precision and bfloat16 ------------------------------------------------------------------------------- */

SASS_FN float sass_of_half(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  /* Exponents of halves, 15 too small for those of floats, are made right by one exact multiplication. */
  const float number = sass_single(magnitude << 13) * 0x1p112f;
  return sass_single(sign | (magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : sass_bits(number)));
}

/* Rounds to nearest, ties to even. */
SASS_FN uint32_t sass_half_of(float x) {
  const uint32_t bits = sass_bits(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  /* Below 2^-14 a unit in the last place of x + 1/2 is 2^-24, half's own there. */
  const uint32_t subnormal = sass_bits(sass_single(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t number = magnitude < 0x38800000u ? subnormal : magnitude < 0x477ff000u ? normal : 0x7c00u;
  return magnitude > 0x7f800000u ? (uint32_t)SASS_HALF_NAN : sign | number;
}

SASS_FN uint32_t sass_to_half(uint32_t x) { return sass_half_of(sass_single(x)); }
SASS_FN uint32_t sass_single_of_half(uint32_t half) { return sass_bits(sass_of_half(half)); }
SASS_FN uint32_t sass_canonical_single_of_half(uint32_t half) { return sass_result(sass_of_half(half)); }

SASS_FN uint32_t sass_pack(uint32_t low, uint32_t high) { return high << 16 | (low & 0xffffu); }

SASS_FN uint32_t sass_halves_of_singles(uint32_t high, uint32_t low) {
  return sass_pack(sass_half_of(sass_single(low)), sass_half_of(sass_single(high)));
}

/* Rounds toward zero: a finite float stays finite. */
SASS_FN uint32_t sass_to_half_toward_zero(float x) {
  const uint32_t bits = sass_bits(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  const uint32_t subnormal = magnitude < 0x38800000u ? (uint32_t)(sass_single(magnitude) * 0x1p24f) : 0u;
  const uint32_t normal = (magnitude - (112u << 23)) >> 13, most = magnitude == 0x7f800000u ? 0x7c00u : 0x7bffu;
  const uint32_t number = magnitude < 0x38800000u ? subnormal : magnitude < 0x47800000u ? normal : most;
  return magnitude > 0x7f800000u ? (uint32_t)SASS_HALF_NAN : sign | number;
}

SASS_FN uint32_t sass_halves_toward_zero(uint32_t high, uint32_t low) {
  return sass_pack(sass_to_half_toward_zero(sass_single(low)), sass_to_half_toward_zero(sass_single(high)));
}

SASS_FN uint32_t sass_to_bfloat16(uint32_t x) {
  return sass_is_nan(x) ? (uint32_t)SASS_HALF_NAN : (x + 0x7fffu + (x >> 16 & 1u)) >> 16;
}

/* Of an integer: rounded to odd first, so that bfloat16 is rounded once. */
SASS_FN uint32_t sass_bfloat16_of_s32(uint32_t x) {
  const double exact = (int32_t)x;
  uint64_t bits;
  memcpy(&bits, &exact, sizeof bits);
  const uint32_t odd = sass_single_of_double(bits, 1);
  return sass_to_bfloat16(odd | ((double)sass_single(odd) != exact));
}

SASS_FN uint32_t sass_bfloat16s_of_singles(uint32_t high, uint32_t low) {
  return sass_pack(sass_to_bfloat16(low), sass_to_bfloat16(high));
}

/* The product of two halves and the sum of two halves are exact, or rounded once, where a float holds them: 22 bits of
 * product fit 24; of a sum, what a float drops lies too far below a half's last place to matter (24 >= 2 * 11 + 2). */
SASS_FN uint32_t sass_half_mul(uint32_t a, uint32_t b) { return sass_half_of(sass_of_half(a) * sass_of_half(b)); }
SASS_FN uint32_t sass_half_add(uint32_t a, uint32_t b) { return sass_half_of(sass_of_half(a) + sass_of_half(b)); }

SASS_FN float sass_of_bfloat16(uint32_t bits) { return sass_single(bits << 16); }
SASS_FN uint32_t sass_single_of_bfloat16(uint32_t bits) { return bits << 16; }

/* a * b + c rounded to odd, so that rounding to half or bfloat16 afterwards is as if it were the only one (Boldo and
 * Melquiond, "Emulation of FMA and Correctly Rounded Sums"). The product is exact. */
SASS_FN float sass_odd_fma(float a, float b, float c) {
  const double product = (double)a * (double)b, addend = (double)c;
  const double sum = product + addend, part = sum - product;
  const double error = (product - (sum - part)) + (addend - part); /* Knuth's two-sum: exact */
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if ((error > 0 || error < 0) && !(bits & 1)) { /* inexact and even: the odd neighbour on the error's side */
    bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
  }
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  /* By way of a float, again rounded to odd: 24 bits are enough for a last rounding to 11. */
  float single = (float)odd;
  if ((double)single != odd && odd == odd) {
    uint32_t word = sass_bits(single);
    if (!(word & 1)) {
      word += ((double)single < odd) == (odd > 0) ? 1 : (uint32_t)-1;
    }
    single = sass_single(word);
  }
  return single;
}
SASS_FN uint32_t sass_half_fma(uint32_t a, uint32_t b, uint32_t c) {
  return sass_half_of(sass_odd_fma(sass_of_half(a), sass_of_half(b), sass_of_half(c)));
}
SASS_FN uint32_t sass_bfloat16_fma(uint32_t a, uint32_t b, uint32_t c) {
  return sass_to_bfloat16(sass_bits(sass_odd_fma(sass_of_bfloat16(a), sass_of_bfloat16(b), sass_of_bfloat16(c))));
}

SASS_FN int32_t sass_half_order(uint32_t x) {
  const int32_t extended = (int32_t)(int16_t)x;
  return extended ^ (int32_t)((uint32_t)(extended >> 15) & 0x7fffu);
}
SASS_FN int sass_half_is_nan(uint32_t x) { return (x & 0x7fffu) > 0x7c00u; }
SASS_FN uint32_t sass_half_mnmx(uint32_t a, uint32_t b, int least) {
  const uint32_t chosen = (sass_half_order(a) < sass_half_order(b)) == (least != 0) ? a : b;
  const uint32_t number = sass_half_is_nan(a) ? b : sass_half_is_nan(b) ? a : chosen;
  return sass_half_is_nan(number) ? (uint32_t)SASS_HALF_NAN : number & 0xffffu;
}

SASS_FN uint32_t sass_half_mnmx_xorsign(uint32_t a, uint32_t b, int least) {
  const uint32_t chosen = sass_half_mnmx(a & 0x7fffu, b & 0x7fffu, least);
  return sass_half_is_nan(chosen) ? (uint32_t)SASS_HALF_NAN : chosen | ((a ^ b) & 0x8000u);
}

#define SASS_LOW(x) ((x) & 0xffffu)
#define SASS_HIGH(x) ((x) >> 16)

SASS_FN uint32_t sass_hmul2(uint32_t a, uint32_t b) {
  return sass_pack(sass_half_mul(SASS_LOW(a), SASS_LOW(b)), sass_half_mul(SASS_HIGH(a), SASS_HIGH(b)));
}
SASS_FN uint32_t sass_hadd2(uint32_t a, uint32_t b) {
  return sass_pack(sass_half_add(SASS_LOW(a), SASS_LOW(b)), sass_half_add(SASS_HIGH(a), SASS_HIGH(b)));
}
SASS_FN uint32_t sass_hfma2(uint32_t a, uint32_t b, uint32_t c) {
  return sass_pack(sass_half_fma(SASS_LOW(a), SASS_LOW(b), SASS_LOW(c)),
                   sass_half_fma(SASS_HIGH(a), SASS_HIGH(b), SASS_HIGH(c)));
}
SASS_FN uint32_t sass_hmnmx2(uint32_t a, uint32_t b, int least) {
  return sass_pack(sass_half_mnmx(SASS_LOW(a), SASS_LOW(b), least),
                   sass_half_mnmx(SASS_HIGH(a), SASS_HIGH(b), least));
}

/* A bfloat16 is the upper half of a float. */
SASS_FN uint32_t sass_bfloat16_mnmx(uint32_t a, uint32_t b, int least) {
  return sass_fmnmx(a << 16, b << 16, least) >> 16;
}
SASS_FN uint32_t sass_bmnmx2(uint32_t a, uint32_t b, int least) {
  return sass_pack(sass_bfloat16_mnmx(a, b, least), sass_bfloat16_mnmx(SASS_HIGH(a), SASS_HIGH(b), least));
}
SASS_FN uint32_t sass_bfma2(uint32_t a, uint32_t b, uint32_t c) {
  return sass_pack(sass_bfloat16_fma(SASS_LOW(a), SASS_LOW(b), SASS_LOW(c)),
                   sass_bfloat16_fma(SASS_HIGH(a), SASS_HIGH(b), SASS_HIGH(c)));
}

SASS_FN uint32_t sass_hmnmx2_xorsign(uint32_t a, uint32_t b, int least) {
  return sass_pack(sass_half_mnmx_xorsign(SASS_LOW(a), SASS_LOW(b), least),
                   sass_half_mnmx_xorsign(SASS_HIGH(a), SASS_HIGH(b), least));
}

/* --- eight bits and fewer -------------------------------------------------------------------------------------- */

/* E2M1 is the specification, by definition: boundaries between its magnitudes, ties to the even code, every NaN +6. */
SASS_FN uint32_t sass_to_e2m1(uint32_t x) {
  const float magnitude = sass_single(x & 0x7fffffffu);
  const uint32_t code = (uint32_t)(magnitude > 0.25f) + (uint32_t)(magnitude >= 0.75f) + (uint32_t)(magnitude > 1.25f) +
                        (uint32_t)(magnitude >= 1.75f) + (uint32_t)(magnitude > 2.5f) + (uint32_t)(magnitude >= 3.5f) +
                        (uint32_t)(magnitude > 5.0f);
  return sass_is_nan(x) ? 7u : (x >> 28 & 8u) | code;
}

/* A value goes up to v if it is not below v - random / 256 * (v - the code below); every term is exact. */
SASS_FN uint32_t sass_to_e2m1_stochastic(uint32_t x, uint32_t random) {
  const float magnitude = sass_single(x & 0x7fffffffu), part = (float)(random & 255u) * 0x1p-8f;
  const uint32_t code = (uint32_t)(magnitude >= 0.5f - 0.5f * part) + (uint32_t)(magnitude >= 1.0f - 0.5f * part) +
                        (uint32_t)(magnitude >= 1.5f - 0.5f * part) + (uint32_t)(magnitude >= 2.0f - 0.5f * part) +
                        (uint32_t)(magnitude >= 3.0f - part) + (uint32_t)(magnitude >= 4.0f - part) +
                        (uint32_t)(magnitude >= 6.0f - 2.0f * part);
  return sass_is_nan(x) ? 7u : (x >> 28 & 8u) | code;
}
/* Each source has the high byte of its half of c; what comes behind finds the low bytes there. */
SASS_FN uint32_t sass_stochastic(uint32_t high, uint32_t low, uint32_t c) {
  return c << 8 | sass_to_e2m1_stochastic(high, c >> 24) << 4 | sass_to_e2m1_stochastic(low, c >> 8);
}

/* Any format with `fraction` bits of fraction whose smallest normal number is 2^least: the magnitude's code, rounded to
 * nearest, ties to even, and not limited. With 2^e the binade of x, a unit in the last place of 2^(23 - fraction + e) +
 * |x| is the format's own around x, so the addition rounds to the format. */
SASS_FN uint32_t sass_to_small(uint32_t magnitude, uint32_t fraction, int32_t least) {
  const uint32_t binade = magnitude & 0x7f800000u, smallest = (uint32_t)(127 + least) << 23;
  const uint32_t power = binade > smallest ? binade : smallest;
  const uint32_t large = power + ((23u - fraction) << 23);
  const uint32_t steps = sass_bits(sass_single(large) + sass_single(magnitude)) - large; /* of the format's last place */
  return (((power - smallest) >> 23) << fraction) + steps;
}
SASS_FN uint32_t sass_to_limited(uint32_t x, uint32_t fraction, int32_t least, uint32_t greatest, uint32_t bits) {
  const uint32_t magnitude = x & 0x7fffffffu;
  const uint32_t capped = magnitude < 0x47c00000u ? magnitude : 0x47c00000u; /* 98304 is beyond all of these formats */
  const uint32_t code = sass_to_small(capped, fraction, least);
  return x >> 31 << (bits - 1) | (code < greatest ? code : greatest);
}
SASS_FN uint32_t sass_to_e4m3(uint32_t x) { return sass_is_nan(x) ? 0x7fu : sass_to_limited(x, 3, -6, 0x7e, 8); }
SASS_FN uint32_t sass_to_e5m2(uint32_t x) { return sass_is_nan(x) ? 0x7fu : sass_to_limited(x, 2, -14, 0x7b, 8); }
SASS_FN uint32_t sass_to_e2m3(uint32_t x) { return sass_is_nan(x) ? 0x1fu : sass_to_limited(x, 3, 0, 0x1f, 6); }
SASS_FN uint32_t sass_to_e3m2(uint32_t x) { return sass_is_nan(x) ? 0x1fu : sass_to_limited(x, 2, -2, 0x1f, 6); }

/* An E2M1 code as a half: 0, 0.5, 1, 1.5, 2, 3, 4, 6. */
SASS_FN uint32_t sass_half_of_e2m1(uint32_t nibble) {
  const uint32_t magnitude = nibble & 7u;
  /* Normal codes: exponent field + 14, fraction bit to the top; code 1 is 0.5. */
  const uint32_t half = magnitude > 1 ? (magnitude << 9) + 0x3800u : magnitude ? 0x3800u : 0u;
  return (nibble & 8u) << 12 | half;
}

/* An E4M3 code as a half: exact, the smallest is 2^-9. */
SASS_FN uint32_t sass_half_of_e4m3(uint32_t byte) {
  const uint32_t magnitude = byte & 127u;
  const float number = sass_single(magnitude << 20) * 0x1p120f; /* exponents of E4M3 are 120 too small for a float's */
  return magnitude == 127u ? (uint32_t)SASS_HALF_NAN : (byte & 128u) << 8 | sass_half_of(number);
}

/* An E5M2 code is the upper byte of a half. */
SASS_FN uint32_t sass_half_of_e5m2(uint32_t byte) {
  return (byte & 127u) > 0x7cu ? (uint32_t)SASS_HALF_NAN : byte << 8;
}

/* An FP6 code, the lower six bits of a byte, as a half: exact. */
SASS_FN uint32_t sass_half_of_e2m3(uint32_t byte) {
  return (byte & 32u) << 10 | sass_half_of(sass_single((byte & 31u) << 20) * 0x1p126f);
}
SASS_FN uint32_t sass_half_of_e3m2(uint32_t byte) {
  return (byte & 32u) << 10 | sass_half_of(sass_single((byte & 31u) << 21) * 0x1p124f);
}

#endif
