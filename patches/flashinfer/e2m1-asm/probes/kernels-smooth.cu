// FlashInfer's smooth quantization, both kernels.

#include "flashinfer/gemm/nvfp4_smooth_quantize_sm100.cuh"

template __global__ void flashinfer::gemm::smooth_quantize_detail::smooth_quantize_fast_kernel<3072, 2>(
    int, __nv_bfloat16 const*, __nv_bfloat16 const*, float const*, uint64_t*, uint8_t*);
