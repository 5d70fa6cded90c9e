// FSETP in every relation, ISETP in every relation and width, SEL, FSEL; minimum and maximum of integers.
#include "operands.cuh"

#define BIT(type, constraint, relation, a, b)                                                          \
  {                                                                                                    \
    uint32_t bit;                                                                                      \
    asm("{\n.reg .pred p;\nsetp." relation "." type " p, %1, %2;\nselp.u32 %0, 1, 0, p;\n}"            \
        : "=r"(bit) : constraint(a), constraint(b));                                                   \
    bits = bits << 1 | bit;                                                                            \
  }
#define SIX(type, constraint, a, b)                                                                    \
  BIT(type, constraint, "lt", a, b) BIT(type, constraint, "eq", a, b) BIT(type, constraint, "le", a, b) \
  BIT(type, constraint, "gt", a, b) BIT(type, constraint, "ne", a, b) BIT(type, constraint, "ge", a, b)
#define FLOATS(type, a, b)                                                                             \
  SIX(type, "f", a, b)                                                                                 \
  BIT(type, "f", "ltu", a, b) BIT(type, "f", "equ", a, b) BIT(type, "f", "leu", a, b)                  \
  BIT(type, "f", "gtu", a, b) BIT(type, "f", "neu", a, b) BIT(type, "f", "geu", a, b)                  \
  BIT(type, "f", "num", a, b) BIT(type, "f", "nan", a, b)

PROBE(8) {
  uint32_t const y = second(x), z = third(x);
  float const a = __uint_as_float(x), b = __uint_as_float(y);
  uint32_t bits = 0;
  FLOATS("f32", a, b)
  FLOATS("ftz.f32", a, b)
  out[0] = bits;
  bits = 0;
  SIX("s32", "r", x, y)
  SIX("u32", "r", x, y)
  uint64_t const p = (uint64_t)x << 32 | z, q = (uint64_t)(z & 1 ? x : y) << 32 | (z & 2 ? z : y);
  SIX("s64", "l", p, q)
  SIX("u64", "l", p, q)
  out[1] = bits;
  out[2] = min((int)x, (int)y);
  out[3] = max((int)x, (int)y);
  out[4] = min(x, y);
  out[5] = max(x, y);
  // Predicates joined, and sources of a selection with signs and bars.
  bool const first = a < b, second_ = (int)z > 5 && a == a, third_ = first != second_ || y > z;
  out[6] = __float_as_uint(third_ ? -fabsf(a) : b) ^ (first && !second_ ? 3u : 5u);
  out[7] = (first & second_) | ((second_ ^ third_) << 1) | ((!first | (third_ & second_)) << 2);
}
