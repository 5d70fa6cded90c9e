// One of vLLM's conversion functions, alone: two overloads in one kernel would be folded into one by the compiler.
// Each thread loads its values and stores the packed nibbles, so that little else is in the listing.

#include "nvfp4.cuh"

#if !defined(ELEMENT) || !defined(ELEMENTS)
#error "ELEMENT and ELEMENTS: the array that the function takes, for example float2 and 4"
#endif

using namespace vllm;

using Array = ELEMENT[ELEMENTS];

#define EXISTS(function) (!std::is_same_v<decltype(function(std::declval<Array&>())), None>)

template <class T>
__device__ __forceinline__ auto convert(T& array) {
  static_assert(EXISTS(fp32_vec_to_e2m1) + EXISTS(fp32_vec8_to_e2m1) + EXISTS(fp32_vec16_to_e2m1) == 1,
                "this release has no conversion function that the probe knows for the array");
  if constexpr (EXISTS(fp32_vec_to_e2m1)) {
    return fp32_vec_to_e2m1(array);
  } else if constexpr (EXISTS(fp32_vec8_to_e2m1)) {
    return fp32_vec8_to_e2m1(array);
  } else {
    return fp32_vec16_to_e2m1(array);
  }
}

constexpr int kValues = sizeof(Array) / sizeof(float);

struct alignas(16) Load {
  float value[4];
};
struct alignas(kValues / 2) Packed {
  uint32_t word[kValues / 8];
};

extern "C" __global__ void probe(Load const* source, Packed* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  union {
    Load load[kValues / 4];
    Array array;
  } in;
#pragma unroll
  for (int load = 0; load < kValues / 4; ++load) {
    in.load[load] = source[kValues / 4 * i + load];
  }
  auto const out = convert(in.array);
  static_assert(sizeof(out) == sizeof(Packed), "two values in a byte");
  packed[i] = reinterpret_cast<Packed const&>(out);
}
