// FlashInfer's own conversions: quantization.cuh up to 0.6.1, quantization_utils.cuh from 0.6.2 on.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>
#include <type_traits>
#include <utility>

#if __has_include("tensorrt_llm/kernels/quantization_utils.cuh")
#include "tensorrt_llm/kernels/quantization_utils.cuh"
#else
// The kernels in it would be in the listing, too: as functions that nobody calls they are not.
#include <cooperative_groups.h>
#include <curand_kernel.h>

#include "tensorrt_llm/common/cudaUtils.h"
#pragma push_macro("__global__")
#pragma push_macro("__launch_bounds__")
#undef __global__
#undef __launch_bounds__
#define __global__ __device__
#define __launch_bounds__(...)
#include "tensorrt_llm/kernels/quantization.cuh"
#pragma pop_macro("__launch_bounds__")
#pragma pop_macro("__global__")
#endif
