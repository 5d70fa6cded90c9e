#include "include/fused_quantize_host.h"

namespace QUTLASS {

std::tuple<Tensor, Tensor> fusedQuantizeMxAbsMax(Tensor const& A, Tensor const& B, Tensor& OUT, Tensor& OUT_sf)
{
    uint32_t HAD_GS = B.size(0);
    if (HAD_GS == 64) {
        fusedQuantizeMxAbsMaxHad64_host(OUT, OUT_sf, A, B);
    } else if (HAD_GS == 128) {
#if TARGET_CUDA_ARCH == 100
        fusedQuantizeMxAbsMax_host_sm100(OUT, OUT_sf, A, B, global_scale);
#elif TARGET_CUDA_ARCH == 120
        fusedQuantizeMxAbsMaxHad128_host(OUT, OUT_sf, A, B);
#endif
    }
    return std::make_tuple(OUT, OUT_sf);
}

std::tuple<Tensor, Tensor> fusedQuantizeNvAbsMax(Tensor const& A, Tensor const& B, Tensor& OUT, Tensor& OUT_sf,
                                                 Tensor const& global_scale)
{
    uint32_t HAD_GS = B.size(0);
    if (HAD_GS == 64) {
        fusedQuantizeNvAbsMaxHad64_host(OUT, OUT_sf, A, B, global_scale);
    } else if (HAD_GS == 128) {
#if TARGET_CUDA_ARCH == 100
        fusedQuantizeNvAbsMax_host_sm100(OUT, OUT_sf, A, B, global_scale);
#elif TARGET_CUDA_ARCH == 120
        fusedQuantizeNvAbsMaxHad128_host(OUT, OUT_sf, A, B, global_scale);
#endif
    }
    return std::make_tuple(OUT, OUT_sf);
}

}  // namespace QUTLASS
