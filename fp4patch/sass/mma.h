/* Products of matrices by a warp (mma), as tensor cores compute them: sums are fused, aligned and cut off.
 *
 * Each element of the result is one sum of products and of the accumulator's element. The terms are aligned to the largest
 * exponent among them, cut off (toward zero) at a number of fraction bits, and added exactly; the total is then cut off to
 * float32, or rounded to half. The exponent of a product is the sum of its factors' exponents: the product is not
 * normalized. A NaN that comes out is 0x7fffffff, or 0x7fff of half; zero has no sign.
 *
 * This is the published behaviour of the hardware (Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and
 * Matrix Cores", arXiv 2511.10909, and its model microsoft/MMA-Sim, which its authors compared with the GPUs): 24 fraction
 * bits for sm_75 and sm_8x, which have k = 16 and 32 as two sums one after the other; 25 from sm_90 on; 13, and as many in
 * the result, of FP8 on sm_89. With block scales of four bits per value (m16n8k64) the products of 16 values, whose scale
 * is the same, are added exactly and multiplied by both scales before they are aligned, with 35 fraction bits.
 *
 * Measured on an H200, and other than in that model: a term that is zero does not count for the largest exponent (there
 * zero has the exponent -126, so that 0 * 2^127 cuts off small addends), and a half that rounds to zero has no sign.
 */
#ifndef SASS_MMA_H
#define SASS_MMA_H

#include <stdint.h>

enum sass_format { SASS_F16, SASS_BF16, SASS_TF32, SASS_E4M3, SASS_E5M2, SASS_E2M3, SASS_E3M2, SASS_E2M1, SASS_F32 };

/* Formats: bits of exponent, bits of fraction, the least exponent, and what codes of the largest exponent mean. */
enum sass_special { SASS_IEEE, SASS_ONE_NAN, SASS_FINITE };
static const struct sass_shape {
  int8_t exponent, fraction, bias, special;
} sass_shapes[] = {
    [SASS_F16] = {5, 10, 15, SASS_IEEE},   [SASS_BF16] = {8, 7, 127, SASS_IEEE},  [SASS_TF32] = {8, 10, 127, SASS_IEEE},
    [SASS_E4M3] = {4, 3, 7, SASS_ONE_NAN}, [SASS_E5M2] = {5, 2, 15, SASS_IEEE},   [SASS_E2M3] = {2, 3, 1, SASS_FINITE},
    [SASS_E3M2] = {3, 2, 3, SASS_FINITE},  [SASS_E2M1] = {2, 1, 1, SASS_FINITE},  [SASS_F32] = {8, 23, 127, SASS_IEEE},
};

/* significand * 2^(exponent - fraction), or what is no number. */
struct sass_number {
  int32_t significand;
  int16_t exponent;
  uint8_t nan, infinite;
};

static inline struct sass_number sass_decoded(uint32_t bits, enum sass_format format) {
  const struct sass_shape shape = sass_shapes[format];
  const uint32_t fraction = bits & ((1u << shape.fraction) - 1), field = bits >> shape.fraction & ((1u << shape.exponent) - 1);
  const int negative = bits >> (shape.fraction + shape.exponent) & 1, top = field == (1u << shape.exponent) - 1;
  struct sass_number number = {0, -126, 0, 0};
  if (top && shape.special == SASS_ONE_NAN && fraction == (1u << shape.fraction) - 1) return number.nan = 1, number;
  if (top && shape.special == SASS_IEEE) {
    number.nan = fraction != 0;
    number.infinite = fraction == 0;
    number.significand = negative ? -1 : 1;
    return number;
  }
  const int32_t magnitude = (int32_t)(field ? fraction | 1u << shape.fraction : fraction);
  if (magnitude == 0) return number;
  number.significand = negative ? -magnitude : magnitude;
  number.exponent = (int16_t)((field ? (int)field : 1) - shape.bias);
  return number;
}

/* Terms of a sum: significands with so many bits of fraction each. */
enum { SASS_TERMS = 66 };
struct sass_sum {
  int count, nan, positive, negative; /* infinities */
  int64_t significand[SASS_TERMS];
  int exponent[SASS_TERMS], fraction[SASS_TERMS];
};

