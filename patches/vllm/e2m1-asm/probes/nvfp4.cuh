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
