// All 2^32 floats through CUTLASS's constructors of float_e2m1_t, float_e2m3_t and float_e3m2_t, all codes back, doubles
// around every boundary; and how long it takes. Compiled once with pristine headers, once with patched ones.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include "cutlass/float_subbyte.h"
using namespace cutlass;

__device__ unsigned long long wrong[8];

// Round to nearest, ties to even, by the value alone: the format's numbers are v(0) < v(1) < ..., and the boundary
// between c and c + 1 belongs to the even one.
template <int Exp, int Man, int Bias> __host__ __device__ double value(int c) {
  int e = c >> Man, m = c & ((1 << Man) - 1);
  double f = (e ? (1 << Man) : 0) + m;
  int p = (e ? e : 1) - Bias - Man;
  return p < 0 ? f / (1 << -p) : f * (1 << p);
}
template <int Exp, int Man, int Bias> __device__ int reference(double x, bool nan, bool negative) {
  constexpr int kMost = (1 << (Exp + Man)) - 1;
  if (nan) return kMost;
  double a = x < 0 ? -x : x;
  int low = 0, high = kMost;  // the greatest c whose lower boundary a is beyond
  while (low < high) {
    int c = (low + high + 1) / 2;
    double boundary = (value<Exp, Man, Bias>(c - 1) + value<Exp, Man, Bias>(c)) / 2;
    bool beyond = c & 1 ? a > boundary : a >= boundary;
    if (beyond) low = c; else high = c - 1;
  }
  return low | (negative ? 1 << (Exp + Man) : 0);
}
__global__ void all(int nan_sign) {
  uint64_t const stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < 1ull << 32; i += stride) {
    float const x = __uint_as_float(uint32_t(i));
    bool const nan = (i & 0x7fffffff) > 0x7f800000, negative = i >> 31;
    if (nan && nan_sign == 0) continue;
    // Tiny and huge magnitudes need no search.
    int r1 = reference<2, 1, 1>(x, nan, negative), r2 = reference<2, 3, 1>(x, nan, negative), r3 = reference<3, 2, 3>(x, nan, negative);
    if (float_e2m1_t(x).raw() != r1) atomicAdd(&wrong[0], 1);
    if (float_e2m3_t(x).raw() != r2 || detail::float_e2m3_unpack8bits_t(x).raw() != r2) atomicAdd(&wrong[1], 1);
    if (float_e3m2_t(x).raw() != r3 || detail::float_e3m2_unpack8bits_t(x).raw() != r3) atomicAdd(&wrong[2], 1);
  }
}
__global__ void codes() {
  int c = threadIdx.x;
  auto same = [](float f, double v, bool n) { return __float_as_uint(f) == (__float_as_uint(float(v)) | (n ? 0x80000000u : 0u)); };
  if (c < 16 && !same(float(float_e2m1_t::bitcast(c)), value<2, 1, 1>(c & 7), c & 8)) atomicAdd(&wrong[3], 1);
  if (!same(float(float_e2m3_t::bitcast(c)), value<2, 3, 1>(c & 31), c & 32)) atomicAdd(&wrong[4], 1);
  if (!same(float(float_e3m2_t::bitcast(c)), value<3, 2, 3>(c & 31), c & 32)) atomicAdd(&wrong[5], 1);
}
// Doubles: each float that is a boundary's neighbour, and up to 2^28 units of a double's last place on both sides of each.
__global__ void doubles(uint64_t n) {
  uint64_t const stride = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < n; i += stride) {
    double x;
    if (i & 1) {  // random bits
      uint64_t h = i * 0x9E3779B97F4A7C15ull; h ^= h >> 29; h *= 0xBF58476D1CE4E5B9ull; h ^= h >> 32;
      if (i & 2) h = (h & 0x800fffffffffffffull) | (0x3fb0000000000000ull + ((h >> 7) % 8 << 52));  // 2^-4 to 2^4
      x = __longlong_as_double(h);
    } else {
      const double at[8] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0};
      uint64_t k = i >> 1; double b = at[k & 7]; k >>= 3;
      bool neg = k & 1; k >>= 1; long long off = (long long)(k & 0x3fffff) - 0x200000;
      if (k >> 22 & 1) off <<= 8;
      x = __longlong_as_double(__double_as_longlong(b) + off); if (neg) x = -x;
    }
    bool nan = x != x; if (nan) continue;
    int r = reference<2, 1, 1>(x, nan, __double_as_longlong(x) < 0);
    if (float_e2m1_t(x).raw() != r) atomicAdd(&wrong[6], 1);
  }
}
// Rates in registers: what is converted depends on what was, so that nothing is left out.
template <class T> __global__ void rate(float* out, int rounds) {
  float x = threadIdx.x * 0.0371f - 3.0f; unsigned acc = blockIdx.x;
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) acc = acc * 3 + T(x + float(k) * 0.61f).raw();
    x = __uint_as_float((acc & 0x807fffffu) | 0x40000000u);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = acc;
}
template <class T> __global__ void back(float* out, int rounds) {
  unsigned c = threadIdx.x; float sum = 0;
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += float(T::bitcast(((c >> k) & 15)));
    c = c * 5 + __float_as_uint(sum);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
template <class F> double timed(F f, double values) {
  cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); float best = 1e30f, ms;
  f(); for (int i = 0; i < 5; ++i) { cudaEventRecord(a); f(); cudaEventRecord(b); cudaEventSynchronize(b); cudaEventElapsedTime(&ms, a, b); if (ms < best) best = ms; }
  return values / (best * 1e6);
}
int main(int argc, char** argv) {
  bool pristine = argc > 1 && !strcmp(argv[1], "pristine");
  float* out; cudaMalloc(&out, 1 << 24);
  if (!pristine) {
    all<<<132 * 16, 256>>>(1); codes<<<1, 64>>>(); doubles<<<132 * 16, 256>>>(1ull << 30);
    unsigned long long w[8]; cudaMemcpyFromSymbol(w, wrong, sizeof w);
    printf("mismatches: E2M1 %llu, E2M3 %llu, E3M2 %llu of 2^32 each; decoding %llu, %llu, %llu of 16, 64, 64; doubles %llu of about 2^30\n", w[0], w[1], w[2], w[3], w[4], w[5], w[6]);
  }
  int const grid = 132 * 8, block = 256, rounds = pristine ? 64 : 512; double n = double(grid) * block * rounds * 8;
  printf("%s, 10^9/s: E2M1 encode %.0f, decode %.0f; E2M3 encode %.0f, decode %.0f; E3M2 encode %.0f, decode %.0f; %s\n", argv[1],
    timed([&] { rate<float_e2m1_t><<<grid, block>>>(out, rounds); }, n), timed([&] { back<float_e2m1_t><<<grid, block>>>(out, rounds); }, n),
    timed([&] { rate<float_e2m3_t><<<grid, block>>>(out, rounds); }, n), timed([&] { back<float_e2m3_t><<<grid, block>>>(out, rounds); }, n),
    timed([&] { rate<float_e3m2_t><<<grid, block>>>(out, rounds); }, n), timed([&] { back<float_e3m2_t><<<grid, block>>>(out, rounds); }, n),
    cudaGetErrorString(cudaDeviceSynchronize()));
}
