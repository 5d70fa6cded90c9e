// FlashInfer's quantization kernels: half and bfloat16 to NVFP4 and to MXFP8, FP8 to NVFP4, and those for experts.

#include "quantization.cuh"
#include "tensorrt_llm/kernels/quantization.cuh"

namespace tensorrt_llm::kernels {
using Type = BlockScaleQuantizationType;
#define QUANTIZES(type, T, size, power)                                                                        \
  template __global__ void quantize_with_block_size<type, T, size, power>(                                     \
      int32_t, int32_t, int32_t, int32_t, T const*, float const*, void*, uint32_t*, QuantizationSFLayout);
QUANTIZES(Type::FP16_TO_FP4, half, 16, false)
QUANTIZES(Type::FP8_TO_FP4, __nv_fp8_e4m3, 16, false)
QUANTIZES(Type::FP16_TO_MXFP8, half, 32, true)
template __global__ void cvt_fp16_to_fp4_expert<half>(
    int32_t, int32_t, half const*, float const*, uint32_t*, uint32_t*, int32_t*, bool, int);
template __global__ void quantize_with_block_size_tma<Type::FP16_TO_FP4, half, 16, false>(
    int32_t, int32_t, int32_t, int32_t, half const*, float const*, uint32_t*, uint32_t*, QuantizationSFLayout,
    CUtensorMap const __grid_constant__);
}  // namespace tensorrt_llm::kernels