static inline void sass_term(struct sass_sum *sum, int64_t significand, int exponent, int fraction) {
  if (significand == 0) return;
  sum->significand[sum->count] = significand;
  sum->exponent[sum->count] = exponent;
  sum->fraction[sum->count++] = fraction;
}

static inline void sass_infinite(struct sass_sum *sum, int negative) { *(negative ? &sum->negative : &sum->positive) = 1; }

/* A number of the accumulator. */
static inline void sass_addend(struct sass_sum *sum, uint32_t bits, enum sass_format format) {
  const struct sass_number number = sass_decoded(bits, format);
  sum->nan |= number.nan;
  if (number.infinite) sass_infinite(sum, number.significand < 0);
  if (!number.nan && !number.infinite) sass_term(sum, number.significand, number.exponent, sass_shapes[format].fraction);
}

/* A product, times 2^scale. */
static inline void sass_product(struct sass_sum *sum, uint32_t a, enum sass_format of_a, uint32_t b, enum sass_format of_b,
                                int scale) {
  const struct sass_number one = sass_decoded(a, of_a), other = sass_decoded(b, of_b);
  sum->nan |= one.nan | other.nan;
  if (one.nan || other.nan) return;
  if (one.infinite || other.infinite) {
    if (one.significand == 0 || other.significand == 0) {
      sum->nan = 1;
    } else {
      sass_infinite(sum, (one.significand < 0) != (other.significand < 0));
    }
    return;
  }
  sass_term(sum, (int64_t)one.significand * other.significand, one.exponent + other.exponent + scale,
            sass_shapes[of_a].fraction + sass_shapes[of_b].fraction);
}

/* The total as a multiple of 2^-bits of the largest exponent's power, which is returned. */
static inline int sass_aligned_total(const struct sass_sum *sum, int bits, int64_t *total) {
  int largest = -1000;
  for (int i = 0; i < sum->count; ++i) largest = sum->exponent[i] > largest ? sum->exponent[i] : largest;
  *total = 0;
  for (int i = 0; i < sum->count; ++i) {
    const int left = bits - sum->fraction[i] + sum->exponent[i] - largest;
    const int64_t magnitude = sum->significand[i] < 0 ? -sum->significand[i] : sum->significand[i];
    const int64_t cut = left >= 0 ? magnitude << left : left > -63 ? magnitude >> -left : 0;
    *total += sum->significand[i] < 0 ? -cut : cut;
  }
  return largest;
}

/* A total in a format with so many bits of fraction, whose least exponent is that of `format`: cut off, or rounded to
 * nearest, ties to even. */
static inline uint32_t sass_encoded(int64_t total, int exponent, int bits, enum sass_format format, int fraction, int nearest) {
  const struct sass_shape shape = sass_shapes[format];
  const uint32_t sign = total < 0 ? 1u << (shape.exponent + shape.fraction) : 0;
  uint64_t magnitude = total < 0 ? (uint64_t)-total : (uint64_t)total;
  if (magnitude == 0) return 0;
  int top = 63 - __builtin_clzll(magnitude) - bits + exponent; /* exponent of the total */
  const int least = 1 - shape.bias;
  int unit = (top > least ? top : least) - fraction; /* of the last place that is kept */
  const int drop = unit - (exponent - bits);
  uint64_t kept = drop <= 0 ? magnitude << -drop : drop < 64 ? magnitude >> drop : 0;
  if (nearest && drop > 0) {
    const uint64_t rest = drop < 64 ? magnitude & ((UINT64_C(1) << drop) - 1) : 1, half = UINT64_C(1) << (drop - 1 < 63 ? drop - 1 : 63);
    kept += rest > half || (rest == half && (kept & 1));
    if (kept >> (fraction + 1)) kept >>= 1, ++unit;
  }
  if (kept == 0) return 0;
  if (kept >> fraction == 0) return sign | (uint32_t)(kept << (shape.fraction - fraction)); /* subnormal */
  const int field = unit + fraction + shape.bias;
  if (field >= (1 << shape.exponent) - 1) return sign | ((1u << shape.exponent) - 1) << shape.fraction;
  return sign | (uint32_t)field << shape.fraction | (uint32_t)((kept << (shape.fraction - fraction)) & ((1u << shape.fraction) - 1));
}

