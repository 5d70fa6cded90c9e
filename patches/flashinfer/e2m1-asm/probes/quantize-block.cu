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

#ifdef SWIZZLED
// A matrix, a row for each block of threads: with the place of each scale in the order that mma reads.
extern "C" __global__ void probe(
    Vector const* source, float const* scale, uint32_t* packed, uint32_t* scales, int rows, int columns) {
  int const i = blockIdx.x * (columns / kEach) + threadIdx.x;
  uint8_t* const there = k::cvt_quant_get_sf_out_offset<uint32_t, kBlock / kEach>(
      std::nullopt, blockIdx.x, threadIdx.x, rows, columns / kBlock, scales,
      tensorrt_llm::QuantizationSFLayout::SWIZZLED_128x4);
  Vector values = source[i];
  packed[i] = static_cast<uint32_t>(quantize(values, *scale, there, 0));
}
#else
extern "C" __global__ void probe(Vector const* source, float const* scale, uint32_t* packed, uint8_t* scales) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Vector values = source[i];
  packed[i] = static_cast<uint32_t>(quantize(values, *scale, scales + i / (kBlock / kEach), 0));
}
#endif
