// Calls the functions of an encoder that a patch put into a tree, one by one: for the kernels of probes. Each thread
// converts N values of type Value, or N / 2 pairs of type Pair. A pristine tree has no such function; what a probe passes
// as `upstream`, from a float to a code, takes the place: the instruction, unless it names another.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(FP4PATCH_HALF_PAIR_CUH)
#define ENCODER fp4patch_half_pair
#elif defined(FP4PATCH_THRESHOLD_CUH)
#define ENCODER fp4patch_threshold
#elif defined(FP4PATCH_PREDICATE_SUM_CUH)
#define ENCODER fp4patch_predicate_sum
#endif

namespace one_by_one {

template <int kBytes> struct Word { using type = uint8_t; };
template <> struct Word<2> { using type = uint16_t; };
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = uint64_t; };
template <int N> using Packed = typename Word<N / 2>::type;

template <class Value, int N>
constexpr int kLoad = sizeof(Value) * N < 16 ? N : 16 / sizeof(Value);  // a load is of at most 16 bytes

template <class Value, int N>
struct alignas(sizeof(Value) * kLoad<Value, N>) Load {
  Value value[kLoad<Value, N>];
};

#ifdef ENCODER
template <class Pair, int N, class Value>
__device__ __forceinline__ Packed<N> converted(Value const (&v)[N]) {
  using namespace ENCODER;
  if constexpr (N == 1) {
    return e2m1(v[0]);
  } else if constexpr (!std::is_same_v<Pair, Value>) {
    auto const p = [&](int k) { return Pair(v[2 * k], v[2 * k + 1]); };
    if constexpr (N == 2) {
      return e2m1_x2(p(0));
    } else if constexpr (N == 4) {
      return e2m1_x4(p(0), p(1));
    } else if constexpr (N == 8) {
      return e2m1_x8(p(0), p(1), p(2), p(3));
    } else {
      return e2m1_x16(p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7));
    }
  } else if constexpr (N == 2) {
    return e2m1_x2(v[0], v[1]);
  } else if constexpr (N == 4) {
    return e2m1_x4(v[0], v[1], v[2], v[3]);
  } else if constexpr (N == 8) {
    return e2m1_x8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
  } else {
    return e2m1_x16(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]);
  }
}
#endif

struct Instruction {
  __device__ __forceinline__ unsigned int operator()(float x) const {
    unsigned int code;
    asm("{ .reg .b8 pair; cvt.rn.satfinite.e2m1x2.f32 pair, 0f00000000, %1; cvt.u32.u8 %0, pair; }" : "=r"(code) : "f"(x));
    return code;
  }
};

template <class Pair, int N, class Value, class Upstream = Instruction>
__device__ __forceinline__ void convert(Load<Value, N> const* source, Packed<N>* packed, Upstream upstream = {}) {
  constexpr int kEach = kLoad<Value, N>;
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Value v[N];
#pragma unroll
  for (int load = 0; load < N / kEach; ++load) {
    Load<Value, N> const loaded = source[N / kEach * i + load];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      v[load * kEach + k] = loaded.value[k];
    }
  }
#ifdef ENCODER
  packed[i] = converted<Pair>(v);
#else
  uint64_t nibbles = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    nibbles |= uint64_t(upstream(static_cast<float>(v[k])) & 15) << 4 * k;
  }
  packed[i] = nibbles;
#endif
}

}  // namespace one_by_one
