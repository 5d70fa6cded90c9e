// The last step of FlashInfer's fused LayerNorm: a matrix to NVFP4, a row for each block of threads. With MXFP8 also its
// other converter.

#include "flashinfer/norm/fused_dit_layernorm.cuh"

#ifndef TYPE
#error "TYPE: half or __nv_bfloat16"
#endif

struct alignas(16) Vector {
  TYPE array[8];
};

struct Parameters {
  float const* sf_scale;
  uint32_t* normed_output;
  uint32_t* sf_out;
  int num_rows;
  int n;
};

template <class Converter>
__device__ __forceinline__ void quantize(Vector const* source, Parameters const& parameters) {
  Converter(parameters).template post_process<8>(
      0, blockIdx.x, 8 * threadIdx.x, source[blockIdx.x * (parameters.n / 8) + threadIdx.x]);
}

extern "C" __global__ void probe(
    Vector const* source, float const* scale, uint32_t* packed, uint32_t* scales, int rows, int columns) {
  quantize<flashinfer::fused_layernorm::FP4Converter<TYPE>>(source, {scale, packed, scales, rows, columns});
}

#ifdef MXFP8
extern "C" __global__ void to_mxfp8(Vector const* source, uint32_t* packed, uint32_t* scales, int rows, int columns) {
  quantize<flashinfer::fused_layernorm::FP8Converter<TYPE>>(source, {nullptr, packed, scales, rows, columns});
}
#endif