/* The result: float32, cut off at `kept` bits of fraction; or half, rounded. */
static inline uint32_t sass_total(const struct sass_sum *sum, int bits, enum sass_format format, int kept) {
  const struct sass_shape shape = sass_shapes[format];
  const uint32_t infinity = ((1u << shape.exponent) - 1) << shape.fraction;
  if (sum->nan || (sum->positive && sum->negative)) return infinity | ((1u << shape.fraction) - 1);
  if (sum->positive || sum->negative) return infinity | (sum->negative ? 1u << (shape.exponent + shape.fraction) : 0);
  int64_t total;
  const int exponent = sass_aligned_total(sum, bits, &total);
  return sass_encoded(total, exponent, bits, format, kept, format == SASS_F16);
}

/* --- fragments: which value of which matrix a thread holds (PTX ISA, "Matrix fragments for mma") ----------------- */

/* What an instruction multiplies: m16n8, of k values. */
struct sass_mma {
  uint32_t k, bits;   /* bits of a value in a register: 4, 8, 16 or 32 */
  uint32_t a, b, c;   /* formats; of c SASS_F32 or SASS_F16 */
  uint32_t parts;     /* sums one after the other */
  uint32_t aligned, kept; /* bits of fraction: of the alignment, and of a float32 result */
};

/* A warp's registers: those of A, then those of B, then those of C. */
typedef uint32_t sass_words[16];

static inline uint32_t sass_element(const sass_words *lanes, int first, int row_or_column, int of_a, uint32_t k, uint32_t bits) {
  const uint32_t each = 32 / bits, half = k / (4 * each), lane = (uint32_t)(row_or_column % 8) * 4 + k / each % 4;
  const uint32_t word = lanes[lane][first + (of_a ? 2 * (int)half + row_or_column / 8 : (int)half)];
  return bits == 32 ? word : word >> (k % each * bits) & ((1u << bits) - 1);
}

/* A value of a byte's container (PTX ISA, "Packing for .kind::f8f6f4"): four bits are in its middle. */
static inline uint32_t sass_contained(uint32_t value, uint32_t bits, uint32_t format) {
  return bits == 8 && format == SASS_E2M1 ? value >> 2 & 15u : format == SASS_TF32 ? value >> 13 : value;
}

static inline uint32_t sass_accumulator(const sass_words *lanes, int first, int row, int column, uint32_t format) {
  const sass_words *lane = &lanes[row % 8 * 4 + column / 2];
  if (format != SASS_F16) return (*lane)[first + row / 8 * 2 + column % 2];
  return (*lane)[first + row / 8] >> (16 * (column % 2)) & 0xffffu;
}

static inline void sass_accumulate(sass_words *results, int row, int column, uint32_t format, uint32_t value) {
  sass_words *lane = &results[row % 8 * 4 + column / 2];
  if (format != SASS_F16) {
    (*lane)[row / 8 * 2 + column % 2] = value;
  } else {
    uint32_t *word = &(*lane)[row / 8];
    *word = column % 2 ? (*word & 0xffffu) | value << 16 : (*word & 0xffff0000u) | value;
  }
}

/* Scales of a row of A, or of a column of B: the byte of a block of values. `select` chooses among the bytes and the
 * threads of a quad that hold them (PTX ISA, "Block scaling for mma.sync"). */
struct sass_scales {
  uint32_t count, e8m0;          /* of a row: 1, 2 or 4; whether they are powers of two */
  uint32_t byte_a, thread_a, byte_b, thread_b;
  int at;                        /* first register of the scales */
};
static inline uint32_t sass_scale(const sass_words *lanes, const struct sass_scales *scales, int row_or_column, int of_a, uint32_t block) {
  const uint32_t quad = (uint32_t)(row_or_column % 8) * 4;
  const uint32_t lane = of_a ? quad + 2 * scales->thread_a + (uint32_t)row_or_column / 8 : quad + scales->thread_b;
  const uint32_t first = of_a ? scales->byte_a : scales->byte_b;
  return lanes[lane][scales->at + !of_a] >> 8 * (first + block) & 255u;
}
static inline struct sass_number sass_scale_number(uint32_t byte, uint32_t e8m0) {
  struct sass_number number = {8, (int16_t)((int)byte - 127), byte == 255, 0};
  return e8m0 ? number : sass_decoded(byte & 127u, SASS_E4M3);
}

