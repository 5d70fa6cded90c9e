// The kernels that check and measure the functions named in FP4PATCH_SUBJECTS, eight values each. Compiled in, as in
// device.cu: FP4PATCH_SUBJECTS, FP4PATCH_NAMES, FP4PATCH_INTERVALS; and FP4PATCH_GROUP, the name of the function that
// hands the encoders out.
#include "bench.h"

#define FP4PATCH_SUBJECT(index, name, lanes, expression)                                             \
  struct Fp4patchSubject##index {                                                                    \
    static __device__ __forceinline__ unsigned int encode(const float (&v)[lanes]) {                 \
      return static_cast<unsigned int>(expression);                                                  \
    }                                                                                                \
  };
// A namespace for each group: in two groups the same name stands for two functions. Not an unnamed one: nvcc takes it for
// that of another namespace where the subjects' headers have one, and a using-directive for it.
#define FP4PATCH_JOIN_(a, b) a##b
#define FP4PATCH_JOIN(a, b) FP4PATCH_JOIN_(a, b)
#define FP4PATCH_NAMESPACE FP4PATCH_JOIN(FP4PATCH_GROUP, _kernels)

namespace FP4PATCH_NAMESPACE {
struct Interval {
  uint32_t first, last, code, input_class;
};
constexpr Interval host_intervals[] = {
#include FP4PATCH_INTERVALS
};
constexpr int interval_count = sizeof host_intervals / sizeof host_intervals[0];
__constant__ Interval intervals[interval_count];
constexpr uint32_t first_nan_class = 4;
}  // namespace FP4PATCH_NAMESPACE

#include FP4PATCH_SUBJECTS
#undef FP4PATCH_SUBJECT

namespace FP4PATCH_NAMESPACE {

using fp4patch_bench::ensure;
using fp4patch_bench::rounds;
using fp4patch_bench::start;
using fp4patch_bench::threads;
using fp4patch_bench::Wrong;

// Lane i takes its inputs from another eighth of the 2^32 than its neighbours, so that lanes that change places show.
template <class Subject>
__global__ void check_all(Wrong* wrong) {
  constexpr uint32_t part = 1u << 29;
  unsigned long long numbers = 0, nans = 0, nan_signs = 0;
  for (uint32_t at = blockIdx.x * threads + threadIdx.x; at < part; at += gridDim.x * threads) {
    float v[8];
#pragma unroll
    for (int lane = 0; lane < 8; ++lane) {
      v[lane] = __uint_as_float(at + lane * part);
    }
    const uint32_t packed = Subject::encode(v);
#pragma unroll
    for (int lane = 0; lane < 8; ++lane) {
      int which = 0;
#pragma unroll
      for (int i = 1; i < interval_count; ++i) {
        which += at + lane * part >= intervals[i].first;
      }
      const uint32_t difference = (packed >> 4 * lane & 15u) ^ intervals[which].code;
      const bool nan = intervals[which].input_class >= first_nan_class;
      numbers += !nan && difference != 0;
      nans += nan && (difference & 7u) != 0;
      nan_signs += nan && difference == 8u;
    }
  }
  if (numbers != 0) {
    atomicAdd(&wrong->numbers, numbers);
  }
  if (nans != 0) {
    atomicAdd(&wrong->nans, nans);
  }
  if (nan_signs != 0) {
    atomicAdd(&wrong->nan_signs, nan_signs);
  }
}

template <class Subject>
Wrong check(int blocks) {
  ensure(cudaMemcpyToSymbol(intervals, host_intervals, sizeof host_intervals));
  Wrong found{0, 0, 0};
  Wrong* wrong;
  ensure(cudaMalloc(&wrong, sizeof found));
  ensure(cudaMemcpy(wrong, &found, sizeof found, cudaMemcpyHostToDevice));
  check_all<Subject><<<blocks, threads>>>(wrong);
  ensure(cudaGetLastError());
  ensure(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
  ensure(cudaFree(wrong));
  return found;
}

// Every value costs one multiplication beside the encoder, so that no result can be kept from the round before. Ratios
// between encoders are therefore understated, never overstated.
template <class Subject>
__global__ void __launch_bounds__(threads) compute(uint32_t* out, float step) {
  float v[8];
  uint32_t all = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    v[i] = start((blockIdx.x * threads + threadIdx.x) * 8 + i + 1);
  }
#pragma unroll 4
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] = __fmul_rn(v[i], step);
    }
    all ^= Subject::encode(v);
  }
  out[blockIdx.x * threads + threadIdx.x] = all;
}

template <class Subject>
__global__ void __launch_bounds__(threads) stream(const float4* in, uint32_t* out) {
  const size_t at = size_t{blockIdx.x} * threads + threadIdx.x;
  const float4 a = in[2 * at], b = in[2 * at + 1];
  const float v[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  out[at] = Subject::encode(v);
}

template <class Subject>
void in_registers(int blocks, uint32_t* out, float step) {
  compute<Subject><<<blocks, threads>>>(out, step);
}

template <class Subject>
void from_memory(unsigned int blocks, const float4* in, uint32_t* out) {
  stream<Subject><<<blocks, threads>>>(in, out);
}

const fp4patch_bench::Encoder encoders[] = {
#define FP4PATCH_RUN(index, name, lanes)                                                             \
  {name, check<Fp4patchSubject##index>, in_registers<Fp4patchSubject##index>,                        \
   from_memory<Fp4patchSubject##index>},
#include FP4PATCH_NAMES
#undef FP4PATCH_RUN
    {nullptr, nullptr, nullptr, nullptr}};

}  // namespace FP4PATCH_NAMESPACE

const fp4patch_bench::Encoder* FP4PATCH_GROUP() { return FP4PATCH_NAMESPACE::encoders; }
