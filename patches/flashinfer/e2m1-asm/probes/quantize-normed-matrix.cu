// The last step of FlashInfer's fused LayerNorm: a matrix of halves to NVFP4, a row for each block of threads; beside the
// kernels that the header has itself.

#include "flashinfer/norm/fused_dit_layernorm.cuh"

struct alignas(16) Vector {
  half array[8];
};

struct Parameters {
  float const* sf_scale;
  uint32_t* normed_output;
  uint32_t* sf_out;
  int num_rows;
  int n;
};

extern "C" __global__ void probe(
    Vector const* source, float const* scale, uint32_t* packed, uint32_t* scales, int rows, int columns) {
  flashinfer::fused_layernorm::FP4Converter<half>(Parameters{scale, packed, scales, rows, columns})
      .template post_process<8>(0, blockIdx.x, 8 * threadIdx.x, source[blockIdx.x * (columns / 8) + threadIdx.x]);
}
