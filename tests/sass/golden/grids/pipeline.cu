// A producer and two consumer warps with a ring of buffers: mbarriers that are full and empty, and named barriers.
#include <cstdint>

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L; }" ::"r"(bar), "r"(parity) : "memory");
}
__device__ void arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory"); }

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results, int rounds) {
  constexpr int kStages = 3;
  __shared__ uint32_t buffer[kStages][64];
  __shared__ __align__(8) uint64_t bars[2 * kStages];
  uint32_t const at = static_cast<uint32_t>(__cvta_generic_to_shared(bars));
  int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at + 16 * s) : "memory");
      asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at + 16 * s + 8) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  uint32_t sum = lane;
  if (warp == 0) {
    for (int k = 0; k < rounds; ++k) {
      int const s = k % kStages, turn = k / kStages;
      wait(at + 16 * s + 8, (turn & 1) ^ 1);
      for (int j = lane; j < 64; j += 32) buffer[s][j] = values[(blockIdx.x * rounds + k) * 64 + j];
      arrive(at + 16 * s);
    }
    asm volatile("bar.sync 2, 96;" ::: "memory");
  } else {
    for (int k = 0; k < rounds; ++k) {
      int const s = k % kStages, turn = k / kStages;
      wait(at + 16 * s, turn & 1);
      sum = sum * 31 + buffer[s][32 * (warp - 1) + lane] + __shfl_xor_sync(~0u, sum, 1 + k % 31);
      arrive(at + 16 * s + 8);
    }
    asm volatile("bar.sync 1, 64;" ::: "memory");
    asm volatile("bar.arrive 2, 96;" ::: "memory");
  }
  results[blockIdx.x * 96 + threadIdx.x] = sum;
}
