// FlashInfer's copies of fp32_vec_to_e2m1, without kernels: a launcher instantiates those of the types that the build
// enables, which are none here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>
#include <type_traits>

#if __has_include("flashinfer/comm/trtllm_allreduce_fusion.cuh")
#include "flashinfer/comm/trtllm_allreduce_fusion.cuh"
#endif
#if __has_include("flashinfer/comm/trtllm_moe_allreduce_fusion.cuh")
#include "flashinfer/comm/trtllm_moe_allreduce_fusion.cuh"
#endif
#include "flashinfer/math.cuh"
#if __has_include("fp4_kv_quantization.cu")
#include "fp4_kv_quantization.cu"
#endif
