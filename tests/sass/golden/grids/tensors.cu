// cp.async.bulk.tensor: a box of a tensor to shared memory and back to another tensor, also beyond its edges. A GPU calls
// it an illegal instruction where a line does not begin at a multiple of 16 bytes, and a store before the tensor's begin.
#include <cstdint>

struct alignas(64) Map {
  uint8_t bytes[128];
};

extern "C" __global__ void probe(int const* places, uint32_t* results, __grid_constant__ Map const from, __grid_constant__ Map const to) {
  extern __shared__ __align__(1024) uint8_t shared[];
  __shared__ __align__(8) uint64_t ready;
  uint32_t const at = static_cast<uint32_t>(__cvta_generic_to_shared(shared)), bar = static_cast<uint32_t>(__cvta_generic_to_shared(&ready));
  int const thread = threadIdx.x, x = places[2 * blockIdx.x], y = places[2 * blockIdx.x + 1];
  for (int k = thread; k < BYTES / 4; k += blockDim.x) reinterpret_cast<uint32_t*>(shared)[k] = 0xdeadbeef;
  if (thread == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "n"(BYTES) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                 "l"(&from), "r"(x), "r"(y), "r"(bar)
                 : "memory");
  }
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  for (int k = thread; k < BYTES / 4; k += blockDim.x) {
    results[blockIdx.x * (BYTES / 4) + k] = reinterpret_cast<uint32_t*>(shared)[k];
    reinterpret_cast<uint32_t*>(shared)[k] ^= 0x01010101;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    int const column = x < 0 ? 0 : x, row = 64 * blockIdx.x + (y < 0 ? 0 : y);
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(column), "r"(row), "r"(at)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
