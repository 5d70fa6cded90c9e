// tensormap.replace: a copy of a tensor map in shared memory gets another tensor, is copied to global memory, and a box is
// loaded by it. What both maps are but for their addresses is a result, too. It needs sm_90a.
#include <cstdint>

struct alignas(64) Map {
  uint32_t words[32];
};

extern "C" __global__ void probe(int const* places, uint32_t* results, Map* maps, uint8_t const* other, __grid_constant__ Map const from) {
  extern __shared__ __align__(1024) uint8_t box[];
  __shared__ __align__(128) Map map;
  __shared__ __align__(8) uint64_t ready;
  uint32_t const at = static_cast<uint32_t>(__cvta_generic_to_shared(box)), bar = static_cast<uint32_t>(__cvta_generic_to_shared(&ready));
  uint32_t const made = static_cast<uint32_t>(__cvta_generic_to_shared(&map));
  int const thread = threadIdx.x, x = places[2 * blockIdx.x], y = places[2 * blockIdx.x + 1];
  uint32_t const lines = 8 + blockIdx.x % 2 * 8, bytes = lines * LINE, columns = WIDTH - 16 / SIZE * (blockIdx.x % 3);
  uint32_t const pitch = 208 - 16 * (blockIdx.x % 4), rows = 40 - blockIdx.x;
  uint32_t *const out = results + blockIdx.x * (16 * LINE / 4 + 64);
  map.words[thread] = from.words[thread];
  if (thread == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
  __syncwarp();
  if (thread == 0) {
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(made), "l"(other + 16 * blockIdx.x) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(made), "r"(columns) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(made), "r"(rows) : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(made), "l"(uint64_t{pitch}) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(made), "r"(lines) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(made), "r"(1u) : "memory");
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], %1;" ::"r"(made), "n"(SWIZZLE) : "memory");
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], %1;" ::"r"(made), "n"(TYPE) : "memory");
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(made) : "memory");
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(made) : "memory");
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(made) : "memory");
  }
  __syncwarp();
  for (int word = thread; word < 60; word += 32) out[word] = word < 30 ? from.words[2 + word] : map.words[word - 28];
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(maps + blockIdx.x), "r"(made) : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(maps + blockIdx.x) : "memory");
  if (thread == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at),
                 "l"(maps + blockIdx.x), "r"(x), "r"(y), "r"(bar)
                 : "memory");
  }
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  for (uint32_t k = thread; k < bytes / 4; k += 32) out[64 + k] = reinterpret_cast<uint32_t*>(box)[k];
  maps[blockIdx.x].words[thread] = 0;
}
