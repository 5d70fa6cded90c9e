// Inputs for a probe on a GPU, and the digest of what it stored: the same as the host's sweep makes.
// Group g of `groups` holds one call's values: lane j gets the bits g + (j + g / 1024) % lanes * groups.

#include <cstdint>

extern "C" __global__ void fill(
    uint8_t* source, uint64_t first, uint64_t count, uint64_t stride, uint64_t groups, uint64_t lanes, uint64_t bytes) {
  uint64_t const threads = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t k = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count * lanes; k += threads) {
    uint64_t const group = first + k / lanes * stride;
    uint64_t const bits = group + (k % lanes + (group >> 10)) % lanes * groups;
    if (bytes == 2) {
      reinterpret_cast<uint16_t*>(source)[k] = static_cast<uint16_t>(bits);
    } else {
      reinterpret_cast<uint32_t*>(source)[k] = static_cast<uint32_t>(bits);
    }
  }
}

__device__ uint64_t mix(uint64_t z) {  // the finalizer of splitmix64
  z ^= z >> 30;
  z *= 0xbf58476d1ce4e5b9u;
  z ^= z >> 27;
  z *= 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

extern "C" __global__ void digest(
    uint8_t const* result, uint64_t first, uint64_t count, uint64_t stride, uint64_t bytes, unsigned long long* sum) {
  uint64_t const threads = (uint64_t)gridDim.x * blockDim.x;
  unsigned long long own = 0;
  for (uint64_t k = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count; k += threads) {
    uint64_t const group = first + k * stride;
    for (uint64_t word = 0; 4 * word < bytes; ++word) {
      uint32_t bits = 0;
      for (uint64_t byte = 4 * word; byte < bytes && byte < 4 * word + 4; ++byte) {
        bits |= static_cast<uint32_t>(result[k * bytes + byte]) << 8 * (byte - 4 * word);
      }
      own += mix((group << 32 | bits) + word * 0x9e3779b97f4a7c15u);
    }
  }
  atomicAdd(sum, own);
}
