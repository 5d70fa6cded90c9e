void matmul_host_mxf4_bf16_tn(torch::stable::Tensor& D, torch::stable::Tensor const& A)
{
#if TARGET_CUDA_ARCH == 100 || TARGET_CUDA_ARCH == 101 || TARGET_CUDA_ARCH == 110 //TODO: improve tuning
    using ArchTag = cutlass::arch::Sm100;
    runGemm<FpGemm<MmaTileShape, ArchTag>>(D, A);
#elif TARGET_CUDA_ARCH >= 120
    using ArchTag = cutlass::arch::Sm120;
    using ClusterShape       = Shape<_1,_1,_1>;
    runGemm<FpGemm<MmaTileShape, ArchTag>>(D, A);
#else
    TORCH_CHECK(false, "Unsupported CUDA arch");
#endif
}

void matmul_host_nvf4_bf16_tn(torch::stable::Tensor& D, torch::stable::Tensor const& A)
{
#if TARGET_CUDA_ARCH == 100 || TARGET_CUDA_ARCH == 101 || TARGET_CUDA_ARCH == 110 //TODO: improve tuning
    using ArchTag = cutlass::arch::Sm100;
    runGemm<FpGemm<MmaTileShape, ArchTag>>(D, A);
#elif TARGET_CUDA_ARCH >= 120
    using ArchTag = cutlass::arch::Sm120;
    using ClusterShape       = Shape<_1,_1,_1>;
    runGemm<FpGemm<MmaTileShape, ArchTag>>(D, A);
#else
    TORCH_CHECK(false, "Unsupported CUDA arch");
#endif
}