/* D = A * B + C. Registers in `given` are those of A (rows twice 8), of B, of C, and of the scales. */
static inline void sass_multiply(const struct sass_mma *mma, const struct sass_scales *scales, const sass_words *given,
                                 sass_words *results) {
  const uint32_t each = 32 / mma->bits, halves = mma->k / (4 * each) ? mma->k / (4 * each) : 1;
  const int of_b = 2 * (int)halves, of_c = of_b + (int)halves;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      uint32_t result = sass_accumulator(given, of_c, row, column, mma->c);
      for (uint32_t part = 0; part < mma->parts; ++part) {
        struct sass_sum sum = {.count = 0};
        sass_addend(&sum, result, (enum sass_format)mma->c);
        const uint32_t from = part * mma->k / mma->parts, to = (part + 1) * mma->k / mma->parts;
        if (scales && mma->bits == 4) {
          for (uint32_t first = from; first < to; first += 16) {
            int64_t exact = 0; /* in units of 1/4 */
            for (uint32_t k = first; k < first + 16; ++k) {
              static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
              exact += twice[sass_element(given, 0, row, 1, k, 4)] * twice[sass_element(given, of_b, column, 0, k, 4)];
            }
            const uint32_t block = first * scales->count / mma->k;
            const struct sass_number a = sass_scale_number(sass_scale(given, scales, row, 1, block), scales->e8m0);
            const struct sass_number b = sass_scale_number(sass_scale(given, scales, column, 0, block), scales->e8m0);
            sum.nan |= a.nan | b.nan;
            sass_term(&sum, exact * a.significand * b.significand, a.exponent + b.exponent, 2 + 3 + 3);
          }
        } else {
          for (uint32_t k = from; k < to; ++k) {
            int scale = 0;
            if (scales) {
              const uint32_t block = k * scales->count / mma->k;
              const struct sass_number a = sass_scale_number(sass_scale(given, scales, row, 1, block), scales->e8m0);
              const struct sass_number b = sass_scale_number(sass_scale(given, scales, column, 0, block), scales->e8m0);
              sum.nan |= a.nan | b.nan;
              scale = a.exponent + b.exponent;
            }
            sass_product(&sum, sass_contained(sass_element(given, 0, row, 1, k, mma->bits), mma->bits, mma->a),
                         (enum sass_format)mma->a,
                         sass_contained(sass_element(given, of_b, column, 0, k, mma->bits), mma->bits, mma->b),
                         (enum sass_format)mma->b, scale);
          }
        }
        result = sass_total(&sum, (int)mma->aligned, (enum sass_format)mma->c, mma->c == SASS_F16 ? 10 : (int)mma->kept);
      }
      sass_accumulate(results, row, column, mma->c, result);
    }
  }
}

/* The same of integers of eight bits: exact, modulo 2^32, or limited to 32 bits. */
static inline void sass_multiply_integers(uint32_t k, int a_signed, int b_signed, int saturate, const sass_words *given,
                                          sass_words *results) {
  const int halves = (int)(k / 16), of_b = 2 * halves, of_c = of_b + halves;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int64_t total = (int32_t)sass_accumulator(given, of_c, row, column, SASS_F32);
      for (uint32_t at = 0; at < k; ++at) {
        const uint32_t a = sass_element(given, 0, row, 1, at, 8), b = sass_element(given, of_b, column, 0, at, 8);
        total += (int64_t)(a_signed ? (int8_t)a : (int)a) * (b_signed ? (int8_t)b : (int)b);
      }
      if (saturate) total = total > INT32_MAX ? INT32_MAX : total < INT32_MIN ? INT32_MIN : total;
      sass_accumulate(results, row, column, SASS_F32, (uint32_t)total);
    }
  }
}

#endif
