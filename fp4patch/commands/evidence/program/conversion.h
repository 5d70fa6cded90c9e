// The records of a conversion in the order in which a kernel gets them, what each of them must become, and the digest of
// all results. Compiled for the GPU by check.cu, and for the host by evidence.c and by the tool of the expected digests.
#ifndef FP4PATCH_CONVERSION_H
#define FP4PATCH_CONVERSION_H

#include <stdint.h>

#ifdef __CUDACC__
#define FUNCTION static __device__ __forceinline__
#define TABLE static __constant__
#else
#define FUNCTION static inline
#define TABLE static const
#endif

enum format { FLOAT32, FLOAT16, BFLOAT16, E2M1, E2M3, E3M2 };

struct conversion {
  uint32_t input, output, lanes, stochastic;
  uint32_t space;  // the number of records, as a power of two
};

// From the specification, in bits of float32: the least magnitude of each code above 0, and the value of each code.
#include "tables.h"

FUNCTION uint32_t bits_of_format(uint32_t format) { return format == FLOAT32 ? 32 : format < E2M1 ? 16 : format == E2M1 ? 4 : 6; }

// Bits that a value takes in memory: FP6 has a byte of its own.
FUNCTION uint32_t stored_bits(uint32_t format) { return format > E2M1 ? 8 : bits_of_format(format); }

FUNCTION uint32_t bytes_of_values(uint32_t format, uint32_t lanes) { return (stored_bits(format) * lanes + 7) / 8; }

// Behind the values, stochastic rounding has a word of random bytes for four of them.
FUNCTION uint32_t input_bytes(const struct conversion *c) {
  return bytes_of_values(c->input, c->lanes) + (c->stochastic ? (c->lanes + 3) / 4 * 4 : 0);
}

FUNCTION uint32_t output_bytes(const struct conversion *c) { return bytes_of_values(c->output, c->lanes); }

// The place of a record's lane among all inputs. Each lane of floats gets every place once, and its neighbours then have
// distant ones. Records of narrow codes are all combinations of them.
FUNCTION uint64_t place_of(const struct conversion *c, uint64_t record, uint32_t lane) {
  if (c->input >= E2M1) return record >> bits_of_format(c->input) * lane & ((1u << bits_of_format(c->input)) - 1);
  return (record + lane * 0x9e3779b1ull) & ((1ull << c->space) - 1);
}

FUNCTION uint32_t input_of(const struct conversion *c, uint64_t record, uint32_t lane) {
  const uint64_t place = place_of(c, record, lane);
  return (uint32_t)(c->input == FLOAT32 ? place : place & 0xffff);
}

// The bits of a float32 that has the value of a half or a bfloat16; NaN stays NaN and keeps its sign.
FUNCTION uint32_t widened(uint32_t format, uint32_t bits) {
  if (format == FLOAT32) return bits;
  if (format == BFLOAT16) return bits << 16;
  const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31;
  uint32_t fraction = bits & 0x3ff, shift = 0;
  if (exponent == 31) return sign | 0x7f800000 | fraction << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  while (!(fraction & 0x400)) fraction <<= 1, ++shift;
  return sign | (113 - shift) << 23 | (fraction & 0x3ff) << 13;
}

FUNCTION int is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

FUNCTION uint32_t magnitude_bits(float value) {
  union { float value; uint32_t bits; } both;
  both.value = value;
  return both.bits;
}

// To nearest, ties to even, saturated; every NaN becomes the greatest code, without a sign.
FUNCTION uint32_t nearest(uint32_t format, uint32_t bits) {
  const uint32_t codes = format == E2M1 ? 8 : 32, magnitude = bits & 0x7fffffff;
  if (is_nan(bits)) return codes - 1;
  uint32_t code = 0;
  if (format == E2M1) {
    for (uint32_t k = 0; k < 7; ++k) code += magnitude >= e2m1_from[k];
  } else {
    for (uint32_t k = 0; k < 31; ++k) code += magnitude >= (format == E2M3 ? e2m3_from[k] : e3m2_from[k]);
  }
  return code | (bits >> 31 ? codes : 0);
}

// A value goes up to the next code if it is not below it by more than random / 256 of the step. Exact in float32.
FUNCTION uint32_t stochastic(uint32_t bits, uint32_t random) {
  if (is_nan(bits)) return 7;
  uint32_t code = 0;
  for (uint32_t k = 1; k < 8; ++k) {
    const float step = k < 5 ? 0.5f : k < 7 ? 1.0f : 2.0f, value = k < 5 ? k * 0.5f : k == 5 ? 3.0f : k == 6 ? 4.0f : 6.0f;
    code += (bits & 0x7fffffff) >= magnitude_bits(value - random * (step / 256));
  }
  return code | (bits >> 31 ? 8 : 0);
}

// All 256 bytes with each 16-bit float. With each float32 four of them: 0, 255, the least one that changes the result, and
// the one before it.
FUNCTION uint32_t random_of(const struct conversion *c, uint64_t record, uint32_t lane) {
  const uint64_t place = place_of(c, record, lane);
  if (c->input != FLOAT32) return (uint32_t)(place >> 16) & 255;
  const uint32_t bits = (uint32_t)place, choice = (uint32_t)(place >> 32), down = stochastic(bits, 0);
  if (choice == 0) return 0;
  if (choice == 3 || stochastic(bits, 255) == down) return 255;
  uint32_t low = 0, high = 255;  // the result of `low` is that of 0, and the result of `high` is not
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (stochastic(bits, middle) == down) low = middle; else high = middle;
  }
  return choice == 1 ? low : high;
}

