// Runs every one of 2^32 float inputs, through every lane, of the functions named in FP4PATCH_SUBJECTS on the GPU, and
// compares with the specification's intervals. Compiled in:
//   FP4PATCH_SUBJECTS   a text that includes what it needs and, for each subject, has one line
//                       FP4PATCH_SUBJECT(index, name, lanes, expression of `const float (&v)[lanes]`)
//                       whose value is the packed nibbles, lane 0 lowest
//   FP4PATCH_NAMES      a text of one line FP4PATCH_RUN(index, name, lanes) for each subject
//   FP4PATCH_INTERVALS  lines {first, last, code, class} that together cover 0 to 0xffffffff
// It writes "subject <name>", then lines as host.cpp does, with at most one mismatch for each class: the lowest input.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define FP4PATCH_SUBJECT(index, name, lanes, expression)                                             \
  struct Fp4patchSubject##index {                                                                    \
    static __device__ __forceinline__ unsigned long long encode(const float (&v)[lanes]) {           \
      return static_cast<unsigned long long>(expression);                                            \
    }                                                                                                \
  };
#include FP4PATCH_SUBJECTS
#undef FP4PATCH_SUBJECT

// Named: nvcc takes an unnamed one for that of another namespace where the subjects' headers have one, and a
// using-directive for it.
namespace fp4patch_sweep {

struct Interval {
  uint32_t first, last, code, input_class;
};

constexpr Interval host_intervals[] = {
#include FP4PATCH_INTERVALS
};
constexpr int interval_count = sizeof host_intervals / sizeof host_intervals[0];
__constant__ Interval intervals[interval_count];
constexpr int classes = 6;
constexpr int threads = 256;

struct Found {
  unsigned long long inputs, mismatches, magnitudes, lowest;  // lowest: input << 16 | expected << 8 | got
};

void check(cudaError_t status) {
  if (status != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
  }
}

// Lane i takes its inputs from another part of the 2^32 than its neighbours, so that lanes that change places show; the
// turn moves every lane on by one part, so that after as many turns as lanes each lane got every input.
template <class Subject, int lanes>
__global__ void sweep(uint32_t turn, Found* found) {
  __shared__ unsigned long long counts[classes][3];
  for (int i = threadIdx.x; i < classes * 3; i += threads) {
    counts[i / 3][i % 3] = 0;
  }
  __syncthreads();
  constexpr uint64_t part = (uint64_t{1} << 32) / lanes;
  uint32_t inputs[classes] = {}, mismatches[classes] = {}, magnitudes[classes] = {};
  for (uint64_t at = blockIdx.x * uint64_t{threads} + threadIdx.x; at < part; at += uint64_t{gridDim.x} * threads) {
    uint32_t input[lanes];
    float v[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      input[lane] = static_cast<uint32_t>(at + (lane + turn) % lanes * part);
      v[lane] = __uint_as_float(input[lane]);
    }
    const unsigned long long packed = Subject::encode(v);
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      // The last lane keeps what stands above it: nothing may.
      const uint32_t got = static_cast<uint32_t>(packed >> 4 * lane) & (lane == lanes - 1 ? 0xffu : 15u);
      int which = 0;
#pragma unroll
      for (int i = 1; i < interval_count; ++i) {
        which += input[lane] >= intervals[i].first;
      }
      const uint32_t expected = intervals[which].code;
      const uint32_t input_class = intervals[which].input_class;
#pragma unroll
      for (uint32_t c = 0; c < classes; ++c) {
        inputs[c] += input_class == c;
      }
      if (got != expected) {
#pragma unroll
        for (uint32_t c = 0; c < classes; ++c) {
          mismatches[c] += input_class == c;
          magnitudes[c] += input_class == c && ((got ^ expected) & ~8u) != 0;
        }
        atomicMin(&found[input_class].lowest, static_cast<unsigned long long>(input[lane]) << 16 | expected << 8 | got);
      }
    }
  }
  for (int c = 0; c < classes; ++c) {
    atomicAdd(&counts[c][0], inputs[c]);
    atomicAdd(&counts[c][1], mismatches[c]);
    atomicAdd(&counts[c][2], magnitudes[c]);
  }
  __syncthreads();
  if (threadIdx.x < classes) {
    atomicAdd(&found[threadIdx.x].inputs, counts[threadIdx.x][0]);
    atomicAdd(&found[threadIdx.x].mismatches, counts[threadIdx.x][1]);
    atomicAdd(&found[threadIdx.x].magnitudes, counts[threadIdx.x][2]);
  }
}

template <class Subject, int lanes>
void run(const char* name, int blocks) {
  Found* found;
  check(cudaMalloc(&found, sizeof(Found) * classes));
  Found all[classes];
  for (Found& one : all) {
    one = {0, 0, 0, ~0ull};
  }
  check(cudaMemcpy(found, all, sizeof all, cudaMemcpyHostToDevice));
  for (uint32_t turn = 0; turn < lanes; ++turn) {
    sweep<Subject, lanes><<<blocks, threads>>>(turn, found);
    check(cudaGetLastError());
  }
  check(cudaMemcpy(all, found, sizeof all, cudaMemcpyDeviceToHost));
  check(cudaFree(found));
  std::printf("subject %s\n", name);
  for (int c = 0; c < classes; ++c) {
    std::printf("%d %llu %llu %llu", c, all[c].inputs, all[c].mismatches, all[c].magnitudes);
    if (all[c].mismatches != 0) {
      std::printf(" %08llx:%llx:%llx", all[c].lowest >> 16, all[c].lowest >> 8 & 255,
                  all[c].lowest & 255);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

int run_all() {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaMemcpyToSymbol(intervals, host_intervals, sizeof host_intervals));
  const int blocks = device.multiProcessorCount * 16;
  std::printf("device %s sm_%d%d\n", device.name, device.major, device.minor);
#define FP4PATCH_RUN(index, name, lanes) run<Fp4patchSubject##index, lanes>(name, blocks);
#include FP4PATCH_NAMES
#undef FP4PATCH_RUN
  return 0;
}

}  // namespace fp4patch_sweep

int main() { return fp4patch_sweep::run_all(); }
