// Atomic operations whose result does not depend on their order, in global and in shared memory, and of one thread alone.
#include <cstdint>

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results) {
  __shared__ uint32_t own[8];
  int const thread = threadIdx.x;
  uint32_t const a = values[blockIdx.x * blockDim.x + thread];
  if (thread < 8) own[thread] = thread == 1 ? ~0u : 0;
  __syncthreads();
  uint32_t* to = results + 64 * (blockIdx.x % 4);
  atomicAdd(to + 0, a);
  atomicMin(to + 1, ~a & 0x7fffffff);
  atomicMax(to + 2, a);
  atomicMin(reinterpret_cast<int*>(to + 3), static_cast<int>(a));
  atomicMax(reinterpret_cast<int*>(to + 4), static_cast<int>(a));
  atomicAnd(to + 5, a | 0xff);
  atomicOr(to + 6, a & 0x10101010);
  atomicXor(to + 7, a);
  atomicAdd(own + 0, a);
  atomicMin(own + 1, a);
  atomicMax(own + 2, a);
  atomicMax(reinterpret_cast<int*>(own + 3), static_cast<int>(a));
  atomicOr(own + 4, 1u << (a & 31));
  atomicXor(own + 5, a);
  atomicCAS(own + 6, 0u, 7u);
  atomicExch(own + 7, 9u);
  __syncthreads();
  if (thread < 8) atomicAdd(to + 8 + thread, own[thread]);
  if (thread == 0) {
    uint32_t* alone = results + 256 + 16 * blockIdx.x;
    alone[0] = atomicAdd(alone + 8, a);
    alone[1] = atomicCAS(alone + 8, a, 5u);
    alone[2] = atomicExch(alone + 8, a);
    alone[3] = atomicMax(alone + 9, a);
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(alone + 10), "f"(__uint_as_float(a)) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(alone + 10), "f"(0.3f) : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(alone + 11), "r"(a) : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(alone + 11), "r"(0x3c013555) : "memory");
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(alone + 12), "r"(a) : "memory");
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(alone + 12), "r"(0x3f813f01) : "memory");
  }
}
