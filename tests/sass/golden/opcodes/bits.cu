// SHF in its forms, with counts beyond 32; PRMT with known and computed selectors.
#include "operands.cuh"

#define SHF(name, d, count) asm(name " %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(count))

PROBE(20) {
  uint32_t const y = second(x), z = third(x), count = z & 4 ? z : z >> 8 & 63;
  SHF("shf.l.wrap.b32", out[0], count);
  SHF("shf.r.wrap.b32", out[1], count);
  SHF("shf.l.clamp.b32", out[2], count);
  SHF("shf.r.clamp.b32", out[3], count);
  asm("shl.b32 %0, %1, %2;" : "=r"(out[4]) : "r"(x), "r"(count));
  asm("shr.u32 %0, %1, %2;" : "=r"(out[5]) : "r"(x), "r"(count));
  asm("shr.s32 %0, %1, %2;" : "=r"(out[6]) : "r"(x), "r"(count));
  SHF("shf.l.wrap.b32", out[7], 4);
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out[8]) : "r"(x), "r"(y), "r"(z));
  out[9] = __byte_perm(x, y, 0x7531);
  out[10] = __byte_perm(x, y, 0x7604);
  out[11] = __byte_perm(x, y, 0x0e4b & 0x7777);
  asm("prmt.b32 %0, %1, %2, 0x9bd8;" : "=r"(out[12]) : "r"(x), "r"(y));
  out[13] = x >> 5 ^ (uint32_t)((int)y >> 9);
  out[14] = (x & 0xffff) << 16 | y >> 16;
  out[15] = (uint32_t)(int)(signed char)(x >> 8) + (uint32_t)(int)(short)y;
  uint64_t const pair = (uint64_t)y << 32 | x;
  uint64_t l, r, s;
  asm("shl.b64 %0, %1, %2;" : "=l"(l) : "l"(pair), "r"(count));
  asm("shr.u64 %0, %1, %2;" : "=l"(r) : "l"(pair), "r"(count));
  asm("shr.s64 %0, %1, %2;" : "=l"(s) : "l"(pair), "r"(count));
  out[16] = (uint32_t)l ^ (uint32_t)r;
  out[17] = (uint32_t)(l >> 32);
  out[18] = (uint32_t)(r >> 32) ^ (uint32_t)s;
  out[19] = (uint32_t)(s >> 32);
}
