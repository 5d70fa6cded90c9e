// fp32_vec_to_e2m1, one overload alone: two in one kernel would be folded into one by the compiler. Each thread loads its
// values and stores the packed nibbles, so that little else is in the listing.

#include "quantization.cuh"

#if !defined(ELEMENT) || !defined(ELEMENTS)
#error "ELEMENT and ELEMENTS: the array that the function takes, for example float2 and 4"
#endif

using Array = ELEMENT[ELEMENTS];
constexpr int kValues = sizeof(Array) / sizeof(float);

struct alignas(16) Load {
  float value[4];
};

extern "C" __global__ void probe(Load const* source, std::conditional_t<kValues == 16, uint64_t, uint32_t>* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  union {
    Load load[kValues / 4];
    Array array;
  } in;
#pragma unroll
  for (int load = 0; load < kValues / 4; ++load) {
    in.load[load] = source[kValues / 4 * i + load];
  }
  packed[i] = tensorrt_llm::kernels::fp32_vec_to_e2m1(in.array);
}
