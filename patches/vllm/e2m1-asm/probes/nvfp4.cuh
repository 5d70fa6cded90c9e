// vLLM's own nvfp4_utils.cuh, in any release. It does not include all that it uses: up to 0.16 whoever includes it has
// to bring PyTorch's and CUDA's 16-bit types. The folders that it has moved between are on the include path.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "quantization/fp4/nvfp4_utils.cuh"

// The functions have changed their names. These match worse than vLLM's own, and so are only found where a release has
// none of that name for this array.
struct None {};
template <class Array>
__device__ None fp32_vec_to_e2m1(Array&);  // 8 values, up to 0.14
template <class Array>
__device__ None fp32_vec8_to_e2m1(Array&);  // 8 values, from 0.16 on
template <class Array>
__device__ None fp32_vec16_to_e2m1(Array&);
