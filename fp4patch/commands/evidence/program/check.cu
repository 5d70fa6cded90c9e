// The two kernels around a probe: one writes its inputs, the other compares what it stored and makes the digest.
#include "conversion.h"

extern "C" __global__ void fp4patch_fill(struct conversion c, uint64_t first, uint32_t records, uint8_t *input) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < records * c.lanes; i += gridDim.x * blockDim.x) {
    fill_lane(&c, first, i / c.lanes, i % c.lanes, input);
  }
}

extern "C" __global__ void fp4patch_compare(
    struct conversion c, uint64_t first, uint32_t records, const uint8_t *output, struct found *all) {
  __shared__ unsigned long long sums[4];
  if (threadIdx.x < 4) sums[threadIdx.x] = threadIdx.x == 3 ? ~0ull : 0;
  __syncthreads();
  struct found found = {0, 0, 0, ~0ull};
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < records; i += gridDim.x * blockDim.x) {
    compare_record(&c, first, i, output, &found);
  }
  atomicAdd(&sums[0], (unsigned long long)found.digest);
  if (found.wrong) atomicAdd(&sums[1], (unsigned long long)found.wrong);
  if (found.nan_signs) atomicAdd(&sums[2], (unsigned long long)found.nan_signs);
  if (found.wrong) atomicMin(&sums[3], (unsigned long long)found.lowest);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd((unsigned long long *)&all->digest, sums[0]);
    if (sums[1]) atomicAdd((unsigned long long *)&all->wrong, sums[1]);
    if (sums[2]) atomicAdd((unsigned long long *)&all->nan_signs, sums[2]);
    if (sums[1]) atomicMin((unsigned long long *)&all->lowest, sums[3]);
  }
}
