// reshape_and_cache_nvfp4_kernel: the keys and values of a token for each block of threads, in their pages of an NVFP4 KV
// cache, with the strides that vLLM's dispatcher gives it.

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

#if !defined(FROM) || !defined(TYPE)
#error "FROM: the type of the inputs; TYPE: the model's, c10::Half or c10::BFloat16"
#endif

// The kernel is called by the probe, and its template has an argument for the search of scales from 0.28 on.
namespace vllm {
enum class NVFP4KVScaleSearch;
}
#pragma push_macro("__global__")
#undef __global__
#define __global__ __device__
#include "nvfp4_kv_cache_kernels.cu"
#pragma pop_macro("__global__")

template <class T, class... Arguments>
__device__ __forceinline__ auto fill(int, Arguments... all)
    -> decltype(vllm::reshape_and_cache_nvfp4_kernel<T>(all...)) {
  vllm::reshape_and_cache_nvfp4_kernel<T>(all...);
}

template <class T, class... Arguments>
__device__ __forceinline__ auto fill(long, Arguments... all)
    -> decltype(vllm::reshape_and_cache_nvfp4_kernel<T, vllm::NVFP4KVScaleSearch(0)>(all...)) {
  vllm::reshape_and_cache_nvfp4_kernel<T, vllm::NVFP4KVScaleSearch(0)>(all...);
}

extern "C" __global__ void probe(FROM const* key, FROM const* value, float const* scales, int64_t const* slots,
                                 uint8_t* pages, int heads, int head_size, int tokens, int by_heads) {
  // A page: the keys of its tokens, their block scales, the values, their block scales; tokens of heads, or heads of tokens.
  int64_t const data = head_size / 2, scale = head_size / 16, all = int64_t(heads) * tokens;
  int64_t const page = 2 * all * (data + scale), row = int64_t(heads) * head_size;
  int64_t const head = by_heads ? tokens : 1, token = by_heads ? 1 : heads;
  uint8_t* const keys = pages;
  uint8_t* const values = pages + page / 2;
  fill<TYPE>(0, reinterpret_cast<TYPE const*>(key), reinterpret_cast<TYPE const*>(value), keys, values,
             keys + all * data, values + all * data, slots, scales, scales + 1, row, row, heads, head_size, tokens,
             page, head * data, token * data, page, head * scale, token * scale);
}
