// cp.async of each size, with and without zeros, in groups and with an mbarrier; cp.async.bulk both ways.
#include <cstdint>

extern "C" __global__ void probe(uint8_t const* values, uint32_t* results) {
  __shared__ __align__(128) uint8_t shared[4096];
  __shared__ __align__(8) uint64_t ready;
  uint32_t const at = static_cast<uint32_t>(__cvta_generic_to_shared(shared)), bar = static_cast<uint32_t>(__cvta_generic_to_shared(&ready));
  int const thread = threadIdx.x;
  uint8_t const* from = values + 4096 * blockIdx.x;
  if (thread == 0) asm volatile("mbarrier.init.shared.b64 [%0], 65;" ::"r"(bar) : "memory");
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 16 * thread), "l"(from + 16 * (63 - thread)) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at + 1024 + 8 * thread), "l"(from + 8 * thread),
               "r"(thread % 3 ? 8 : 0)
               : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at + 1536 + 4 * thread), "l"(from + 1000 + 4 * thread) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  uint32_t const first = *reinterpret_cast<uint32_t*>(shared + 16 * thread);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 1792 + 16 * thread), "l"(from + 2048 + 16 * thread) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
  if (thread == 5) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" ::"r"(bar) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(at + 2816),
                 "l"(from + 512), "r"(bar)
                 : "memory");
  }
  uint32_t done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
  }
  uint32_t* to = results + 2048 * blockIdx.x;
  for (int k = 0; k < 13; ++k) to[64 * k + thread] = reinterpret_cast<uint32_t*>(shared)[64 * k + thread];
  to[832 + thread] = first;
  __syncthreads();
  if (thread == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(to + 1024), "r"(at + 256) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
