// Functions that some releases of vLLM require in these kernels and GPUs before sm_100 do not have. Nothing else is changed.
#pragma once
#include <cuda_runtime.h>

// The product of two pairs (0.16), as the CUDA Math API defines it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1000
static __device__ __forceinline__ float2 __fmul2_rn(float2 a, float2 b) {
  return make_float2(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y));
}
#endif

// A load of 32 bytes (from 0.27 on), here as two of 16: vLLM's own does nothing but assert.
#if FP4PATCH_WIDE_LOADS
#define ld256_cg_or_zero vllm_ld256_cg_or_zero
#include "cuda_vec_utils.cuh"
#undef ld256_cg_or_zero
namespace vllm {
__device__ __forceinline__ void ld256_cg_or_zero(u32x8_t& out, void const* from, bool wanted) {
  for (int half = 0; half < 2; ++half) {
    uint4 const part = wanted ? __ldcg(static_cast<uint4 const*>(from) + half) : make_uint4(0, 0, 0, 0);
    out.d[4 * half] = part.x, out.d[4 * half + 1] = part.y, out.d[4 * half + 2] = part.z, out.d[4 * half + 3] = part.w;
  }
}
}  // namespace vllm
#endif
