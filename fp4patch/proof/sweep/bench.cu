// Checks and measures every encoder of the groups in FP4PATCH_GROUPS, lines FP4PATCH_GROUP(function), on this GPU: in
// registers, and from memory (32 bytes read and 4 written for eight values). FP4PATCH_HEAD holds string
// literals that it writes first. An encoder that is wrong for a number is not measured.
// It writes, separated by tabs: "device", name, architecture, multiprocessors; for each encoder "check", name, and how
// many of 2^32 inputs come out wrong (numbers, NaNs, signs of NaN); then "registers" or "memory", name, and values per
// second, one for each repeat; last "end".
#include <algorithm>
#include <vector>

#include "bench.h"

#define FP4PATCH_GROUP(function) const fp4patch_bench::Encoder* function();
#include FP4PATCH_GROUPS
#undef FP4PATCH_GROUP

namespace {

using fp4patch_bench::Encoder;
using fp4patch_bench::ensure;
using fp4patch_bench::threads;

constexpr int repeats = 11;

__global__ void fill(float* out, size_t count) {
  for (size_t at = size_t{blockIdx.x} * threads + threadIdx.x; at < count; at += size_t{gridDim.x} * threads) {
    out[at] = fp4patch_bench::start(static_cast<uint32_t>(at) + 1);
  }
}

// All encoders in turn, then all again: a clock that changes meanwhile changes for all of them. The first time counts
// for nothing.
template <class Launch>
void measure(const char* how, const std::vector<Encoder>& encoders, double values, Launch launch) {
  cudaEvent_t begin, end;
  ensure(cudaEventCreate(&begin));
  ensure(cudaEventCreate(&end));
  std::vector<std::vector<double>> rates(encoders.size());
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < encoders.size(); ++i) {
      ensure(cudaEventRecord(begin));
      launch(encoders[i]);
      ensure(cudaGetLastError());
      ensure(cudaEventRecord(end));
      ensure(cudaEventSynchronize(end));
      float ms = 0;
      ensure(cudaEventElapsedTime(&ms, begin, end));
      if (repeat >= 0) {
        rates[i].push_back(values / ms * 1e3);
      }
    }
  }
  for (size_t i = 0; i < encoders.size(); ++i) {
    std::printf("%s\t%s", how, encoders[i].name);
    for (double rate : rates[i]) {
      std::printf("\t%.6g", rate);
    }
    std::printf("\n");
  }
  ensure(cudaEventDestroy(begin));
  ensure(cudaEventDestroy(end));
}

}  // namespace

int main() {
  cudaDeviceProp device;
  ensure(cudaGetDeviceProperties(&device, 0));
  std::fputs(
#include FP4PATCH_HEAD
      , stdout);
  std::printf("device\t%s\tsm_%d%d\t%d\n", device.name, device.major, device.minor, device.multiProcessorCount);
  const int blocks = device.multiProcessorCount * 32;

  std::vector<Encoder> right;
#define FP4PATCH_GROUP(function)                                                                     \
  for (const Encoder* one = function(); one->name != nullptr; ++one) {                               \
    const fp4patch_bench::Wrong wrong = one->check(blocks);                                          \
    std::printf("check\t%s\t%llu\t%llu\t%llu\n", one->name, wrong.numbers, wrong.nans, wrong.nan_signs); \
    if (wrong.numbers == 0) {                                                                        \
      right.push_back(*one);                                                                         \
    }                                                                                                \
  }
#include FP4PATCH_GROUPS
#undef FP4PATCH_GROUP

  // Sixteen times the second-level cache, so that memory is what is read, but at most a quarter of the memory.
  size_t words = std::min<size_t>(size_t{16} * static_cast<size_t>(device.l2CacheSize), device.totalGlobalMem / 4) / 32;
  words = std::max<size_t>(words, size_t(blocks) * threads) / threads * threads;
  float4* in;
  uint32_t* out;
  ensure(cudaMalloc(&in, words * 32));
  ensure(cudaMalloc(&out, words * 4));
  fill<<<blocks, threads>>>(reinterpret_cast<float*>(in), words * 8);
  ensure(cudaGetLastError());
  measure("registers", right, 8.0 * fp4patch_bench::rounds * blocks * threads,
          [&](const Encoder& one) { one.in_registers(blocks, out, 1.0001f); });
  measure("memory", right, 8.0 * static_cast<double>(words),
          [&](const Encoder& one) { one.from_memory(static_cast<unsigned int>(words / threads), in, out); });
  ensure(cudaFree(in));
  ensure(cudaFree(out));
  std::printf("end\n");
  return 0;
}
