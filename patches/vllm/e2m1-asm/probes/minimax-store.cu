// storeNvfp4CacheElems: rows of 128 values, each scaled and converted by a warp into its place in a page, as vLLM's kernel
// for MiniMax-M3 does with the keys and the values of a token.

#include "fused_minimax_m3_qknorm_rope_kv_insert_kernel.cu"

#if !defined(FROM) || !defined(TYPE)
#error "FROM: the type of the inputs; TYPE: the model's, c10::Half or c10::BFloat16"
#endif

extern "C" __global__ void probe(FROM const* source, float const* scale, uint8_t* pages, int block_size) {
  int const token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int const lane = threadIdx.x % 32;
  int const slot = blockIdx.y;  // the keys of a head, then its values
  float values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = static_cast<float>(source[(slot * block_size + token) * 128 + lane * 4 + i]);
  }
  vllm::minimax_m3_fused_ops::storeNvfp4CacheElems<TYPE>(
      pages, slot % 2, slot / 2, token, block_size, lane, values, *scale);
}
