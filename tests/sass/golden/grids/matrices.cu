// ldmatrix, stmatrix and movmatrix: one, two and four matrices, plain and transposed, at rows in any order.
#include <cstdint>

#define LOAD1(t, r, at) asm volatile("ldmatrix.sync.aligned.m8n8.x1" t ".shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory")
#define LOAD2(t, r, at) \
  asm volatile("ldmatrix.sync.aligned.m8n8.x2" t ".shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory")
#define LOAD4(t, r, at)                                                              \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" t ".shared.b16 {%0, %1, %2, %3}, [%4];" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                      \
               : "r"(at)                                                             \
               : "memory")
#define STORE1(t, r, at) asm volatile("stmatrix.sync.aligned.m8n8.x1" t ".shared.b16 [%1], {%0};" ::"r"(r[0]), "r"(at) : "memory")
#define STORE2(t, r, at) \
  asm volatile("stmatrix.sync.aligned.m8n8.x2" t ".shared.b16 [%2], {%0, %1};" ::"r"(r[0]), "r"(r[1]), "r"(at) : "memory")
#define STORE4(t, r, at)                                                                                           \
  asm volatile("stmatrix.sync.aligned.m8n8.x4" t ".shared.b16 [%4], {%0, %1, %2, %3};" ::"r"(r[0]), "r"(r[1]), "r"(r[2]), \
               "r"(r[3]), "r"(at)                                                                                  \
               : "memory")

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results) {
  __shared__ __align__(128) uint32_t matrix[512];
  int const i = blockIdx.x * 32 + threadIdx.x;
  for (int k = 0; k < 16; ++k) matrix[32 * k + threadIdx.x] = values[512 * blockIdx.x + 32 * k + threadIdx.x];
  __syncwarp();
  uint32_t const row = (threadIdx.x * 13 + blockIdx.x * 7) % 128;
  uint32_t const at = static_cast<uint32_t>(__cvta_generic_to_shared(matrix)) + 16 * row;
  uint32_t r[16] = {};
  LOAD4("", r, at);
  LOAD4(".trans", (r + 4), at);
  LOAD2("", (r + 8), at);
  LOAD2(".trans", (r + 10), at);
  LOAD1("", (r + 12), at);
  LOAD1(".trans", (r + 13), at);
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[14]) : "r"(values[i]));
  __syncwarp();
  switch (blockIdx.x % 6) {
    case 0: STORE4("", r, at); break;
    case 1: STORE4(".trans", r, at); break;
    case 2: STORE2("", r, at); break;
    case 3: STORE2(".trans", r, at); break;
    case 4: STORE1("", r, at); break;
    default: STORE1(".trans", r, at);
  }
  __syncwarp();
  for (int k = 0; k < 16; ++k) {
    results[32 * i + k] = r[k];
    results[32 * i + 16 + k] = matrix[32 * k + threadIdx.x];
  }
}
