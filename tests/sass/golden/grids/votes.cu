// vote, match and redux of all threads of a warp and of some, and the bits of words.
#include <cstdint>

__device__ void reduced(uint32_t mask, uint32_t a, uint32_t b, uint32_t* r) {
  r[0] = __ballot_sync(mask, a & 1);
  r[1] = __any_sync(mask, (a & 7) == 0);
  r[2] = __all_sync(mask, a & 0x80ff);
  int inside;
  r[3] = __match_any_sync(mask, a & 3);
  r[4] = __match_all_sync(mask, b & 1, &inside);
  r[5] = inside;
  r[6] = __reduce_add_sync(mask, a);
  r[7] = __reduce_min_sync(mask, a);
  r[8] = __reduce_max_sync(mask, static_cast<int>(b));
  r[9] = __reduce_min_sync(mask, static_cast<int>(a));
  r[10] = __reduce_and_sync(mask, a | b);
  r[11] = __reduce_or_sync(mask, a & b & 0x11111111);
  r[12] = __reduce_xor_sync(mask, b);
  r[13] = __popc(a) + 64 * __clz(b >> (a & 31)) + 65536 * __ffs(b << (a & 31));
  r[14] = __brev(a);
  r[15] = __activemask();
}

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t const a = values[2 * i], b = values[2 * i + 1];
  uint32_t r[16];
  if (blockIdx.x % 2) {
    reduced(0xffffffff, a, b, r);
  } else if (threadIdx.x % 32 < 11) {
    reduced(0x000007ff, a, b, r);
  } else {
    reduced(0xfffff800, b, a, r);
  }
  for (int k = 0; k < 16; ++k) {
    results[16 * i + k] = r[k];
  }
}
