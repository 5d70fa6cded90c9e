// Operands for operations of two and three, from one word x that goes through all 2^32. The second is often special:
// equal to the first, its negative, a zero, an infinity, a NaN, a subnormal, a small integer; else it is a hash.
#pragma once

#include <cstdint>

__device__ __forceinline__ uint32_t hash(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__device__ __forceinline__ uint32_t second(uint32_t x) {
  uint32_t const h = hash(x);
  uint32_t b = h;
  uint32_t const kind = hash(h + 1) & 31;
  b = kind == 0 ? x : b;
  b = kind == 1 ? x ^ 0x80000000u : b;
  b = kind == 2 ? 0u : b;
  b = kind == 3 ? 0x80000000u : b;
  b = kind == 4 ? 0x7f800000u : b;
  b = kind == 5 ? 0xff800000u : b;
  b = kind == 6 ? 0x7f800001u | h : b;       // a NaN of any payload and sign
  b = kind == 7 ? h & 0x807fffffu : b;       // a subnormal
  b = kind == 8 ? h & 63u : b;
  b = kind == 9 ? 0u - (h & 63u) : b;
  b = kind == 10 ? x + 1u : b;
  b = kind == 11 ? 0x3f800000u : b;
  b = kind == 12 ? x ^ 0x80008000u : b;      // the negatives of two halves
  b = kind == 13 ? 0x7c00fc00u : b;
  b = kind == 14 ? 0x7c017e00u | (h & 0x80008000u) : b;
  b = kind == 15 ? h & 0x83ff83ffu : b;
  b = kind == 16 ? (x & 0xff800000u) ^ (h & 0x80ffffffu) : b;  // a neighbouring exponent
  return b;
}

__device__ __forceinline__ uint32_t third(uint32_t x) { return second(hash(x) ^ 0x5bd1e995u); }

template <int N>
struct alignas(N == 2 ? 8 : N == 1 ? 4 : 16) Words {
  uint32_t word[N];
};

#define PROBE(N)                                                                      \
  __device__ __forceinline__ void run(uint32_t x, uint32_t (&out)[N]);                \
  extern "C" __global__ void probe(uint32_t const* source, Words<N>* result) {        \
    int const i = blockIdx.x * blockDim.x + threadIdx.x;                              \
    Words<N> words;                                                                   \
    run(source[i], words.word);                                                       \
    result[i] = words;                                                                \
  }                                                                                   \
  __device__ __forceinline__ void run(uint32_t x, uint32_t (&out)[N])
