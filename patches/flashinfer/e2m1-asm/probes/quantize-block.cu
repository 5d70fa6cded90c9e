// cvt_warp_fp16_to_fp4: a block of 16-bit values, scaled and converted, as FlashInfer's quantization kernels call it.

#include "quantization.cuh"

#if !defined(TYPE) || !defined(E8M0)
#error "TYPE: half or __nv_bfloat16; E8M0: whether the scale is a power of two (MXFP4)"
#endif

namespace k = tensorrt_llm::kernels;

constexpr int kBlock = E8M0 ? 32 : 16;
constexpr int kEach = 8;

using Vector = k::PackedVec<TYPE>;

// From 0.6.2 on the number of values that a thread holds is an argument.
template <class V>
__device__ __forceinline__ auto quantize(V& values, float scale, uint8_t* out, int)
    -> decltype(k::cvt_warp_fp16_to_fp4<TYPE, kBlock, kEach, bool(E8M0)>(values, scale, out)) {
  return k::cvt_warp_fp16_to_fp4<TYPE, kBlock, kEach, bool(E8M0)>(values, scale, out);
}

template <class V>
__device__ __forceinline__ auto quantize(V& values, float scale, uint8_t* out, long)
    -> decltype(k::cvt_warp_fp16_to_fp4<TYPE, kBlock, bool(E8M0)>(values, scale, out)) {
  return k::cvt_warp_fp16_to_fp4<TYPE, kBlock, bool(E8M0)>(values, scale, out);
}

#if defined(WITH_MAXIMUM)
// With the block's maximum as an argument: of two threads, as upstream's function finds it.
template <class V>
__device__ __forceinline__ uint32_t quantize_with_maximum(V& values, float scale, uint8_t* out) {
  auto most = __habs2(values.elts[0]);
#pragma unroll
  for (int i = 1; i < kEach / 2; ++i) {
    most = __hmax2(most, __habs2(values.elts[i]));
  }
  most = __hmax2(__shfl_xor_sync(0xffffffffu, most, 1), most);
  return k::cvt_warp_fp16_to_fp4_with_vec_max<TYPE, kBlock, kEach, false>(
      values, scale, k::reciprocal_approximate_ftz(scale), float(__hmax(most.x, most.y)), out);
}
#endif

#ifdef EXPERTS
// The place of a scale as the kernels for experts compute it; from 0.6.2 on the block's size is an argument.
template <int Threads, class S>
__device__ __forceinline__ auto place(int row, int column, int columns, S* scales, int)
    -> decltype(k::cvt_quant_to_fp4_get_sf_out_offset<S, kBlock, Threads>(row, column, columns, scales)) {
  return k::cvt_quant_to_fp4_get_sf_out_offset<S, kBlock, Threads>(row, column, columns, scales);
}

template <int Threads, class S>
__device__ __forceinline__ auto place(int row, int column, int columns, S* scales, long)
    -> decltype(k::cvt_quant_to_fp4_get_sf_out_offset<S, Threads>(row, column, columns, scales)) {
  return k::cvt_quant_to_fp4_get_sf_out_offset<S, Threads>(row, column, columns, scales);
}
#endif

#ifdef SWIZZLED
// A matrix, a row for each block of threads: with the place of each scale in the order that mma reads.
extern "C" __global__ void probe(
    Vector const* source, float const* scale, uint32_t* packed, uint32_t* scales, int rows, int columns) {
  int const i = blockIdx.x * (columns / kEach) + threadIdx.x;
#ifdef EXPERTS
  uint8_t* const there = place<kBlock / kEach>(blockIdx.x, threadIdx.x, columns, scales, 0);
#else
  uint8_t* const there = k::cvt_quant_get_sf_out_offset<uint32_t, kBlock / kEach>(
      std::nullopt, blockIdx.x, threadIdx.x, rows, columns / kBlock, scales,
      tensorrt_llm::QuantizationSFLayout::SWIZZLED_128x4);
#endif
  Vector values = source[i];
  packed[i] = static_cast<uint32_t>(quantize(values, *scale, there, 0));
}
#else
extern "C" __global__ void probe(Vector const* source, float const* scale, uint32_t* packed, uint8_t* scales) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Vector values = source[i];
#ifdef WITH_MAXIMUM
  packed[i] = quantize_with_maximum(values, *scale, scales + i / (kBlock / kEach));
#else
  packed[i] = static_cast<uint32_t>(quantize(values, *scale, scales + i / (kBlock / kEach), 0));
#endif
}
#endif
