// IADD3 with carries, IMAD in its forms, LEA, LOP3 with and without a predicate, 64-bit sums and products.
#include "operands.cuh"

#define LOP(d, table) asm("lop3.b32 %0, %1, %2, %3, " #table ";" : "=r"(d) : "r"(x), "r"(y), "r"(z))

PROBE(16) {
  uint32_t const y = second(x), z = third(x);
  uint64_t const p = (uint64_t)y << 32 | x, q = (uint64_t)x << 32 | z;
  uint64_t const sum = p + q, difference = p - q;
  out[0] = (uint32_t)sum;
  out[1] = (uint32_t)(sum >> 32);
  out[2] = (uint32_t)difference ^ (uint32_t)(difference >> 32);
  int64_t const wide = (int64_t)(int)x * (int)y + (int64_t)q;
  uint64_t const unsigned_wide = (uint64_t)x * y + q;
  out[3] = (uint32_t)wide ^ (uint32_t)(wide >> 32) * 3u;
  out[4] = (uint32_t)unsigned_wide ^ (uint32_t)(unsigned_wide >> 32) * 3u;
  out[5] = x * y - z;
  out[6] = x + (y << 7);
  uint64_t const scaled = p + ((int64_t)(int)z << 3), unsigned_scaled = q + ((uint64_t)y << 5);
  out[7] = (uint32_t)scaled ^ (uint32_t)(scaled >> 32) * 3u;
  out[8] = (uint32_t)unsigned_scaled ^ (uint32_t)(unsigned_scaled >> 32) * 3u;
  uint32_t l0, l1, l2, l3;
  LOP(l0, 0xe2);
  LOP(l1, 0x96);
  LOP(l2, 0x1b);
  LOP(l3, 0xd8);
  out[9] = l0 ^ l1 * 3u;
  out[10] = l2 ^ l3 * 3u;
  out[11] = ((x & y & 0xff) == 0 ? x : z) + ((x | z) == y ? 1 : 0);
  out[12] = x - 0x7f + ((x & 0x600000) == 0x600000 && y & 1 || !(z & 4) ? y : 1);
  out[13] = (uint32_t)((p << 13 | p >> 51) >> 7);
  out[14] = (uint32_t)((int64_t)q >> (y & 63));
  out[15] = __umulhi(x, 10u) + x / 4u - y * 5u;
}
