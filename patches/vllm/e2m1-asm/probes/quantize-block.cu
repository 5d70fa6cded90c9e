// cvt_warp_fp16_to_fp4: a block of 16-bit values, scaled and converted, as vLLM's quantization kernels call it.

#include "nvfp4.cuh"

#if !defined(TYPE) || !defined(E8M0)
#error "TYPE: half or __nv_bfloat16; E8M0: whether the scale is a power of two (MXFP4)"
#endif

// Two threads share a scale where each has eight values, which is how these kernels are built for SM12x. From 0.18 on
// the vector's width is an argument of its template.
template <class T>
struct Is {
  using Type = T;
};
template <template <class> class Vec>
Is<Vec<TYPE>> vector_of();
template <template <class, bool> class Vec>
Is<Vec<TYPE, CVT_FP4_ELTS_PER_THREAD == 16>> vector_of();
using Vector = decltype(vector_of<vllm::PackedVec>())::Type;

constexpr int kThreads = CVT_FP4_SF_VEC_SIZE / CVT_FP4_ELTS_PER_THREAD;

// From 0.16 on the number of these threads is an argument, too.
template <class V>
__device__ __forceinline__ auto quantize(V& values, float scale, uint8_t* out, int)
    -> decltype(vllm::cvt_warp_fp16_to_fp4<TYPE, kThreads, bool(E8M0)>(values, scale, out)) {
  return vllm::cvt_warp_fp16_to_fp4<TYPE, kThreads, bool(E8M0)>(values, scale, out);
}

template <class V>
__device__ __forceinline__ auto quantize(V& values, float scale, uint8_t* out, long)
    -> decltype(vllm::cvt_warp_fp16_to_fp4<TYPE, bool(E8M0)>(values, scale, out)) {
  return vllm::cvt_warp_fp16_to_fp4<TYPE, bool(E8M0)>(values, scale, out);
}

using Packed = decltype(quantize(std::declval<Vector&>(), 0.f, nullptr, 0));

#ifdef TILES
// A matrix, a row for each block of threads: with the place of each scale in the order that mma reads. TILES: whether the
// function takes the number of tiles of 64 columns, as from 0.18 on, or that of columns.
extern "C" __global__ void probe(
    Vector const* source, float const* scale, Packed* packed, uint32_t* scales, int rows, int columns) {
  int const i = blockIdx.x * (columns / CVT_FP4_ELTS_PER_THREAD) + threadIdx.x;
  uint8_t* const there = vllm::cvt_quant_to_fp4_get_sf_out_offset<uint32_t, kThreads>(
      blockIdx.x, threadIdx.x, TILES ? (columns + 63) / 64 : columns, scales);
  Vector values = source[i];
  packed[i] = quantize(values, *scale, there, 0);
}
#else
extern "C" __global__ void probe(Vector const* source, float const* scale, Packed* packed, uint8_t* scales) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Vector values = source[i];
  packed[i] = quantize(values, *scale, scales + i / kThreads, 0);
}
#endif
