// The functions for all-reduce that quantize a block and give the place of its scale: a matrix, a row for each block of
// threads.

#include "copies.cuh"

#if !defined(TYPE) || !defined(UTILS)
#error "TYPE: half or __nv_bfloat16; UTILS: the namespace of the functions"
#endif

extern "C" __global__ void probe(
    flashinfer::vec_t<TYPE, 8> const* source, float const* scale, uint32_t* packed, uint32_t* scales, int rows,
    int columns) {
  int const i = blockIdx.x * (columns / 8) + threadIdx.x;
  flashinfer::vec_t<TYPE, 8> values = source[i];
  packed[i] = UTILS::cvt_warp_fp16_to_fp4<TYPE, 8>(
      values, *scale,
      UTILS::cvt_quant_to_fp4_get_sf_out_offset<uint32_t, 2>(
          {}, blockIdx.x, threadIdx.x, {}, columns, scales,
          flashinfer::QuantizationSFLayout::SWIZZLED_128x4));
}