// Value 0 is the instruction's lowest nibble and has the low byte; values 1, 2 and 3 have bytes 2, 1 and 3.
FUNCTION uint32_t random_word(const struct conversion *c, uint64_t record, uint32_t lane) {
  uint32_t word = 0;
  for (uint32_t k = 0; k < 4; ++k) word |= random_of(c, record, lane + k) << (k == 1 ? 16 : k == 2 ? 8 : 8 * k);
  return word;
}

FUNCTION uint32_t expected_of(const struct conversion *c, uint64_t record, uint32_t lane) {
  const uint32_t in = input_of(c, record, lane);
  if (c->input < E2M1) {
    const uint32_t bits = widened(c->input, in);
    return c->stochastic ? stochastic(bits, random_of(c, record, lane)) : nearest(c->output, bits);
  }
  const uint32_t bits = c->input == E2M1 ? e2m1_value[in] : c->input == E2M3 ? e2m3_value[in] : e3m2_value[in];
  if (c->output == FLOAT32) return bits;
  if (c->output == BFLOAT16) return bits >> 16;
  return (bits >> 16 & 0x8000) | (bits & 0x7fffffff ? (bits & 0x7fffffff) - (112u << 23) : 0) >> 13;
}

// One of the little-endian words of a record as it is stored; bits that no value takes are 0.
FUNCTION uint32_t expected_word(const struct conversion *c, uint64_t record, uint32_t word) {
  const uint32_t bits = stored_bits(c->output), first = 32 / bits * word;
  uint32_t all = 0;
  for (uint32_t k = 0; k < 32 / bits && first + k < c->lanes; ++k) all |= expected_of(c, record, first + k) << bits * k;
  return all;
}

// The digest is the sum of this over all words of all records.
FUNCTION uint64_t mixed(uint64_t record, uint32_t content, uint32_t word) {
  uint64_t z = record * 0x9e3779b97f4a7c15ull + content * 0xd6e8feb86659fd93ull + word * 0xa0761d6478bd642full;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// --- what both kernels do with one record ----------------------------------------------------------------------------

FUNCTION void put(uint8_t *at, uint32_t bytes, uint32_t value) {
  if (bytes == 4) *(uint32_t *)at = value;
  else if (bytes == 2) *(uint16_t *)at = (uint16_t)value;
  else *at = (uint8_t)value;
}

// Writes a lane of a record; `first` is the record at the beginning of the buffer.
FUNCTION void fill_lane(const struct conversion *c, uint64_t first, uint32_t at, uint32_t lane, uint8_t *buffer) {
  uint8_t *const here = buffer + (uint64_t)at * input_bytes(c);
  const uint64_t record = first + at;
  if (c->input == E2M1) {
    if (lane % 2 == 0) {
      const uint32_t above = lane + 1 < c->lanes ? input_of(c, record, lane + 1) : 0;
      here[lane / 2] = (uint8_t)(input_of(c, record, lane) | above << 4);
    }
    return;
  }
  const uint32_t bytes = stored_bits(c->input) / 8;
  put(here + lane * bytes, bytes, input_of(c, record, lane));
  if (c->stochastic && lane % 4 == 0) put(here + c->lanes * bytes + lane, 4, random_word(c, record, lane));
}

struct found {
  uint64_t digest, wrong, nan_signs, lowest;  // lowest: record * 32 + lane of the first wrong value
};

FUNCTION void compare_record(const struct conversion *c, uint64_t first, uint32_t at, const uint8_t *buffer, struct found *found) {
  const uint32_t size = output_bytes(c), bits = stored_bits(c->output), each = 32 / bits;
  const uint8_t *const here = buffer + (uint64_t)at * size;
  const uint64_t record = first + at;
  for (uint32_t word = 0; word * 4 < size; ++word) {
    uint32_t got = 0;
    if (size % 4 == 0) {
      got = ((const uint32_t *)here)[word];
    } else {
      for (uint32_t k = 0; k < 4 && word * 4 + k < size; ++k) got |= (uint32_t)here[word * 4 + k] << 8 * k;
    }
    const uint32_t wanted = expected_word(c, record, word);
    if (got != wanted) {
      const uint32_t sign = c->output < E2M1 ? 0 : 1u << (bits_of_format(c->output) - 1);
      for (uint32_t k = 0; k < each; ++k) {
        const uint32_t lane = word * each + k, difference = (got ^ wanted) >> bits * k & (uint32_t)((1ull << bits) - 1);
        if (difference == 0) continue;
        if (difference == sign && lane < c->lanes && c->input < E2M1 && is_nan(widened(c->input, input_of(c, record, lane)))) {
          ++found->nan_signs;  // counted apart, and not part of the digest: some variants leave the sign of NaN free
          got ^= sign << bits * k;
          continue;
        }
        ++found->wrong;
        const uint64_t where = record * 32 + lane;
        if (where < found->lowest) found->lowest = where;
      }
    }
    found->digest += mixed(record, got, word);
  }
}

#endif
