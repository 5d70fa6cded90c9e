// mma.sync in every form that sm_90 has, on fragments from memory: 16 words of each thread, 4 words of result.
#include <cstdint>

#define F32(shape, types, words_a, words_b, a, b)                                                                        \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." types ".f32 {%0, %1, %2, %3}, " a ", " b ", {%10, %11, %12, %13};" \
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                          \
               : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(v[8]), "r"(v[9]))
#define S32(shape, types)                                                                                                \
  asm volatile("mma.sync.aligned." shape ".row.col" types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                          \
               : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(v[8]), "r"(v[9]))
#define F16(shape, types, a, b)                                                                        \
  asm volatile("mma.sync.aligned." shape ".row.col.f16." types ".f16 {%0, %1}, " a ", " b ", {%8, %9};" \
               : "=r"(d[0]), "=r"(d[1])                                                                \
               : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]))
#define A4 "{%4, %5, %6, %7}"
#define A2 "{%4, %5}"
#define B2 "{%8, %9}"
#define B1 "{%8}"

extern "C" __global__ void probe(uint32_t const* values, uint32_t* results) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t v[10], d[4] = {};
  for (int k = 0; k < 10; ++k) v[k] = values[16 * i + k];
#if FORM == 0
  F32("m16n8k16", "f16.f16", 4, 2, A4, B2);
#elif FORM == 1
  F32("m16n8k8", "f16.f16", 2, 1, A2, B1);
#elif FORM == 2
  F32("m16n8k16", "bf16.bf16", 4, 2, A4, B2);
#elif FORM == 3
  F32("m16n8k8", "bf16.bf16", 2, 1, A2, B1);
#elif FORM == 4
  F32("m16n8k8", "tf32.tf32", 4, 2, A4, B2);
#elif FORM == 5
  F32("m16n8k4", "tf32.tf32", 2, 1, A2, B1);
#elif FORM == 6
  F16("m16n8k16", "f16.f16", "{%2, %3, %4, %5}", "{%6, %7}");
#elif FORM == 7
  S32("m16n8k32", ".s32.s8.s8.s32");
#elif FORM == 8
  S32("m16n8k32", ".satfinite.s32.u8.s8.s32");
#elif FORM == 9
  F32("m16n8k32", "e4m3.e5m2", 4, 2, A4, B2);
#elif FORM == 10
  F32("m16n8k16", "e5m2.e4m3", 2, 1, A2, B1);
#else
  F16("m16n8k32", "e4m3.e4m3", "{%2, %3, %4, %5}", "{%6, %7}");
#endif
  for (int k = 0; k < 4; ++k) results[4 * i + k] = d[k];
}
